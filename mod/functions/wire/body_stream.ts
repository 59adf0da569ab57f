/** Streams bodies between main and a runner, both ways, with flow control: the receiver grants credit as it is read. */
import { routeLimits } from "../limits.ts";

const { chunkBytesMax, windowBytes } = routeLimits;

export class BodySender {
  readonly #send: (bytes: Uint8Array) => void;
  /** Bytes that may be sent before more credit is needed. */
  #credit: number = windowBytes;
  /** Ends the wait for credit. */
  #resume: (() => void) | null = null;
  #reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
  #stopped = false;

  constructor(send: (bytes: Uint8Array) => void) {
    this.#send = send;
  }

  /** Adds credit for bytes the other side has read. */
  taken(bytes: number): void {
    this.#credit = Math.min(windowBytes, this.#credit + bytes);
    this.#resume?.();
  }

  /** Sends a body. Resolves to `false` if it was stopped. Rejects if the body fails. */
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
        // Whole chunks only: filling the remaining window would lead to ever smaller chunks.
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

  /** Stops sending: the rest is not needed. */
  stop(reason: string): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#resume?.();
    // Errors of cancelling the stream concern no one.
    this.#reader?.cancel(new DOMException(reason, "AbortError")).catch(() => {});
  }
}

export interface BodyReceiverOptions {
  /** Called when bytes were read from the stream. */
  readonly onTaken: (bytes: number) => void;
  readonly onCancel: () => void;
}

export class BodyReceiver {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #chunks: Uint8Array<ArrayBuffer>[] = [];
  /** Bytes in `#chunks`. */
  #waiting = 0;
  #end: { readonly error: unknown } | "done" | null = null;
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | null = null;
  /** Resumes the waiting reader. */
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

  /** Adds received bytes. @throws RangeError if they exceed the receive window. */
  push(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#end !== null || bytes.length === 0) return;
    this.#waiting += bytes.length;
    if (this.#waiting > windowBytes) throw new RangeError("The body exceeds its receive window");
    this.#chunks.push(bytes);
    this.#resume?.();
  }

  end(): void {
    this.#end ??= "done";
    this.#resume?.();
  }

  /** Cancels the body and drops buffered data. */
  drop(): void {
    this.#chunks.length = 0;
    this.end();
  }

  /** Aborts the body with an error and drops buffered data. */
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
