/** The body of an upload, chunk by chunk, with every way in which it can break off as `upload_failed`. */
import { ServiceError } from "../errors.ts";
import { storageLimits } from "../limits.ts";

export interface RequestChunksOptions {
  /** Length the client announced; `null` when it did not. */
  readonly contentLength: number | null;
  /** Time without a byte after which the body counts as broken off. */
  readonly stallMs?: number;
  /** Ends the body early: its reason is thrown. */
  readonly signal?: AbortSignal;
}

/**
 * The chunks of a body. Leaving the loop early cancels the body. Throws `upload_failed` when it breaks off, stalls, or is
 * not as long as announced.
 */
export async function* requestChunks(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  { contentLength, stallMs = storageLimits.uploadStallMs, signal }: RequestChunksOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  let received = 0;
  if (body !== null) {
    const reader = body.getReader();
    const stop = () => void cancelled(reader);
    signal?.addEventListener("abort", stop);
    let moved = true;
    let stalled = false;
    const watch = setInterval(() => {
      stalled = !moved;
      moved = false;
      if (stalled) stop();
    }, stallMs);
    try {
      for (;;) {
        signal?.throwIfAborted();
        const { done, value } = await reader.read().catch((error) => {
          throw new ServiceError("upload_failed", undefined, { cause: error });
        });
        signal?.throwIfAborted();
        if (stalled) throw new ServiceError("upload_failed", "The upload stood still for too long");
        if (done) break;
        moved = true;
        received += value.length;
        yield value;
        // Time the disk takes is not the client's.
        moved = true;
      }
    } finally {
      clearInterval(watch);
      signal?.removeEventListener("abort", stop);
      await cancelled(reader);
    }
  }
  if (contentLength !== null && received !== contentLength) throw new ServiceError("upload_failed");
}

/** A body that is over or broken cannot be cancelled, and need not be. */
async function cancelled(reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>): Promise<void> {
  await reader.cancel().catch(() => {});
}
