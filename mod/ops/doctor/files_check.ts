/**
 * Checks for files without contents and contents without a file. A server may store and delete files in the meantime: contents
 * exist before their document and are removed after it, and apparent problems are rechecked against a newer state.
 */
import { join } from "node:path";
import { statIfThere } from "../../kit/durable_files.ts";
import { blobsIn } from "../backups/snapshot/stored_files.ts";
import { filesFolder } from "../backups/snapshot/work_folder.ts";
import { doctorLimits } from "../limits.ts";
import type { OnProgress } from "../progress.ts";
import type { Finding } from "./finding.ts";

/** Contents of deleted files that are not removed yet. */
const DELETED = "_deleted_blobs";
const BLOB = /^[0-9a-f]{32}$/;
const SHARDS = 256;

export interface FilesCheckOptions {
  readonly dataDir: string;
  /** Path of the database. */
  readonly database: string;
  /** Minimum age of contents without a file to be reported; newer ones may belong to uploads in progress. */
  readonly orphanAgeMs: number;
  /** Time of an earlier stored database state that may reference them, or `null`. */
  readonly asideSince: number | null;
  readonly now: () => number;
  readonly onProgress?: OnProgress;
}

interface Tally {
  named: number;
  /** Number of contents checked. */
  seen: number;
  missing: number;
  orphans: number;
  /** The first missing one. */
  example: string | null;
}

export async function checkFiles(options: FilesCheckOptions): Promise<Finding> {
  const tally: Tally = { named: 0, seen: 0, missing: 0, orphans: 0, example: null };
  for (const _ of blobsIn(options.database)) tally.named++;
  // Names are processed by groups of folders, so that millions of files do not fill the memory.
  const parts = Math.min(SHARDS, Math.max(1, Math.ceil(tally.named / doctorLimits.namesAtOnceAimed)));
  for (let part = 0; part < parts; part++) {
    const from = Math.floor(part * SHARDS / parts);
    const to = Math.floor((part + 1) * SHARDS / parts);
    await checkPart(tally, { ...options, from, to });
  }
  return findingOf(tally);
}

async function checkPart(
  tally: Tally,
  options: FilesCheckOptions & { readonly from: number; readonly to: number },
): Promise<void> {
  const { database, dataDir, from, to, onProgress } = options;
  const isOfPart = (blob: string) => {
    const shard = parseInt(blob.slice(0, 2), 16);
    return shard >= from && shard < to;
  };
  // In this order, because a file deleted in between is in both.
  const named = new Set(blobsIn(database).filter(isOfPart));
  const deleted = new Set(blobsIn(database, DELETED).filter(isOfPart));
  const orphans = new Set<string>();
  for (let shard = from; shard < to; shard++) {
    const folder = join(filesFolder(dataDir), shard.toString(16).padStart(2, "0"));
    onProgress?.({ what: "Checking file contents", done: tally.seen, of: tally.named, unit: "files" });
    if (await statIfThere(folder) === null) continue;
    for await (const { name } of Deno.readDir(folder)) {
      tally.seen++;
      if (!BLOB.test(name) || named.delete(name) || deleted.has(name)) continue;
      if (orphans.size < doctorLimits.namesAtOnceAimed && await isOld(join(folder, name), options)) {
        orphans.add(name);
      }
    }
  }
  if (named.size === 0 && orphans.size === 0) return;
  for (const blob of blobsIn(database)) {
    orphans.delete(blob);
    if (!named.has(blob)) continue;
    tally.missing++;
    tally.example ??= blob;
  }
  tally.orphans += orphans.size;
}

/** Whether the server's orphan sweep would remove it. */
async function isOld(
  path: string,
  { orphanAgeMs, asideSince, now }: FilesCheckOptions,
): Promise<boolean> {
  const writtenAt = (await statIfThere(path))?.mtime?.getTime();
  return writtenAt !== undefined && writtenAt <= now() - orphanAgeMs && writtenAt > (asideSince ?? -Infinity);
}

function findingOf({ named, missing, orphans, example }: Tally): Finding {
  const left = orphans === 0
    ? ""
    : `${orphans} orphaned file contents, which the server's next cleanup removes`;
  if (missing > 0) {
    const message = `the contents of ${missing} of ${named} files are missing, such as "${example}"`;
    return { check: "files", status: "fail", message: left === "" ? message : `${message}; ${left}` };
  }
  if (left !== "") return { check: "files", status: "warn", message: left };
  return { check: "files", status: "ok", message: `${named} files, all with contents` };
}
