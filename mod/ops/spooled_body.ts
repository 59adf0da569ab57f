/** Spools request bodies to temporary files, for bodies that must be complete and are too large for memory. */
import { statfs } from "node:fs/promises";
import { ServiceError } from "../errors.ts";
import { isDiskFull, removeIfThere, writeAll } from "../kit/durable_files.ts";
import { bodyChunks, type MinimumRate } from "../kit/request_body.ts";
import { opsLimits } from "./limits.ts";

const MINIMUM_RATE: MinimumRate = { ms: opsLimits.receivedWindowMs, bytes: opsLimits.receivedWindowBytesMin };

export interface SpoolOptions {
  /** File to write; it must not exist. */
  readonly path: string;
  /** Maximum size in bytes. */
  readonly bytesMax: number;
  /** Time without bytes after which the body fails. */
  readonly stallMs: number;
  /** Minimum rate: bytes required per time spent waiting for the body. */
  readonly minimumRate?: MinimumRate;
  /** Called after each chunk with the bytes received so far. */
  readonly onBytes?: (size: number) => void;
  /** Returns the free bytes of a file's disk. */
  readonly freeBytes?: (path: string) => Promise<number>;
}

/** Creates a folder (mode 0700) for such files and removes leftovers of a killed server. */
export async function emptyFolder(path: string): Promise<void> {
  await removeIfThere(path);
  await Deno.mkdir(path, { recursive: true, mode: 0o700 });
}

/** Disposing of it removes the file. */
export interface SpooledBody extends AsyncDisposable {
  readonly path: string;
  readonly size: number;
}

/**
 * Writes a body to a file (mode 0600). Throws `body_too_large` above the limit, `bad_request` if it breaks off or stalls,
 * `upload_failed` if it is too slow, and `disk_full` if the disk lacks space for it and the running server. The file is removed
 * on failure.
 */
export async function spoolBody(
  request: Request,
  { path, bytesMax, stallMs, minimumRate = MINIMUM_RATE, freeBytes: room = roomOf, onBytes }: SpoolOptions,
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
    const chunks = bodyChunks(request.body, {
      bufferBytes: opsLimits.receivedChunkBytes,
      stallMs,
      minimumRate,
      failure(fault, cause) {
        const [code, message] = FAILURES[fault];
        return new ServiceError(code, message, { cause });
      },
    });
    for await (const chunk of chunks) {
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

const FAILURES = {
  incomplete: ["bad_request", "The request body was incomplete"],
  stalled: ["bad_request", "The request body stalled"],
  slow: ["upload_failed", "The request body was sent too slowly"],
} as const;

async function roomOf(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}
