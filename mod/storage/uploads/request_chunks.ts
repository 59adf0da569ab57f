/** Reads an upload in large reused buffers, for fewer ticks, copies and garbage. Failures are `upload_failed`. */
import { storageLimits } from "../limits.ts";
import { ServiceError } from "../../errors.ts";

/** Chunks that a caller may still be using when it requests the next one. */
export const chunksHeldMax = 2;

const BUFFERS = chunksHeldMax + 1;

/** Number of bodies being read, which determines the buffer size. */
let readers = 0;

interface BodyReader extends Disposable {
  /** Returns the next bytes, valid for `chunksHeldMax` more chunks; `null` at the end. Rejects if the body breaks off. */
  read(): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Cancels the rest of the body; a read in progress returns `null`. Never rejects. */
  cancel(): Promise<void>;
}

/** Reads a body that is not locked. `length`: announced length in bytes, or `null`. */
function readBody(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  { length }: { readonly length: number | null },
): BodyReader {
  const filling = fillingReader(body);
  const reading = filling === null
    ? takingReader(body.getReader())
    : rotatingReader(filling, { bytes: bufferBytes(length) });
  readers++;
  return { ...reading, [Symbol.dispose]: () => void readers-- };
}

type Reading = Pick<BodyReader, "read" | "cancel">;

function rotatingReader(reader: ReadableStreamBYOBReader, { bytes }: { readonly bytes: number }): Reading {
  const free = Array.from({ length: BUFFERS }, () => new ArrayBuffer(bytes));
  return {
    async read() {
      const { done, value } = await reader.read(new Uint8Array(free.shift() ?? new ArrayBuffer(bytes)));
      if (done) return null;
      free.push(value.buffer);
      return value;
    },
    cancel: () => reader.cancel().catch(() => {}),
  };
}

/** For bodies that are already in memory, as short ones are. */
function takingReader(reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>): Reading {
  return {
    async read() {
      const { done, value } = await reader.read();
      return done ? null : value;
    },
    cancel: () => reader.cancel().catch(() => {}),
  };
}

/** Returns a BYOB reader, or `null` if the stream does not support one. */
function fillingReader(body: ReadableStream<Uint8Array<ArrayBuffer>>): ReadableStreamBYOBReader | null {
  try {
    return body.getReader({ mode: "byob" });
  } catch (error) {
    if (error instanceof TypeError && !body.locked) return null;
    throw error;
  }
}

/** Buffer size: large for few bodies, small for short ones or many. */
function bufferBytes(length: number | null): number {
  const { uploadBufferBytesMin, uploadBufferBytesMax, uploadBuffersBytes } = storageLimits;
  const share = Math.max(uploadBuffersBytes / BUFFERS / (readers + 1), uploadBufferBytesMin);
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
