/** Version folders: written under a temporary name and renamed, locked while in use, verified before use. */
import { createHash, randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import { removeIfThere, syncFolder, writeAll } from "../../kit/durable_files.ts";
import type { TimeSlicer } from "../../kit/clock.ts";
import { type Manifest, parseManifest, sumOf } from "./manifest.ts";

const MANIFEST = "version.json";
const CODE = "code";
/** Prefix of folders that are being written or removed. */
const NEW = ".new-";
const OLD = ".old-";
/** Time within which a folder that is being written is locked. */
const UNLOCKED_MS = 60_000;

/** Files up to this size are read and written in one piece. */
const AT_ONCE_BYTES = 1024 * 1024;
const WRITTEN = { createNew: true, mode: 0o400 } as const;

/** Thrown if a file changed since it was read. */
export class ChangedError extends Error {
  constructor() {
    super("The app's files keep changing");
  }
}

/** Thrown if a version on disk does not match its manifest. */
export class DamagedVersionError extends Error {
  override readonly name = "DamagedVersionError";
}

export function codeFolder(versionsDir: string, hash: string): string {
  return join(versionsDir, hash, CODE);
}

/** Reads a manifest. Returns `null` if the version does not exist. */
export async function readManifest(versionsDir: string, hash: string): Promise<Manifest | null> {
  let text;
  try {
    text = await Deno.readTextFile(join(versionsDir, hash, MANIFEST));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return null;
    throw error;
  }
  try {
    return parseManifest(text, hash);
  } catch (error) {
    throw damaged(hash, error instanceof Error ? error.message : String(error));
  }
}

/** Verifies all files of a version. @throws DamagedVersionError naming the first mismatch. */
export async function checkFiles(versionsDir: string, manifest: Manifest, turns: TimeSlicer): Promise<void> {
  const folder = codeFolder(versionsDir, manifest.hash);
  for (const [path, { bytes, sum }] of Object.entries(manifest.files)) {
    let found;
    try {
      const place = join(folder, path);
      found = bytes > AT_ONCE_BYTES ? await copyLarge(place, null) : sumOf(Deno.readFileSync(place)).sum;
    } catch (error) {
      throw damaged(manifest.hash, error instanceof Error ? error.message : String(error));
    }
    if (found !== sum) throw damaged(manifest.hash, `${path} has changed`);
    await turns.yieldIfDue();
  }
}

function damaged(hash: string, why: string): DamagedVersionError {
  return new DamagedVersionError(`The version ${hash} in the data folder is damaged: ${why}`);
}

export interface WriteOptions {
  /** The folder that currently contains the files, or the contents of the only file. */
  readonly from: string | Uint8Array<ArrayBuffer>;
  /** Files of other versions by hash, which can be hard-linked because they are immutable. */
  readonly links: ReadonlyMap<string, string>;
  /** Whether it must survive a power failure, because it cannot be rebuilt. */
  readonly durable: boolean;
  readonly turns: TimeSlicer;
}

/** Writes a version, unless another process just did. @throws ChangedError if a file does not match the manifest. */
export async function writeVersion(
  versionsDir: string,
  manifest: Manifest,
  options: WriteOptions,
): Promise<void> {
  const { path: temporary, manifest: file } = await newFolder(versionsDir);
  using _lock = file;
  try {
    await copyFiles(join(temporary, CODE), manifest, options);
    await Deno.writeTextFile(join(temporary, MANIFEST), JSON.stringify(manifest));
    if (options.durable) await file.sync();
    await renameInto(temporary, join(versionsDir, manifest.hash));
    if (options.durable) await syncFolder(versionsDir);
  } catch (error) {
    await removeIfThere(temporary);
    throw error;
  }
}

/** Creates a temporary folder with an empty manifest, which is locked so that no one removes the folder as a leftover. */
export async function newFolder(
  versionsDir: string,
): Promise<{ readonly path: string; readonly manifest: Deno.FsFile }> {
  const path = join(versionsDir, `${NEW}${randomBytes(8).toString("hex")}`);
  await Deno.mkdir(path, { mode: 0o700 });
  const manifest = await Deno.open(join(path, MANIFEST), { write: true, createNew: true, mode: 0o600 });
  await manifest.lock(true);
  return { path, manifest };
}

async function copyFiles(folder: string, manifest: Manifest, options: WriteOptions): Promise<void> {
  const { from, links, durable, turns } = options;
  const made = new Set<string>();
  const makeFolder = (path: string) => {
    if (made.has(path)) return;
    Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
    made.add(path);
  };
  makeFolder(folder);
  for (const [path, { bytes, sum }] of Object.entries(manifest.files)) {
    const target = join(folder, path);
    makeFolder(dirname(target));
    const same = links.get(sum);
    if (same === undefined || !link(same, target)) {
      const found = typeof from !== "string"
        ? writeWhole(from, target)
        : bytes > AT_ONCE_BYTES
        ? await copyLarge(join(from, path), target)
        : writeWhole(Deno.readFileSync(join(from, path)), target);
      if (found !== sum) throw new ChangedError();
      if (durable) await syncFolder(target);
    }
    await turns.yieldIfDue();
  }
  if (durable) { for (const path of made) await syncFolder(path); }
}

/** Writes a file in one piece. Returns the hash of its content. */
function writeWhole(content: Uint8Array<ArrayBuffer>, to: string): string {
  Deno.writeFileSync(to, content, WRITTEN);
  return sumOf(content).sum;
}

/** Copies a large file in chunks, which bounds memory and yields to other work. With `to` `null` it is only hashed. */
async function copyLarge(from: string, to: string | null): Promise<string> {
  const buffer = new Uint8Array(AT_ONCE_BYTES / 4);
  const sum = createHash("sha256");
  using source = await Deno.open(from);
  using target = to === null ? null : await Deno.open(to, { write: true, ...WRITTEN });
  for (;;) {
    const count = await source.read(buffer);
    if (count === null) return sum.digest("hex");
    const part = buffer.subarray(0, count);
    sum.update(part);
    if (target !== null) await writeAll(target, part);
  }
}

/** Returns `false` if the file cannot be linked: it is missing, has too many links, or the file system has none. */
function link(path: string, target: string): boolean {
  try {
    Deno.linkSync(path, target);
    return true;
  } catch {
    return false;
  }
}

async function renameInto(temporary: string, path: string): Promise<void> {
  try {
    await Deno.rename(temporary, path);
  } catch (error) {
    // Another process wrote the same version first.
    if ((await Deno.lstat(path).catch(() => null)) === null) throw error;
    await removeIfThere(temporary);
  }
}

/** Locks a version against removal by any process, until disposed. Returns `null` if it does not exist. */
export async function holdVersion(versionsDir: string, hash: string): Promise<Disposable | null> {
  const path = join(versionsDir, hash, MANIFEST);
  let file;
  try {
    file = await Deno.open(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  try {
    await file.lock(false);
    // A process with an exclusive lock may have removed it.
    if ((await Deno.stat(path)).ino === (await file.stat()).ino) return file;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) {
      file.close();
      throw error;
    }
  }
  file.close();
  return null;
}

/** Removes a version unless it is in use. Returns whether it is gone. */
export async function removeVersion(versionsDir: string, hash: string): Promise<boolean> {
  const folder = join(versionsDir, hash);
  let file;
  try {
    file = await Deno.open(join(folder, MANIFEST));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  try {
    if (file !== undefined && !await file.tryLock(true)) return false;
    // Renamed first: a partially removed folder must not look like a version.
    const rest = join(versionsDir, `${OLD}${randomBytes(8).toString("hex")}`);
    await Deno.rename(folder, rest);
    await removeIfThere(rest);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return true;
    throw error;
  } finally {
    file?.close();
  }
}

/** Removes folders left by killed processes. */
export async function removeUnfinishedVersions(versionsDir: string): Promise<void> {
  for await (const { name } of Deno.readDir(versionsDir)) {
    const path = join(versionsDir, name);
    if (name.startsWith(OLD) || (name.startsWith(NEW) && await isLeft(path))) await removeIfThere(path);
  }
}

async function isLeft(folder: string): Promise<boolean> {
  try {
    using file = await Deno.open(join(folder, MANIFEST));
    return await file.tryLock(true);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    const found = await Deno.stat(folder).catch(() => null);
    return found !== null && Date.now() - (found.mtime?.getTime() ?? 0) > UNLOCKED_MS;
  }
}
