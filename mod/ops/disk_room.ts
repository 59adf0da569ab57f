/** How much room a disk has. A server may be writing to the same one, so it is never filled to the last byte. */
import { statfs } from "node:fs/promises";
import { opsLimits } from "./limits.ts";

/**
 * Whether so many bytes fit on the disk of a folder, with some left for others. Where this process may not ask, they are
 * taken to fit.
 */
export async function hasRoom(folder: string, bytes: number): Promise<boolean> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bytes + opsLimits.diskReserveBytes <= bavail * bsize;
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return true;
    throw error;
  }
}
