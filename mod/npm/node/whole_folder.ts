/**
 * Creates folders with known files atomically, safe against killed processes and power failures.
 *
 * A folder is written under a temporary name and renamed. Syncing thousands of files would delay the start, so it is done
 * later, and a marker file next to the folder records it. A folder without a marker is compared with the expected files,
 * because files may be empty after a power failure.
 */
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { open, readdir, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { hasCode } from "./plain_error.ts";
import { renameWithRetries } from "./rename.ts";

/** A relative path with slashes, the contents, and optionally the path of a file with the same contents to hard-link instead. */
export type FileEntry = readonly [path: string, bytes: Uint8Array, source?: string];

/** Each call restarts the iteration. */
export type Files = () => Iterable<FileEntry>;

const DRAFT_MS_KEPT = 86_400_000;

/** Creates a folder unless it exists. Safe for concurrent calls. */
export function ensureComplete(folder: string, files: Files): void {
  const there = existsSync(folder);
  if (there && (existsSync(markOf(folder)) || isWhole(folder, files))) return;
  // A unique name, even among containers that share process ids.
  const draft = `${folder}.draft-${randomBytes(6).toString("hex")}`;
  try {
    mkdirSync(dirname(draft), { recursive: true });
    removeOldDrafts(folder);
    // The marker belongs to a folder that no longer exists.
    rmSync(markOf(folder), { force: true });
    writeInto(draft, files);
    // Another process may have repaired the folder and be running from it.
    if (there && isWhole(folder, files)) return;
    if (there) renameWithRetries({ from: folder, to: `${draft}-broken` });
    renameWithRetries({ from: draft, to: folder });
  } catch (error) {
    // Another process may have been faster.
    if (!existsSync(folder) || !isWhole(folder, files)) throw error;
  } finally {
    for (const left of [draft, `${draft}-broken`]) rmSync(left, { recursive: true, force: true });
  }
}

/** Syncs a folder to disk and writes the marker. Stops early if `signal` is aborted. */
export async function syncToDisk(folder: string, signal: AbortSignal): Promise<void> {
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
  for (const [path, bytes, source] of files()) {
    const target = join(folder, path);
    const parent = dirname(target);
    if (!made.has(parent)) {
      mkdirSync(parent, { recursive: true });
      made.add(parent);
    }
    if (source !== undefined && linked(source, target)) continue;
    writeFileSync(target, bytes, { mode: path.startsWith("bin/") ? 0o755 : 0o644 });
  }
}

/** Returns whether a hard link could be made: not across disks, nor on all file systems. */
function linked(source: string, target: string): boolean {
  try {
    linkSync(source, target);
    return true;
  } catch {
    return false;
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

/** Removes temporary folders of killed processes after a day. */
function removeOldDrafts(folder: string): void {
  const parent = dirname(folder);
  const before = Date.now() - DRAFT_MS_KEPT;
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(`${basename(folder)}.draft-`)) continue;
    const path = join(parent, name);
    // Another process may be removing it.
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

/** Ignores temporary files of the runtime that vanish in the meantime. */
async function syncFile(path: string, { isFolder }: { readonly isFolder: boolean }): Promise<void> {
  const onWindows = process.platform === "win32";
  // On Windows, folders cannot be opened, and syncing a file needs write permission.
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
