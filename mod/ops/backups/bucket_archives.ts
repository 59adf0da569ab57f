/** Archives in a bucket, for a restore: which there are, and one of them brought here. */
import { dirname } from "node:path";
import type { Bucket, ListedObject } from "../../kit/bucket.ts";
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
  const first = await bucket.read(name);
  if (first === null) return false;
  const { size, version } = first;
  if (!await hasRoom(dirname(path), size)) {
    await first.body.cancel();
    throw new RestoreError(`There is no room on the disk for the ${size} bytes of the archive: free some`);
  }
  await using file = await NewFile.create(path);
  const whenFull = () =>
    new RestoreError("There is no room on the disk for the rest of the archive: free some");
  const writer = file.writable({ whenFull }).getWriter();
  let received = 0;
  let body: ReadableStream<Uint8Array<ArrayBuffer>> | null = first.body;
  try {
    for (let vain = 0; received < size; vain++) {
      const before = received;
      let broken: unknown = new Error("the connection ended");
      try {
        body ??= (await bucket.read(name, { part: { start: received, end: size - 1 }, version }))?.body ??
          null;
        if (body === null) throw new RestoreError(`The archive "${name}" is gone from the bucket`);
        for await (const chunk of chunksOf(body, stallMs)) {
          received += chunk.length;
          if (received > size) {
            throw new RestoreError(`The archive "${name}" has changed meanwhile: try again`);
          }
          await writer.write(chunk);
        }
      } catch (error) {
        if (error instanceof RestoreError) throw error;
        broken = error;
      }
      body = null;
      if (received > before) vain = 0;
      if (received < size && vain >= opsLimits.downloadAttemptsMax) throw broken;
    }
    await writer.close();
  } catch (error) {
    await writer.abort().catch(() => {});
    throw error;
  }
  await file.place();
  return true;
}

/** The chunks of a body until it ends; one that stands still for too long ends too. */
async function* chunksOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  stallMs: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  const cancel = () => reader.cancel().catch(() => {});
  try {
    for (;;) {
      const timer = setTimeout(cancel, stallMs);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      yield value;
    }
  } finally {
    await cancel();
  }
}
