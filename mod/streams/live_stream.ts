/** The content of one stream in memory, and the responses that read it while it grows. */
import type { Clock, Timer } from "../kit/clock.ts";
import { streamLimits } from "./limits.ts";

/** `failed`: it ended without its last part. */
export type StreamEnd = "ended" | "failed";

/** Response header with the state of the stream when the response began: `open`, `ended` or `failed`. */
export const STATE_HEADER = "Syncline-Stream";

export class LiveStream {
  readonly contentType: string;
  readonly #clock: Pick<Clock, "after">;
  /** Grows by copying. Views of an earlier buffer stay valid, because written bytes never change. */
  #buffer = new Uint8Array(streamLimits.firstBytes);
  #size = 0;
  #end: StreamEnd | null = null;
  /** Readers that have read everything. */
  readonly #waiting = new Set<() => void>();
  #wake: Timer | null = null;
  /** Responses in progress. */
  readonly #responses = new Set<ReadableStreamDefaultController>();
  #areReadersEnded = false;

  constructor(contentType: string, clock: Pick<Clock, "after">) {
    this.contentType = contentType;
    this.#clock = clock;
  }

  /** Bytes of the content. */
  get size(): number {
    return this.#size;
  }

  /** Bytes of memory. */
  get memoryBytes(): number {
    return this.#buffer.length;
  }

  /** `null` while it is open. */
  get end(): StreamEnd | null {
    return this.#end;
  }

  get readers(): number {
    return this.#responses.size;
  }

  get content(): Uint8Array<ArrayBuffer> {
    return this.#buffer.subarray(0, this.#size);
  }

  append(bytes: Uint8Array): void {
    if (this.#end !== null) return;
    const size = this.#size + bytes.length;
    if (size > this.#buffer.length) {
      const buffer = new Uint8Array(Math.max(size, 2 * this.#buffer.length));
      buffer.set(this.content);
      this.#buffer = buffer;
    }
    this.#buffer.set(bytes, this.#size);
    this.#size = size;
    // With many readers, several chunks reach them in one write each.
    const ms = Math.floor(this.readers / streamLimits.readersPerMs);
    if (ms === 0) this.#wakeReaders();
    else this.#wake ??= this.#clock.after(ms, () => this.#wakeReaders());
  }

  finish(end: StreamEnd): void {
    if (this.#end !== null) return;
    this.#end = end;
    this.#wakeReaders();
  }

  /** Ends the responses that read it. Their clients request the rest. */
  endReaders(): void {
    this.#areReadersEnded = true;
    this.#wakeReaders();
  }

  /** Breaks off the responses that still read it, because its memory is needed. */
  drop(): void {
    for (const response of this.#responses) response.error(new Error("The stream was dropped"));
    this.#responses.clear();
    this.#wakeReaders();
  }

  /** Returns the content from `offset` on, until the end. It is read at the pace of its consumer. */
  read(offset: number): ReadableStream<Uint8Array<ArrayBuffer>> {
    let position = offset;
    let wake: (() => void) | null = null;
    let response: ReadableStreamDefaultController;
    const leave = () => {
      this.#responses.delete(response);
      if (wake !== null) this.#waiting.delete(wake);
    };
    return new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => {
        this.#responses.add(response = controller);
      },
      pull: async (controller) => {
        if (position >= this.#size && this.#end === null && !this.#areReadersEnded) {
          await new Promise<void>((resolve) => this.#waiting.add(wake = resolve));
        }
        if (!this.#responses.has(response)) return;
        if (position < this.#size) {
          const end = Math.min(this.#size, position + streamLimits.readBytesMax);
          controller.enqueue(this.#buffer.subarray(position, end));
          position = end;
          return;
        }
        leave();
        controller.close();
      },
      cancel: leave,
    }, { highWaterMark: 0 });
  }

  #wakeReaders(): void {
    this.#wake?.cancel();
    this.#wake = null;
    const readers = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of readers) wake();
  }
}
