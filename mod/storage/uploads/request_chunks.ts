/** Reads the body of an upload in chunks and maps all failures to `upload_failed`. */
import { ServiceError } from "../../errors.ts";
import { storageLimits } from "../limits.ts";
import { readBody } from "./body_reader.ts";

export interface RequestChunksOptions {
  /** Announced length, or `null`. */
  readonly contentLength: number | null;
  /** Time without bytes after which the upload fails. */
  readonly stallMs?: number;
  /** Aborts the body; its reason is thrown. */
  readonly signal?: AbortSignal;
}

/**
 * Yields the chunks of a body. Each is valid until the caller has received `chunksHeldMax` more. Leaving the loop cancels the
 * body. Throws `upload_failed` if it breaks off, stalls, or does not have the announced length.
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
    // The time spent writing between two reads does not count as stalling.
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
        if (stalled) throw new ServiceError("upload_failed", "The upload stalled");
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
