/** The body of a request in a temporary file, for bodies that have to be there as a whole and are too large for the memory. */
import { statfs } from "node:fs/promises";
import { ServiceError } from "../errors.ts";
import { isDiskFull, removeIfThere, writeAll } from "../kit/durable_files.ts";
import { opsLimits } from "./limits.ts";

const SLOWEST: SlowestBody = { ms: opsLimits.receivedWindowMs, bytes: opsLimits.receivedWindowBytesMin };

export interface SlowestBody {
  readonly ms: number;
  readonly bytes: number;
}

export interface SpoolOptions {
  /** The file that is written. It must not be there. */
  readonly path: string;
  /** Largest body. */
  readonly bytesMax: number;
  /** A body that brings nothing for this long has broken off. */
  readonly stallMs: number;
  /** Slowest body: while so long is spent waiting for it, so many bytes have to come. */
  readonly slowest?: SlowestBody;
  /** Told after each chunk how many bytes there are. */
  readonly onBytes?: (size: number) => void;
  /** Free bytes of the disk on which a file is. */
  readonly room?: (path: string) => Promise<number>;
}

/** Makes a folder for such files (mode 0700); what a killed server left there goes. */
export async function emptyFolder(path: string): Promise<void> {
  await removeIfThere(path);
  await Deno.mkdir(path, { recursive: true, mode: 0o700 });
}

/** Removes the file when it is disposed of. */
export interface SpooledBody extends AsyncDisposable {
  readonly path: string;
  readonly size: number;
}

/**
 * Writes a body to a file (mode 0600). Throws `body_too_large` for more bytes than are allowed, `bad_request` when it breaks
 * off or stands still, `upload_failed` when it comes too slowly, and `disk_full` when the disk has no room for it and for the running server; the file is gone then.
 */
export async function spoolBody(
  request: Request,
  { path, bytesMax, stallMs, slowest = SLOWEST, room = roomOf, onBytes }: SpoolOptions,
): Promise<SpooledBody> {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > bytesMax) throw new ServiceError("body_too_large");
  try {
    using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
    const checkRoom = async (wanted: number) => {
      if (await room(path) < wanted + opsLimits.diskReserveBytes) throw new ServiceError("disk_full");
    };
    await checkRoom(announced);
    let size = 0;
    let checkedAt = 0;
    for await (const chunk of chunksOf(request.body, { stallMs, slowest })) {
      size += chunk.length;
      if (size > bytesMax) throw new ServiceError("body_too_large");
      await writeAll(file, chunk);
      onBytes?.(size);
      if (size - checkedAt < opsLimits.uploadedArchiveCheckBytes) continue;
      checkedAt = size;
      await checkRoom(0);
    }
    return { path, size, [Symbol.asyncDispose]: () => removeIfThere(path) };
  } catch (error) {
    await removeIfThere(path);
    if (isDiskFull(error)) throw new ServiceError("disk_full", undefined, { cause: error });
    throw error;
  }
}

/** The chunks of a body, each the caller's until it asks for the next. Leaving the loop early cancels the body. */
async function* chunksOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  { stallMs, slowest }: { readonly stallMs: number; readonly slowest: SlowestBody },
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  if (body === null) return;
  const { read, cancel } = readerOf(body);
  let stalled = false;
  const stall = () => {
    stalled = true;
    cancel().catch(() => {});
  };
  let windowMs = 0;
  let windowBytes = 0;
  try {
    for (;;) {
      // Only what the other side takes counts, not the time of the disk.
      const timer = setTimeout(stall, stallMs);
      const asked = performance.now();
      const chunk = await read().catch((error) => {
        throw new ServiceError("bad_request", "The request body broke off", { cause: error });
      }).finally(() => clearTimeout(timer));
      if (stalled) throw new ServiceError("bad_request", "The request body stood still for too long");
      if (chunk === null) return;
      windowMs += performance.now() - asked;
      windowBytes += chunk.length;
      if (windowMs >= slowest.ms) {
        if (windowBytes < slowest.bytes) {
          throw new ServiceError("upload_failed", "The request body came too slowly");
        }
        windowMs = windowBytes = 0;
      }
      yield chunk;
    }
  } finally {
    await cancel().catch(() => {});
  }
}

interface ChunkReader {
  /** `null` at the end. */
  readonly read: () => Promise<Uint8Array<ArrayBuffer> | null>;
  readonly cancel: () => Promise<void>;
}

/** Reads into a buffer that is used over and over, so that a long body leaves no garbage of its own length. */
function readerOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): ChunkReader {
  let buffer = new ArrayBuffer(opsLimits.receivedChunkBytes);
  let reader: ReadableStreamBYOBReader;
  try {
    reader = body.getReader({ mode: "byob" });
  } catch (error) {
    // Short bodies lie in memory already, as streams of another kind.
    if (!(error instanceof TypeError) || body.locked) throw error;
    const reader = body.getReader();
    return { read: async () => (await reader.read()).value ?? null, cancel: () => reader.cancel() };
  }
  return {
    async read() {
      const { done, value } = await reader.read(new Uint8Array(buffer));
      if (done) return null;
      buffer = value.buffer;
      return value;
    },
    cancel: () => reader.cancel(),
  };
}

async function roomOf(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}
