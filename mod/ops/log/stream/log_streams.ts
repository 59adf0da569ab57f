/**
 * Live streams of the log. Readers with the same filter share one tail and its encoded events. Slow readers never block others:
 * runs that do not fit into their buffer are skipped and counted.
 *
 * A few readers are written to at a time, in the order in which their events arrived, with a pause in between. This bounds the
 * main process's work per second and the delay of other calls. With many readers, each is written to less often and gets all
 * events since the last time.
 */
import { Buffer } from "node:buffer";
import { ServiceError } from "../../../errors.ts";
import { type Clock, steadyClock, type Timer } from "../../../kit/clock.ts";
import { logLimits } from "../../limits.ts";
import type { ExecutionLog, TailedRuns } from "../execution_log.ts";
import type { RunFilter } from "../run_filter.ts";
import type { LoggedRun } from "../run_record.ts";

/** A run. Its ID is sent back in `Last-Event-ID` on reconnect. */
export function runEvent(run: LoggedRun): string {
  // JSON contains no line breaks.
  return `id: ${run.id}\nevent: run\ndata: ${JSON.stringify(run)}\n\n`;
}

/** Number of runs skipped at this point, because the reader was too slow. */
function missedEvent(count: number): string {
  return `event: missed\ndata: ${JSON.stringify({ count })}\n\n`;
}

/** Why the stream ends: the token has expired or the session has ended. */
function endEvent(reason: "expired" | "revoked"): string {
  return `event: ${reason}\ndata: {}\n\n`;
}

/** A comment that keeps the connection alive. */
const heartbeat = ": \n\n";

/** Number of batches buffered for a reader that has not started, some seconds' worth. */
const EARLY_MAX = 64;

const heartbeatBytes = new TextEncoder().encode(heartbeat);

interface StreamSession {
  readonly sessionId: string;
  readonly principal: string | null;
  /** Expiry of the token, milliseconds since the epoch. */
  readonly expiresAt: number;
}

export interface LogReaderOptions {
  readonly session: StreamSession;
  /** Called when events are buffered; call {@linkcode LogReader.write} when its slot comes up. */
  readonly onDue: () => void;
  /** Called once. */
  readonly onEnd: () => void;
}

/**
 * One reader of the log stream. Events are buffered until its slot comes up and are then written together.
 *
 *     waiting --begin--> reading --(buffer full)--> missing --(has read)--> reading
 *        |                  |                          |
 *        +-------- end: token expired, session or server ended, client disconnected --> ended
 */
class LogReader {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #options: LogReaderOptions;
  readonly #expiry: ReturnType<typeof setTimeout>;
  /** Set when the stream starts, before anything else. */
  #controller!: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;
  #state: "waiting" | "reading" | "ended" = "waiting";
  /** Batches received before `begin`. */
  readonly #early: TailedRuns[] = [];
  /** Runs skipped after those batches. */
  #tooEarly = 0;
  #events: Uint8Array<ArrayBuffer>[] = [];
  /** Runs skipped after the buffered events. */
  #missed = 0;
  #beats = false;
  #lastReadAt = performance.now();

