/**
 * Folders of files that are known: made once, whole or not at all, whoever is killed and whenever the power fails.
 *
 * A folder is written beside its place and renamed. Bringing thousands of files to the disk takes longer than a start may, so
 * it is done later, and a mark beside the folder says that it is done. A folder without the mark is compared with what is to
 * be in it: after a power failure its files may be empty.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { open, readdir, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { hasCode } from "./plain_error.ts";
import { renamePatiently } from "./rename.ts";

/** A path in the folder, with slashes, and contents. */
export type FileEntry = readonly [path: string, bytes: Uint8Array];

/** Each call begins anew. */
export type Files = () => Iterable<FileEntry>;

const DRAFT_MS_KEPT = 86_400_000;

/** Makes a folder unless it is there, however many begin at once. */
export function makeWhole(folder: string, files: Files): void {
  const there = existsSync(folder);
  if (there && (existsSync(markOf(folder)) || isWhole(folder, files))) return;
  // A name that nobody else has, not even another of this process id in another container.
  const draft = `${folder}.draft-${randomBytes(6).toString("hex")}`;
  try {
    mkdirSync(dirname(draft), { recursive: true });
    removeOldDrafts(folder);
    // It speaks of a folder that is gone.
    rmSync(markOf(folder), { force: true });
    writeInto(draft, files);
    // Somebody else may have mended it meanwhile, and runs from it.
    if (there && isWhole(folder, files)) return;
    if (there) renamePatiently({ from: folder, to: `${draft}-broken` });
    renamePatiently({ from: draft, to: folder });
  } catch (error) {
    // Somebody else may have been faster.
    if (!existsSync(folder) || !isWhole(folder, files)) throw error;
  } finally {
    for (const left of [draft, `${draft}-broken`]) rmSync(left, { recursive: true, force: true });
  }
}

/** Brings a folder to the disk, and says so for the next start. Ends early when `signal` says so. */
export async function bringToDisk(folder: string, signal: AbortSignal): Promise<void> {
  if (existsSync(markOf(folder))) return;
  await syncAll(folder, signal);
  await syncFile(dirname(folder), { isFolder: true });
  if (signal.aborted) return;
  await writeFile(markOf(folder), "");
}

function markOf(folder: string): string {
  return `${folder}.on-disk`;
}

function writeInto(folder: string, files: Files): void {
  const made = new Set<string>();
  for (const [path, bytes] of files()) {
    const target = join(folder, path);
    const parent = dirname(target);
    if (!made.has(parent)) {
      mkdirSync(parent, { recursive: true });
      made.add(parent);
    }
    writeFileSync(target, bytes);
  }
}

function isWhole(folder: string, files: Files): boolean {
  for (const [path, bytes] of files()) {
    const target = join(folder, path);
    if (statSync(target, { throwIfNoEntry: false })?.size !== bytes.length) return false;
    if (!readFileSync(target).equals(bytes)) return false;
  }
  return true;
}

/** Those of processes that were killed: nobody needs a day for one. */
function removeOldDrafts(folder: string): void {
  const parent = dirname(folder);
  const before = Date.now() - DRAFT_MS_KEPT;
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(`${basename(folder)}.draft-`)) continue;
    const path = join(parent, name);
    // Somebody else may be removing it.
    const changed = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
    if (changed < before) rmSync(path, { recursive: true, force: true });
  }
}

async function syncAll(folder: string, signal: AbortSignal): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (signal.aborted) return;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await syncAll(path, signal);
    else await syncFile(path, { isFolder: false });
  }
  await syncFile(folder, { isFolder: true });
}

/** What the runtime keeps there for itself may have gone by then. */
async function syncFile(path: string, { isFolder }: { readonly isFolder: boolean }): Promise<void> {
  const onWindows = process.platform === "win32";
  // There a folder cannot be opened, and only who may write to a file can bring it to the disk.
  if (isFolder && onWindows) return;
  let file;
  try {
    file = await open(path, onWindows ? "r+" : "r");
    await file.sync();
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
  } finally {
    await file?.close();
  }
}
