/**
 * One reader of the log's stream. What comes for it waits until it is its turn to be written to, and that is all it gets then.
 *
 *     waiting --begin--> reading --(more than fits)--> missing --(has read)--> reading
 *        |                  |                             |
 *        +-------- end: the token expired, the session or the server ended, the client left --> ended
 */
import { Buffer } from "node:buffer";
import { logLimits } from "../../limits.ts";
import type { Tailed } from "../execution_log.ts";
import { endEvent, heartbeat, missedEvent } from "./events.ts";

/** What came from so many packs is kept for a reader that has not begun: some seconds' worth. */
const EARLY_MAX = 64;

const encoder = new TextEncoder();
const heartbeatBytes = encoder.encode(heartbeat);

/** Whose stream it is, and until when. */
export interface StreamSession {
  readonly sessionId: string;
  readonly principal: string | null;
  /** When the token's time is over, milliseconds since the epoch. */
  readonly expiresAt: number;
}

export interface LogReaderOptions {
  readonly session: StreamSession;
  /** There is something for it: {@linkcode LogReader.write} is to be called when it is its turn. */
  readonly onDue: () => void;
  /** Called once. */
  readonly onEnd: () => void;
}

export class LogReader {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #options: LogReaderOptions;
  readonly #expiry: ReturnType<typeof setTimeout>;
  /** Set by the stream's start, before anything else happens. */
  #controller!: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;
  #state: "waiting" | "reading" | "ended" = "waiting";
  /** What came before it could begin. */
  readonly #early: Tailed[] = [];
  /** Runs that came behind that. */
  #tooEarly = 0;
  /** Events for its next turn. */
  #events: Uint8Array<ArrayBuffer>[] = [];
  /** Runs behind them that were left out. */
  #missed = 0;
  #beats = false;
  /** When it last took something. */
  #tookAt = performance.now();

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
      // What came before that is its own.
      this.write();
      this.end(encoder.encode(endEvent("expired")));
    }, leftMs);
  }

  /** What stands first: it covers all runs up to the id. */
  begin(bytes: Uint8Array<ArrayBuffer>, lastId: number): void {
    if (this.#state !== "waiting") return;
    this.#state = "reading";
    this.#controller.enqueue(bytes);
    for (const tailed of this.#early.splice(0)) if (tailed.lastId > lastId) this.push(tailed);
    if (this.#tooEarly > 0) this.push({ events: [], missed: this.#tooEarly, lastId });
  }

  push(tailed: Tailed): void {
    if (this.#state === "ended") return;
    if (this.#state === "waiting") {
      if (this.#early.length < EARLY_MAX) this.#early.push(tailed);
      else this.#tooEarly += tailed.events.length + tailed.missed;
      return;
    }
    // Whatever comes behind a gap belongs to it until the reader is told of it.
    const room = this.#missed > 0 ? 0 : logLimits.streamRunsMax - this.#events.length;
    for (const event of tailed.events.slice(0, room)) this.#events.push(event);
    this.#missed += Math.max(0, tailed.events.length - room) + tailed.missed;
    this.#options.onDue();
  }

  /** To be called now and then: shows a quiet connection that it lives, and gives up a reader that takes nothing. */
  beat(): void {
    if (this.#state !== "reading") return;
    if (!this.#hasRoom) {
      if (performance.now() - this.#tookAt > logLimits.streamStallMs) this.end(null);
      return;
    }
    this.#beats = true;
    this.#options.onDue();
  }

  /** Its turn. What does not fit is left out; it is told how much that was when it has read. */
  write(): void {
    if (this.#state !== "reading") return;
    if (!this.#hasRoom) {
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

  /** Ends the stream, with a last event. */
  end(last: Uint8Array<ArrayBuffer> | null): void {
    if (this.#state === "ended") return;
    if (last !== null) this.#controller.enqueue(last);
    this.#controller.close();
    this.#close();
  }

  get #hasRoom(): boolean {
    return (this.#controller.desiredSize ?? 0) > 0;
  }

  /** The reader has taken something, and there is room. */
  #taken(): void {
    this.#tookAt = performance.now();
    if (this.#state === "reading" && this.#missed > 0) this.#options.onDue();
  }

  #close(): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    clearTimeout(this.#expiry);
    this.#options.onEnd();
  }
}
