/** Backup archives at a location: listing and downloading. */
import { dirname } from "node:path";
import { LocationError, type ObjectInfo, type ObjectReader } from "../../kit/locations/object_store.ts";
import { hasDiskSpace, NewFile } from "../new_file.ts";
import { opsLimits } from "../limits.ts";

/** Lists the newest archives directly at a location, newest first, up to a limit. */
export async function newestArchives(store: ObjectReader): Promise<ObjectInfo[]> {
  let newest: ObjectInfo[] = [];
  for await (const object of store.list("")) {
    if (!/^[^/]+\.tar\.zst$/.test(object.name)) continue;
    newest.push(object);
    newest.sort((a, b) => b.writtenAt - a.writtenAt || (a.name < b.name ? 1 : -1));
    newest = newest.slice(0, opsLimits.archivesNamedMax);
  }
  return newest;
}

export interface DownloadOptions {
  readonly name: string;
  /** Destination path (mode 0600), which must not exist. */
  readonly path: string;
}

/** Downloads an archive; `false` if there is none. Removes the file if it fails or the disk lacks space. */
export async function downloadArchive(
  store: Pick<ObjectReader, "head" | "get">,
  { name, path }: DownloadOptions,
): Promise<boolean> {
  const info = await store.head(name);
  if (info === null) return false;
  if (!await hasDiskSpace(dirname(path), info.size)) throw noSpace(`the archive (${info.size} bytes)`);
  const body = await store.get(name);
  if (body === null) return false;
  try {
    await using file = await NewFile.create(path);
    await body.pipeTo(file.writable({ whenFull: () => noSpace("the rest of the archive") }));
    await file.publish();
  } catch (error) {
    await body.cancel().catch(() => {});
    throw error;
  }
  return true;
}

function noSpace(what: string): LocationError {
  const error = new LocationError("away", `Not enough disk space for ${what}. Free disk space`);
  return Object.assign(error, { code: "disk_full" });
}
