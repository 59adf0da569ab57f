/**
 * Reads a body into a fixed set of reused buffers. Large reads need fewer event loop ticks and copies, and reuse avoids
 * garbage that costs more than the reads themselves.
 */
import { storageLimits } from "../limits.ts";

/** Chunks that a caller may still be using when it requests the next one. */
export const chunksHeldMax = 2;

const BUFFERS = chunksHeldMax + 1;

/** Number of bodies being read, which determines the buffer size. */
let readers = 0;

export interface BodyReader extends Disposable {
  /**
   * Returns the next bytes, or `null` at the end. They are valid until the caller has received `chunksHeldMax` more chunks.
   * Rejects if the body breaks off.
   */
  read(): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Cancels the rest of the body; a read in progress returns `null`. Never rejects. */
  cancel(): Promise<void>;
}

/** Reads a body that is not locked. `length`: announced length in bytes, or `null`. */
export function readBody(
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
