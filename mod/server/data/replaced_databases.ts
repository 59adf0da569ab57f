/** Databases that restores have replaced and moved away within the data folder. */
import { join } from "node:path";
import { statIfThere } from "../../kit/durable_files.ts";
import { KEPT_PREFIX } from "../../ops/backups/restore/mod.ts";

/** Modification time of the newest one in milliseconds since the epoch; `null` if there is none. */
export async function newestReplacedDatabase(dataDir: string): Promise<number | null> {
  let newest: number | null = null;
  for await (const { name, isDirectory } of Deno.readDir(dataDir)) {
    if (!isDirectory || !name.startsWith(KEPT_PREFIX)) continue;
    const info = await statIfThere(join(dataDir, name));
    const at = info?.mtime?.getTime();
    if (at !== undefined) newest = Math.max(newest ?? at, at);
  }
  return newest;
}
