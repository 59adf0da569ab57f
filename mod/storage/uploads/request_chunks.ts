/** The body of an upload, chunk by chunk, with every way in which it can break off as `upload_failed`. */
import { ServiceError } from "../../errors.ts";
import { storageLimits } from "../limits.ts";
import { readBody } from "./body_reader.ts";

export interface RequestChunksOptions {
  /** Length the client announced; `null` when it did not. */
  readonly contentLength: number | null;
  /** Time without a byte after which the body counts as broken off. */
  readonly stallMs?: number;
  /** Ends the body early: its reason is thrown. */
  readonly signal?: AbortSignal;
}

/**
 * The chunks of a body. Each is the caller's until it has got `chunksHeldMax` more; its memory is used again then. Leaving
 * the loop early cancels the body. Throws `upload_failed` when it breaks off, stalls, or is not as long as announced.
 */
export async function* requestChunks(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  { contentLength, stallMs = storageLimits.uploadStallMs, signal }: RequestChunksOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  let received = 0;
  if (body !== null) {
    using reader = readBody(body, { length: contentLength });
    const stop = () => void reader.cancel();
    signal?.addEventListener("abort", stop);
    // Time the disk takes between two reads is not the client's.
    let reading = false;
    let moved = true;
    let stalled = false;
    const watch = setInterval(() => {
      if (reading && !moved) {
        stalled = true;
        stop();
      }
      moved = false;
    }, stallMs);
    try {
      for (;;) {
        signal?.throwIfAborted();
        reading = moved = true;
        const chunk = await reader.read().catch((error) => {
          throw new ServiceError("upload_failed", undefined, { cause: error });
        });
        reading = false;
        signal?.throwIfAborted();
        if (stalled) throw new ServiceError("upload_failed", "The upload stood still for too long");
        if (chunk === null) break;
        received += chunk.length;
        yield chunk;
      }
    } finally {
      clearInterval(watch);
      signal?.removeEventListener("abort", stop);
      await reader.cancel();
    }
  }
  if (contentLength !== null && received !== contentLength) throw new ServiceError("upload_failed");
}