  constructor(options: LogReaderOptions) {
    this.#options = options;
    this.stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => this.#taken(),
      cancel: () => this.#close(),
    }, new ByteLengthQueuingStrategy({ highWaterMark: logLimits.streamBytesMax }));
    const leftMs = Math.max(0, options.session.expiresAt - Date.now());
    this.#expiry = setTimeout(() => {
      // The response headers count as activity.
      this.write();
      this.end(encoder.encode(endEvent("expired")));
    }, leftMs);
  }

  /** Starts with the backlog, which covers all runs up to `lastId`. */
  begin(bytes: Uint8Array<ArrayBuffer>, lastId: number): void {
    if (this.#state !== "waiting") return;
    this.#state = "reading";
    this.#controller.enqueue(bytes);
    for (const tailed of this.#early.splice(0)) if (tailed.lastId > lastId) this.push(tailed);
    if (this.#tooEarly > 0) this.push({ events: [], missed: this.#tooEarly, lastId });
  }

  push(tailed: TailedRuns): void {
    if (this.#state === "ended") return;
    if (this.#state === "waiting") {
      if (this.#early.length < EARLY_MAX) this.#early.push(tailed);
      else this.#tooEarly += tailed.events.length + tailed.missed;
      return;
    }
    // After a gap, further runs are skipped until the reader was notified.
    const room = this.#missed > 0 ? 0 : logLimits.streamRunsMax - this.#events.length;
    for (const event of tailed.events.slice(0, room)) this.#events.push(event);
    this.#missed += Math.max(0, tailed.events.length - room) + tailed.missed;
    this.#options.onDue();
  }

  /** Call periodically: sends heartbeats and closes readers that have stalled. */
  heartbeat(): void {
    if (this.#state !== "reading") return;
    if (!this.#canWrite) {
      if (performance.now() - this.#lastReadAt > logLimits.streamStallMs) this.end(null);
      return;
    }
    this.#beats = true;
    this.#options.onDue();
  }

  /** Writes buffered events. Skipped runs are reported once the reader has caught up. */
  write(): void {
    if (this.#state !== "reading") return;
    if (!this.#canWrite) {
      this.#missed += this.#events.length;
      this.#events = [];
      return;
    }
    const pieces = this.#events;
    if (this.#beats) pieces.unshift(heartbeatBytes);
    if (this.#missed > 0) pieces.push(encoder.encode(missedEvent(this.#missed)));
    this.#events = [];
    this.#missed = 0;
    this.#beats = false;
    if (pieces.length > 0) this.#controller.enqueue(Buffer.concat(pieces));
  }

  /** Ends the stream with a final event. */
  end(last: Uint8Array<ArrayBuffer> | null): void {
    if (this.#state === "ended") return;
    if (last !== null) this.#controller.enqueue(last);
    this.#controller.close();
    this.#close();
  }

  get #canWrite(): boolean {
    return (this.#controller.desiredSize ?? 0) > 0;
  }

  /** Called when the reader has read and can accept more. */
  #taken(): void {
    this.#lastReadAt = performance.now();
    if (this.#state === "reading" && this.#missed > 0) this.#options.onDue();
  }

  #close(): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    clearTimeout(this.#expiry);
    this.#options.onEnd();
  }
}

interface Tail {
  readonly readers: Set<LogReader>;
  readonly stop: () => void;
}

export type StreamLog = Pick<ExecutionLog, "tail" | "backlog">;

const encoder = new TextEncoder();

export class LogStreams implements Disposable {
  readonly #log: StreamLog;
  readonly #clock: Clock;
  readonly #tails = new Map<string, Tail>();
  readonly #readers = new Map<LogReader, StreamSession>();
  /** Readers with buffered events, longest waiting first. */
  readonly #due = new Set<LogReader>();
  /** Set while readers are due, and for a pause after the last write. */
  #writeTimer: Timer | null = null;
  /** Set while there are readers. */
  #heartbeats: Timer | null = null;
  /** Readers being opened. */
  #opening = 0;
  #closed = false;

  constructor(log: StreamLog, clock: Clock = steadyClock) {
    this.#log = log;
    this.#clock = clock;
  }

  get size(): number {
    return this.#readers.size;
  }

  /** Opens a stream, after the run `after` if given. Throws `overloaded`, or `unavailable` (stopping, unreadable log). */
  async open(
    { filter, after, session }: {
      readonly filter: RunFilter;
      readonly after: number | null;
      readonly session: StreamSession;
    },
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    if (this.#closed) throw new ServiceError("unavailable");
    if (this.#readers.size + this.#opening >= logLimits.streamsMax) {
      throw new ServiceError("overloaded", `The limit of ${logLimits.streamsMax} log streams is reached`);
    }
    this.#opening++;
    const key = JSON.stringify(filter);
    const tail = this.#tailOf(key, filter);
    // Tail from now on; the backlog is inserted before it when available.
    const reader = new LogReader({
      session,
      onDue: () => this.#schedule(reader),
      onEnd: () => this.#left(reader, { key, tail }),
    });
    this.#readers.set(reader, session);
    tail.readers.add(reader);
    this.#heartbeats ??= this.#clock.every(logLimits.heartbeatMs, () => this.#heartbeat());
    try {
      const { events, missed, lastId } = await this.#log.backlog(filter, after);
      reader.begin(encoder.encode(heartbeat + (missed > 0 ? missedEvent(missed) : "") + events), lastId);
    } catch (error) {
      reader.end(null);
      throw error;
    } finally {
      this.#opening--;
    }
    return reader.stream;
  }

  /** Ends the streams of a session, or of all sessions of a principal. */
  sessionEnded(ended: { readonly sessionId: string } | { readonly principal: string }): void {
    for (const [reader, session] of this.#readers) {
      const theirs = "sessionId" in ended
        ? session.sessionId === ended.sessionId
        : session.principal === ended.principal;
      if (theirs) reader.end(encoder.encode(endEvent("revoked")));
    }
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    for (const reader of [...this.#readers.keys()]) reader.end(null);
  }

  #tailOf(key: string, filter: RunFilter): Tail {
    const known = this.#tails.get(key);
    if (known !== undefined) return known;
    const readers = new Set<LogReader>();
    const tail: Tail = {
      readers,
      stop: this.#log.tail(filter, (tailed) => {
        for (const reader of readers) reader.push(tailed);
      }),
    };
    this.#tails.set(key, tail);
    return tail;
  }

  #left(reader: LogReader, { key, tail }: { readonly key: string; readonly tail: Tail }): void {
    this.#readers.delete(reader);
    this.#due.delete(reader);
    tail.readers.delete(reader);
    if (tail.readers.size === 0) {
      tail.stop();
      this.#tails.delete(key);
    }
    if (this.#readers.size > 0) return;
    this.#heartbeats?.cancel();
    this.#heartbeats = null;
    this.#writeTimer?.cancel();
    this.#writeTimer = null;
  }

  #schedule(reader: LogReader): void {
    this.#due.add(reader);
    this.#writeTimer ??= this.#clock.after(0, () => this.#write());
  }

  #write(): void {
    let left: number = logLimits.streamWritesMax;
    for (const reader of this.#due) {
      if (left-- === 0) break;
      this.#due.delete(reader);
      reader.write();
    }
    // Also after the last write, to keep the pause before the next one.
    this.#writeTimer = left === logLimits.streamWritesMax
      ? null
      : this.#clock.after(logLimits.streamTurnMs, () => this.#write());
  }

  #heartbeat(): void {
    for (const reader of [...this.#readers.keys()]) reader.heartbeat();
  }
}
