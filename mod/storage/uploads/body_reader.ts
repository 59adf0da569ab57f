/**
 * Reads a body into buffers that are used over and over. Reads into a large buffer take fewer turns, and far less copying in
 * the runtime, than those that let it allocate; garbage of this size costs more than the reads do.
 */
import { storageLimits } from "../limits.ts";

/** Chunks a caller may still be using when it asks for the next: their buffers are not used again yet. */
export const chunksHeldMax = 2;

const BUFFERS = chunksHeldMax + 1;

/** Bodies read at this moment, whoever reads them: what they hold in memory is bounded for all of them together. */
let readers = 0;

export interface BodyReader extends Disposable {
  /**
   * The next bytes; `null` at the end. They are the caller's until it has got `chunksHeldMax` more. Rejects when the body
   * breaks off.
   */
  read(): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Gives the rest of the body up: a read under way gets `null`. Never rejects; a body that is over stays so. */
  cancel(): Promise<void>;
}

/** Reads a body to which nobody else holds a reader. `length`: the bytes it is said to have; `null` when unknown. */
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

/** For bodies that lie in memory already, as short ones do. */
function takingReader(reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>): Reading {
  return {
    async read() {
      const { done, value } = await reader.read();
      return done ? null : value;
    },
    cancel: () => reader.cancel().catch(() => {}),
  };
}

/** A reader that fills buffers given to it; `null` for streams that make their own. */
function fillingReader(body: ReadableStream<Uint8Array<ArrayBuffer>>): ReadableStreamBYOBReader | null {
  try {
    return body.getReader({ mode: "byob" });
  } catch (error) {
    if (error instanceof TypeError && !body.locked) return null;
    throw error;
  }
}

/** Large ones while few bodies are read; small ones for short bodies and for crowds. */
function bufferBytes(length: number | null): number {
  const { uploadBufferBytesMin, uploadBufferBytesMax, uploadBuffersBytes } = storageLimits;
  const share = Math.max(uploadBuffersBytes / BUFFERS / (readers + 1), uploadBufferBytesMin);
  const wanted = length !== null && length > 0
    ? Math.min(length, uploadBufferBytesMax)
    : uploadBufferBytesMax;
  return Math.floor(Math.min(share, wanted));
}
