/**
 * One reader of the log stream. Events are buffered until its slot comes up and are then written together.
 *
 *     waiting --begin--> reading --(buffer full)--> missing --(has read)--> reading
 *        |                  |                          |
 *        +-------- end: token expired, session or server ended, client disconnected --> ended
 */
import { Buffer } from "node:buffer";
import { logLimits } from "../../limits.ts";
import type { TailedRuns } from "../execution_log.ts";
import { endEvent, heartbeat, missedEvent } from "./events.ts";

/** Number of batches buffered for a reader that has not started, some seconds' worth. */
const EARLY_MAX = 64;

const encoder = new TextEncoder();
const heartbeatBytes = encoder.encode(heartbeat);

export interface StreamSession {
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

export class LogReader {
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
