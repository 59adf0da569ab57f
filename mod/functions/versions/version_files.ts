/** Versions as folders: written beside the others and renamed when whole, held while they run, checked before they do. */
import { createHash, randomBytes } from "node:crypto";
import { dirname, join, relative } from "node:path";
import { removeIfThere, syncFolder, writeAll } from "../../kit/durable_files.ts";
import { makeLinks } from "../../kit/processes/symbolic_links.ts";
import type { TimeSlicer } from "../../kit/time_slicer.ts";
import { ChangedError } from "./collect.ts";
import { sumOf } from "./file_sums.ts";
import { type Manifest, parseManifest } from "./manifest.ts";

const MANIFEST = "version.json";
/** Folder of the code within a version. */
const CODE = "code";
/** What is being written or removed begins with a dot. */
const NEW = ".new-";
const OLD = ".old-";
/** A folder that is being written has its lock after so long at the latest. */
const UNLOCKED_MS = 60_000;

/** Files up to this are read and written at once. */
const AT_ONCE_BYTES = 1024 * 1024;
/** How files of a version are made. */
const WRITTEN = { createNew: true, mode: 0o400 } as const;

/** A version on disk is not what was written. */
export class DamagedVersionError extends Error {
  override readonly name = "DamagedVersionError";
}

/** Where the code of a version lies. */
export function codeFolder(versionsDir: string, hash: string): string {
  return join(versionsDir, hash, CODE);
}

/** Reads what a version says of itself; `null` when there is none of this name. */
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

/** Looks whether all files of a version are what was written. Throws a {@linkcode DamagedVersionError} that names one. */
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
  for (const [path, target] of Object.entries(manifest.links)) {
    let to;
    try {
      to = join(dirname(path), Deno.readLinkSync(join(folder, path)));
    } catch (error) {
      throw damaged(manifest.hash, error instanceof Error ? error.message : String(error));
    }
    if (to !== target) throw damaged(manifest.hash, `${path} has changed`);
  }
}

function damaged(hash: string, why: string): DamagedVersionError {
  return new DamagedVersionError(`The version ${hash} in the data folder is damaged: ${why}`);
}

export interface WriteOptions {
  /** Folder that the paths of the manifest are below now. */
  readonly from: string;
  /** Files of other versions by their sum, which may be linked to: nobody changes them. */
  readonly links: ReadonlyMap<string, string>;
  /** Whether it must outlast a power failure: what cannot be made again. */
  readonly durable: boolean;
  readonly turns: TimeSlicer;
}

/**
 * Writes a version. What is there under its name already is left when it came meanwhile. Throws a
 * {@linkcode ChangedError} when a file is no longer what the manifest says.
 */
export async function writeVersion(
  versionsDir: string,
  manifest: Manifest,
  options: WriteOptions,
): Promise<void> {
  const temporary = join(versionsDir, `${NEW}${randomBytes(8).toString("hex")}`);
  await Deno.mkdir(temporary, { mode: 0o700 });
  try {
    // Held while it is written, so that nobody takes it for a rest.
    using file = await Deno.open(join(temporary, MANIFEST), { write: true, createNew: true, mode: 0o600 });
    await file.lock(true);
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

async function copyFiles(folder: string, manifest: Manifest, options: WriteOptions): Promise<void> {
  const { functions, files, links: inside } = manifest;
  const { from, links, durable, turns } = options;
  const made = new Set<string>();
  const makeFolder = (path: string) => {
    if (made.has(path)) return;
    Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
    made.add(path);
  };
  makeFolder(join(folder, functions));
  for (const [path, { bytes, sum }] of Object.entries(files)) {
    const target = join(folder, path);
    makeFolder(dirname(target));
    const same = links.get(sum);
    if (same === undefined || !link(same, target)) {
      const found = bytes > AT_ONCE_BYTES
        ? await copyLarge(join(from, path), target)
        : copySmall(join(from, path), target);
      if (found !== sum) throw new ChangedError();
      if (durable) await syncFolder(target);
    }
    await turns.yieldIfDue();
  }
  // All folders are there before the first link is, so none of them is made through one.
  const places = Object.entries(inside).map(([path, to]) => ({ path, to, place: join(folder, path) }));
  for (const { place } of places) makeFolder(dirname(place));
  await makeLinks(
    places.map(({ path, to, place }) => ({ path: place, target: relative(dirname(path), to) })),
  );
  if (durable) { for (const path of made) await syncFolder(path); }
}

/** Small files are read faster at once. Gives back the sum of what was read. */
function copySmall(from: string, to: string): string {
  const content = Deno.readFileSync(from);
  Deno.writeFileSync(to, content, WRITTEN);
  return sumOf(content).sum;
}

/** A large file would hold up everybody else, and take its size of memory: it is read in pieces. `to`: `null` only sums it. */
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

/** `false` where this file cannot have another name: it is gone, has too many, or the disk knows no such names. */
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
    // Another process was faster; what it wrote is the same.
    if ((await Deno.lstat(path).catch(() => null)) === null) throw error;
    await removeIfThere(temporary);
  }
}

/** Keeps a version from being removed, by this process or another, until it is disposed of. `null`: it is gone. */
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
    // Whoever held it alone may have removed it.
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

/** Removes a version unless somebody holds it; says whether it is gone. */
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
    // Under another name first: what is half removed must not look like a version.
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

/** Removes what processes that were killed have left half written or half removed. */
export async function removeRests(versionsDir: string): Promise<void> {
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
