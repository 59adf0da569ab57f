/** Free disk space, keeping a reserve for a server that writes to the same disk. */
import { statfs } from "node:fs/promises";
import { opsLimits } from "./limits.ts";

/** Whether the disk has space for `bytes` plus the reserve; `true` if this process may not query the disk. */
export async function hasDiskSpace(folder: string, bytes: number): Promise<boolean> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bytes + opsLimits.diskReserveBytes <= bavail * bsize;
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return true;
    throw error;
  }
}
