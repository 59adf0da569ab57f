/** Archives in a bucket, for a restore: which there are, and one of them brought here. */
import { dirname } from "node:path";
import type { Bucket, ListedObject } from "../../kit/locations/bucket.ts";
import { ObjectLostError, openObject } from "../../kit/locations/bucket_object.ts";
import { opsLimits } from "../limits.ts";
import { hasRoom } from "../disk_room.ts";
import { NewFile } from "../new_file.ts";
import { RestoreError } from "./restore/mod.ts";

/** The newest archives directly below the bucket's prefix, newest first, up to a bound. */
export async function newestArchives(bucket: Bucket): Promise<ListedObject[]> {
  let newest: ListedObject[] = [];
  for await (const object of bucket.list("")) {
    if (!/^[^/]+\.tar\.zst$/.test(object.name)) continue;
    newest.push(object);
    newest.sort((a, b) => b.writtenAt - a.writtenAt || (a.name < b.name ? 1 : -1));
    newest = newest.slice(0, opsLimits.archivesNamedMax);
  }
  return newest;
}

export interface DownloadOptions {
  /** Of the archive. */
  readonly name: string;
  /** Path of the file it is written to (mode 0600); there must be none. */
  readonly path: string;
  readonly stallMs?: number;
}

/**
 * Brings an archive into a file, in pieces that are gone on with when the connection breaks. Returns whether there is such
 * an archive. Throws when it does not come, and for one that does not fit on the disk; there is no file then.
 */
export async function downloadArchive(
  bucket: Bucket,
  { name, path, stallMs = opsLimits.downloadStallMs }: DownloadOptions,
): Promise<boolean> {
  await using object = await openObject(bucket, {
    name,
    stallMs,
    attemptsMax: opsLimits.downloadAttemptsMax,
  });
  if (object === null) return false;
  const { size, chunks } = object;
  if (!await hasRoom(dirname(path), size)) {
    throw new RestoreError(`There is no room on the disk for the ${size} bytes of the archive: free some`);
  }
  await using file = await NewFile.create(path);
  const whenFull = () =>
    new RestoreError("There is no room on the disk for the rest of the archive: free some");
  const writer = file.writable({ whenFull }).getWriter();
  try {
    for await (const chunk of chunks) await writer.write(chunk);
    await writer.close();
  } catch (error) {
    await writer.abort().catch(() => {});
    if (!(error instanceof ObjectLostError)) throw error;
    throw new RestoreError(
      error.why === "gone"
        ? `The archive "${name}" is gone from the bucket`
        : `The archive "${name}" has changed meanwhile: try again`,
    );
  }
  await file.place();
  return true;
}
