/**
 * Bodies on their way between main and a runner: in chunks, and never more of one than the other side has room for. The
 * receiver tells what was taken out of its stream; the sender sends as far as that. Used on both sides.
 */
import { routeLimits } from "../limits.ts";

const { chunkBytesMax, windowBytes } = routeLimits;

/** Sends one body. */
export class BodySender {
  readonly #send: (bytes: Uint8Array) => void;
  /** Bytes that may be sent before the other side has to take some. */
  #credit: number = windowBytes;
  /** Ends the wait for credit. */
  #resume: (() => void) | null = null;
  #reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
  #stopped = false;

  constructor(send: (bytes: Uint8Array) => void) {
    this.#send = send;
  }

  /** Takes note that the other side has taken bytes. */
  taken(bytes: number): void {
    this.#credit = Math.min(windowBytes, this.#credit + bytes);
    this.#resume?.();
  }

  /** Sends a body to its end, or until it is stopped: then this resolves to `false`. Rejects when the body fails. */
  async pump(body: ReadableStream<Uint8Array>): Promise<boolean> {
    if (this.#stopped) {
      await body.cancel();
      return false;
    }
    const reader = this.#reader = body.getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (this.#stopped) return false;
      if (done) return true;
      if (!(value instanceof Uint8Array)) throw new TypeError("The stream of a body must give Uint8Arrays");
      for (let from = 0; from < value.length;) {
        const bytes = Math.min(chunkBytesMax, value.length - from);
        // Whole chunks only: to use up what little room there is would make ever smaller ones.
        if (bytes <= this.#credit) {
          this.#credit -= bytes;
          this.#send(value.subarray(from, from + bytes));
          from += bytes;
        } else {
          await new Promise<void>((resolve) => this.#resume = resolve);
          this.#resume = null;
          if (this.#stopped) return false;
        }
      }
    }
  }

  /** Nobody wants the rest. */
  stop(reason: string): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#resume?.();
    // A stream whose end fails has nobody left to tell.
    this.#reader?.cancel(new DOMException(reason, "AbortError")).catch(() => {});
  }
}

export interface BodyReceiverOptions {
  /** Called when bytes were taken out of the stream. */
  readonly onTaken: (bytes: number) => void;
  /** Called when whoever reads the stream does not want the rest. */
  readonly onCancel: () => void;
}

/** Receives one body and gives it as a stream. */
export class BodyReceiver {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #chunks: Uint8Array<ArrayBuffer>[] = [];
  /** Bytes in `#chunks`. */
  #waiting = 0;
  #end: { readonly error: unknown } | "done" | null = null;
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | null = null;
  /** Ends the wait of whoever reads. */
  #resume: (() => void) | null = null;
  readonly #options: BodyReceiverOptions;

  constructor(options: BodyReceiverOptions) {
    this.#options = options;
    this.stream = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: (controller) => this.#pull(controller),
      cancel: () => {
        this.drop();
        options.onCancel();
      },
    }, { highWaterMark: 0 });
  }

  /** Takes bytes from the other side. Throws `RangeError` when they are more than it was given room for. */
  push(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#end !== null || bytes.length === 0) return;
    this.#waiting += bytes.length;
    if (this.#waiting > windowBytes) throw new RangeError("More of a body was sent than there was room for");
    this.#chunks.push(bytes);
    this.#resume?.();
  }

  /** The body is complete. */
  end(): void {
    this.#end ??= "done";
    this.#resume?.();
  }

  /** Nobody wants the rest: what waits is dropped, and the body ends. */
  drop(): void {
    this.#chunks.length = 0;
    this.end();
  }

  /** The body breaks off: what waits is dropped. */
  fail(error: unknown): void {
    if (this.#end !== null) return;
    this.#end = { error };
    this.#chunks.length = 0;
    this.#controller?.error(error);
    this.#resume?.();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): Promise<void> {
    while (this.#chunks.length === 0 && this.#end === null) {
      await new Promise<void>((resolve) => this.#resume = resolve);
      this.#resume = null;
    }
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) {
      this.#waiting -= chunk.length;
      controller.enqueue(chunk);
      this.#options.onTaken(chunk.length);
    } else if (this.#end === "done") {
      controller.close();
    }
  }
}
