/** Backup archives in a bucket: listing and downloading. */
import { dirname } from "node:path";
import type { Bucket, ListedObject } from "../../kit/locations/bucket.ts";
import { ObjectLostError, openObject } from "../../kit/locations/bucket_object.ts";
import { opsLimits } from "../limits.ts";
import { hasDiskSpace } from "../disk_space.ts";
import { NewFile } from "../new_file.ts";
import { RestoreError } from "./restore/mod.ts";

/** Lists the newest archives directly below the bucket's prefix, newest first, up to a limit. */
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
  /** Name of the archive. */
  readonly name: string;
  /** Destination path (mode 0600), which must not exist. */
  readonly path: string;
  readonly stallMs?: number;
}

/**
 * Downloads an archive, resuming after lost connections. Returns whether the archive exists. Throws if the download fails or
 * the disk lacks space, removing the file.
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
  if (!await hasDiskSpace(dirname(path), size)) {
    throw new RestoreError(`Not enough disk space for the archive (${size} bytes). Free disk space`);
  }
  await using file = await NewFile.create(path);
  const whenFull = () =>
    new RestoreError("Not enough disk space for the rest of the archive. Free disk space");
  const writer = file.writable({ whenFull }).getWriter();
  try {
    for await (const chunk of chunks) await writer.write(chunk);
    await writer.close();
  } catch (error) {
    await writer.abort().catch(() => {});
    if (!(error instanceof ObjectLostError)) throw error;
    throw new RestoreError(
      error.why === "gone"
        ? `The archive "${name}" was deleted from the bucket`
        : `The archive "${name}" changed during the download. Try again`,
    );
  }
  await file.publish();
  return true;
}
