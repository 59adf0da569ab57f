/** Durable changes of files, symbolic links, and reasons of file errors. */
import { randomBytes } from "node:crypto";
import { basename, dirname, join } from "node:path";

/** Describes why a file or folder cannot be used. */
export function fileErrorReason(error: unknown): string {
  // Commands may use all files of their user except those that control the system; other processes may use fewer.
  if (error instanceof Deno.errors.NotCapable) {
    return "this process has no permission to use it";
  }
  return error instanceof Error ? error.message : String(error);
}

export interface SymbolicLink {
  /** Path of the new link; must not exist. */
  readonly path: string;
  /** Path the link refers to; need not exist. */
  readonly target: string;
}

/** Links each pair of arguments. Never replaces a file. */
const SCRIPT = `while [ "$#" -gt 0 ]; do ln -s -n "$1" "$2" || exit; shift 2; done`;
/** Bounds the length of the command line. */
const LINKS_AT_ONCE = 64;

/** Creates links with the shell where this process lacks the full read and write permission that links require. */
export async function makeLinks(links: readonly SymbolicLink[]): Promise<void> {
  for (let from = 0; from < links.length; from += LINKS_AT_ONCE) {
    const some = links.slice(from, from + LINKS_AT_ONCE);
    if (await hasFullFileAccess()) { for (const { target, path } of some) await Deno.symlink(target, path); }
    else await makeLinksInShell(some);
  }
}

async function hasFullFileAccess(): Promise<boolean> {
  const states = await Promise.all(
    (["read", "write"] as const).map((name) => Deno.permissions.query({ name })),
  );
  return states.every(({ state }) => state === "granted");
}

async function makeLinksInShell(links: readonly SymbolicLink[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("sh", {
    args: ["-c", SCRIPT, "sh", ...links.flatMap(({ target, path }) => [target, path])],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr).trim() || "A link could not be made");
}

/** Replaces a file atomically and durably; only the server's user can read it. */
export async function writeDurably(path: string, text: string): Promise<void> {
  await using staged = await stageDurably(path, text);
  await staged.commit();
}

/** A synced file under a temporary name; removed when disposed of before `commit`. */
export interface StagedFile extends AsyncDisposable {
  /** Renames it to its final name, replacing an existing file. */
  commit(): Promise<void>;
}

/** The first half of {@linkcode writeDurably}: everything that needs disk space. */
export async function stageDurably(path: string, text: string): Promise<StagedFile> {
  const folder = dirname(path);
  const temporary = join(folder, `.${basename(path)}.${randomBytes(6).toString("hex")}`);
  try {
    await Deno.writeTextFile(temporary, text, { createNew: true, mode: 0o600 });
    using file = await Deno.open(temporary);
    await file.sync();
  } catch (error) {
    await Deno.remove(temporary).catch(() => {});
    throw error;
  }
  let isPut = false;
  return {
    async commit() {
      await Deno.rename(temporary, path);
      isPut = true;
      await syncFolder(folder);
    },
    async [Symbol.asyncDispose]() {
      if (!isPut) await Deno.remove(temporary).catch(() => {});
    },
  };
}

export async function syncFile(path: string): Promise<void> {
  using file = await Deno.open(path, { write: true });
  await file.sync();
}

/** Syncs a folder's entries: created, removed and renamed files. */
export async function syncFolder(folder: string): Promise<void> {
  using file = await Deno.open(folder);
  await file.sync();
}

export async function writeAll(file: Pick<Deno.FsFile, "write">, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;) written += await file.write(bytes.subarray(written));
}

/** Removes a file, or a folder with its contents, if it exists. */
export async function removeIfThere(path: string): Promise<void> {
  try {
    await Deno.remove(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

export async function statIfThere(path: string): Promise<Deno.FileInfo | null> {
  try {
    return await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

const FULL: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT", "disk_full"]);

/** SQLite's result code, and its name, which is all that `exec` and `backup` of `node:sqlite` report. */
const SQLITE_FULL = { code: 13, message: "database or disk is full" };

/**
 * Whether an error, or one that caused it, says that the disk is full, or this user's quota of it. Decides by codes: an error
 * that another process reported must get the code `disk_full` again.
 */
export function isDiskFull(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 10; cause = cause.cause, depth++) {
    const { code, errcode } = cause as { readonly code?: unknown; readonly errcode?: unknown };
    if (FULL.has(code)) return true;
    if (code !== "ERR_SQLITE_ERROR") continue;
    if (
      typeof errcode === "number"
        ? (errcode & 0xff) === SQLITE_FULL.code
        : cause.message === SQLITE_FULL.message
    ) {
      return true;
    }
  }
  return false;
}
