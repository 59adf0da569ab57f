/**
 * One reader of the log's stream.
 *
 *     waiting --begin--> reading --(more than fits)--> missing --(has read)--> reading
 *        |                  |                             |
 *        +-------- end: the token expired, the session or the server ended, the client left --> ended
 */
import { logLimits } from "../../limits.ts";
import { endEvent, heartbeat, missedEvent } from "./events.ts";

/** Chunks kept for a reader that has not begun: some seconds' worth. */
const EARLY_CHUNKS_MAX = 64;

const encoder = new TextEncoder();
const beat = encoder.encode(heartbeat);

/** Events of so many runs, the newest of which has the id. */
export interface EventChunk {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly runs: number;
  readonly lastId: number;
}

/** Whose stream it is, and until when. */
export interface StreamSession {
  readonly sessionId: string;
  readonly principal: string | null;
  /** When the token's time is over, milliseconds since the epoch. */
  readonly expiresAt: number;
}

export interface LogReaderOptions {
  readonly session: StreamSession;
  /** Called once. */
  readonly onEnd: () => void;
}

export class LogReader {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #onEnd: () => void;
  readonly #expiry: ReturnType<typeof setTimeout>;
  /** Set by the stream's start, before anything else happens. */
  #controller!: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;
  #state: "waiting" | "reading" | "ended" = "waiting";
  /** What came before it could begin. */
  readonly #early: EventChunk[] = [];
  /** Runs left out since the reader was last told. */
  #missed = 0;
  /** When it last took something. */
  #tookAt = performance.now();

  constructor({ session, onEnd }: LogReaderOptions) {
    this.#onEnd = onEnd;
    this.stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => this.#taken(),
      cancel: () => this.#close(),
    }, new ByteLengthQueuingStrategy({ highWaterMark: logLimits.streamBytesMax }));
    const leftMs = Math.max(0, session.expiresAt - Date.now());
    this.#expiry = setTimeout(() => this.end(encoder.encode(endEvent("expired"))), leftMs);
  }

  /** What stands first: it covers all runs up to the id. */
  begin(bytes: Uint8Array<ArrayBuffer>, lastId: number): void {
    if (this.#state !== "waiting") return;
    this.#state = "reading";
    this.#controller.enqueue(bytes);
    for (const chunk of this.#early.splice(0)) if (chunk.lastId > lastId) this.push(chunk);
  }

  push(chunk: EventChunk): void {
    if (this.#state === "waiting") {
      if (this.#early.length < EARLY_CHUNKS_MAX) this.#early.push(chunk);
      else this.#missed += chunk.runs;
    }
    if (this.#state !== "reading") return;
    if (this.#missed > 0 || !this.#hasRoom) this.#missed += chunk.runs;
    else this.#controller.enqueue(chunk.bytes);
  }

  /** To be called now and then: shows a quiet connection that it lives, and gives up a reader that takes nothing. */
  beat(): void {
    if (this.#state !== "reading") return;
    if (this.#hasRoom) this.#controller.enqueue(beat);
    else if (performance.now() - this.#tookAt > logLimits.streamStallMs) this.end(null);
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
    if (this.#state !== "reading" || this.#missed === 0) return;
    this.#controller.enqueue(encoder.encode(missedEvent(this.#missed)));
    this.#missed = 0;
  }

  #close(): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    clearTimeout(this.#expiry);
    this.#onEnd();
  }
}
