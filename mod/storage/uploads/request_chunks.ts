/** Reads an upload in large reused buffers, for fewer ticks, copies and garbage. Failures are `upload_failed`. */
import { storageLimits } from "../limits.ts";
import { ServiceError } from "../../errors.ts";
import { bodyChunks } from "../../kit/request_body.ts";

/** Chunks that a caller may still be using when it requests the next one. */
export const chunksHeldMax = 2;

/** Number of bodies being read, which determines the buffer size. */
let readers = 0;

/** Buffer size: large for few bodies, small for short ones or many. */
function bufferBytesFor(length: number | null): number {
  const { uploadBufferBytesMin, uploadBufferBytesMax, uploadBuffersBytes } = storageLimits;
  const share = Math.max(uploadBuffersBytes / (chunksHeldMax + 1) / (readers + 1), uploadBufferBytesMin);
  const wanted = length !== null && length > 0
    ? Math.min(length, uploadBufferBytesMax)
    : uploadBufferBytesMax;
  return Math.floor(Math.min(share, wanted));
}

interface RequestChunksOptions {
  /** Announced length, or `null`. */
  readonly contentLength: number | null;
  /** Time without bytes after which the upload fails. */
  readonly stallMs?: number;
  /** Aborts the body; its reason is thrown. */
  readonly signal?: AbortSignal;
}

/** Yields chunks, valid for `chunksHeldMax` more. Leaving the loop cancels. Throws `upload_failed` (stalled, cut, wrong length). */
export async function* requestChunks(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  { contentLength, stallMs = storageLimits.uploadStallMs, signal }: RequestChunksOptions,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  let received = 0;
  const bufferBytes = bufferBytesFor(contentLength);
  readers++;
  try {
    const chunks = bodyChunks(body, {
      bufferBytes,
      chunksHeld: chunksHeldMax,
      stallMs,
      ...(signal && { signal }),
      failure: (fault, cause) =>
        new ServiceError("upload_failed", fault === "stalled" ? "The upload stalled" : undefined, { cause }),
    });
    for await (const chunk of chunks) {
      received += chunk.length;
      yield chunk;
    }
  } finally {
    readers--;
  }
  if (contentLength !== null && received !== contentLength) throw new ServiceError("upload_failed");
}
