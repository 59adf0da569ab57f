/**
 * Live streams of the log. Readers with the same filter share one tail and its encoded events. Slow readers never block others:
 * runs that do not fit into their buffer are skipped and counted.
 *
 * A few readers are written to at a time, in the order in which their events arrived, with a pause in between. This bounds the
 * main process's work per second and the delay of other calls. With many readers, each is written to less often and gets all
 * events since the last time.
 */
import { ServiceError } from "../../../errors.ts";
import { logLimits } from "../../limits.ts";
import { type Clock, steadyClock, type Timer } from "../../../kit/clock.ts";
import type { ExecutionLog } from "../execution_log.ts";
import type { RunFilter } from "../run_filter.ts";
import { endEvent, heartbeat, missedEvent } from "./events.ts";
import { LogReader, type StreamSession } from "./log_reader.ts";

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
