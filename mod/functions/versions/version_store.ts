/**
 * The versions of an app's code: copies of the functions and of the packages they use, each in a folder named by its hash
 * and never changed after it was written. What is served is one of them, and not what lies where the author works.
 */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isDiskFull } from "../../kit/durable_files.ts";
import { TimeSlicer } from "../../kit/time_slicer.ts";
import { versionLimits } from "../limits.ts";
import type { AppCode } from "../packages/app_code.ts";
import { ChangedError, type Collected } from "./collect.ts";
import { ContentReader } from "./content.ts";
import { readDeployed } from "./deployed.ts";
import { hashOf, isHash, type Manifest } from "./manifest.ts";
import {
  checkFiles,
  codeFolder,
  DamagedVersionError,
  holdVersion,
  readManifest,
  removeRests,
  removeVersion,
  writeVersion,
} from "./version_files.ts";

/** A version that can be loaded. Paths are absolute and real. */
export interface Version {
  readonly hash: string;
  /** Everything of it lies below this folder. */
  readonly folder: string;
  readonly functionsDir: string;
  /** What {@linkcode folder} is a copy of: errors name files as the author knows them. */
  readonly authorFolder: string;
  readonly code: AppCode;
  /** Folder of the front end that came with the functions; `null` when none did. */
  readonly staticDir: string | null;
  /** Whether it is known by its hash alone, and not made of a folder of this machine. */
  readonly deployed?: true;
}

/** Where the code of a version comes from. */
export interface VersionSource {
  /** The app's functions; packages lie in `node_modules` beside or above it. */
  readonly functionsDir: string;
  /** What errors call the folder above the functions, when the code is not where its author has it. */
  readonly authorFolder?: string;
  /** Whether it must outlast a power failure, because it cannot be made again. */
  readonly durable?: boolean;
}

/** A version as it is listed. */
export interface VersionInfo {
  readonly hash: string;
  readonly madeAt: number;
  readonly madeFrom: string;
  /** When it was loaded last, in milliseconds since 1970; `null` when it never was. */
  readonly servedAt: number | null;
  readonly files: number;
  readonly bytes: number;
}

/** A version cannot be made or loaded; the message is one line that says why. */
export class VersionError extends Error {
  override readonly name = "VersionError";
}

/** A version that was never loaded has this time on its folder. */
const NEVER = 0;

export class VersionStore {
  readonly #dataDir: string;
  readonly #dir: string;
  readonly #contents = new ContentReader();
  /** Versions whose files were looked at by this process. */
  readonly #checked = new Map<string, Manifest>();
  /** The version made last: most files of the next one are the same. */
  #newest: Manifest | null = null;

  private constructor(dataDir: string, dir: string) {
    this.#dataDir = dataDir;
    this.#dir = dir;
  }

  /** Opens the versions of a data folder. `folder`: where they lie in it. */
  static async open(dataDir: string, folder = "versions"): Promise<VersionStore> {
    const dir = join(dataDir, folder);
    try {
      await Deno.mkdir(dir, { recursive: true, mode: 0o700 });
      await removeRests(dir);
    } catch (error) {
      throw asVersionError(error);
    }
    return new VersionStore(dataDir, await Deno.realPath(dir));
  }

  /**
   * The version of this code as it is now: written, unless it is there. Throws a {@linkcode VersionError} when something
   * cannot be read or must not be part of it, and when there is no room for it; then nothing is left behind.
   */
  async make(source: VersionSource): Promise<Version> {
    for (let tries = 1;; tries++) {
      try {
        return await this.#make(source);
      } catch (error) {
        const changed = error instanceof ChangedError || error instanceof Deno.errors.NotFound;
        if (!changed || tries >= versionLimits.triesMax) throw asVersionError(error);
        await delay(versionLimits.retryMs);
      }
    }
  }

  /**
   * Takes a version that was made elsewhere: its files lie below a folder, as the manifest says. Throws a {@linkcode VersionError}
   * when one of them is another, and when there is no room.
   */
  async adopt(manifest: Manifest, folder: string): Promise<Version> {
    try {
      const turns = new TimeSlicer();
      if (await this.#soundOrRemoved(manifest.hash, turns) === null) {
        await this.#write(manifest, { collected: { folder }, durable: true, turns });
      }
      return { ...this.#version(manifest), deployed: true };
    } catch (error) {
      if (error instanceof ChangedError) throw new VersionError("A file is not what the manifest says");
      throw asVersionError(error);
    }
  }

  /** The manifest of a version that is there. Throws like {@linkcode VersionStore.get}. */
  async manifest(hash: string): Promise<Manifest> {
    await this.get(hash);
    const manifest = this.#checked.get(hash);
    if (manifest === undefined) throw new VersionError(`There is no version ${hash} in the data folder`);
    return manifest;
  }

  /** The version of this hash. Throws a {@linkcode VersionError} when there is none, or when it is damaged. */
  async get(hash: string): Promise<Version> {
    try {
      const manifest = isHash(hash) ? await this.#sound(hash, new TimeSlicer()) : null;
      if (manifest === null) throw new VersionError(`There is no version ${hash} in the data folder`);
      return { ...this.#version(manifest), deployed: true };
    } catch (error) {
      throw asVersionError(error);
    }
  }

  /** All versions, those loaded last first; what never was stands by when it was made. Damaged ones are left out. */
  async list(): Promise<VersionInfo[]> {
    const versions: VersionInfo[] = [];
    for await (const { name } of Deno.readDir(this.#dir)) {
      if (!isHash(name)) continue;
      const manifest = this.#checked.get(name) ?? await readManifest(this.#dir, name).catch(() => null);
      const folder = await Deno.stat(join(this.#dir, name)).catch(() => null);
      if (manifest === null || folder === null) continue;
      const { hash, madeAt, madeFrom, files } = manifest;
      const sizes = Object.values(files);
      const servedAt = folder.mtime?.getTime() ?? NEVER;
      versions.push({
        hash,
        madeAt,
        madeFrom,
        servedAt: servedAt === NEVER ? null : servedAt,
        files: sizes.length,
        bytes: sizes.reduce((sum, { bytes }) => sum + bytes, 0),
      });
    }
    const at = ({ servedAt, madeAt }: VersionInfo) => servedAt ?? madeAt;
    return versions.sort((a, b) => at(b) - at(a));
  }

  /** Keeps a version from being removed until that is disposed of. Throws a {@linkcode VersionError} when it is gone. */
  async hold({ hash }: Pick<Version, "hash">): Promise<Disposable> {
    const held = await holdVersion(this.#dir, hash);
    if (held === null) throw new VersionError(`The version ${hash} is gone from the data folder`);
    return held;
  }

  /** Notes that a version is loaded, and removes old ones that nobody uses. */
  async served({ hash }: Pick<Version, "hash">): Promise<void> {
    const now = new Date();
    await Deno.utime(join(this.#dir, hash), now, now);
    const [versions, deployed] = [await this.list(), await readDeployed(this.#dataDir).catch(() => null)];
    // A server without a functions folder starts with it, however many others were served since.
    const kept = new Set([hash, deployed?.current]);
    const unused = versions.filter(({ servedAt, madeAt }) =>
      servedAt === null && madeAt < Date.now() - versionLimits.unusedMs
    );
    for (const old of new Set([...unused, ...versions.slice(versionLimits.kept)])) {
      if (!kept.has(old.hash)) await this.remove(old.hash);
    }
  }

  /** Removes a version unless it is in use; says whether it is gone. */
  async remove(hash: string): Promise<boolean> {
    const gone = await removeVersion(this.#dir, hash);
    if (gone) this.#checked.delete(hash);
    return gone;
  }

  async #make(source: VersionSource): Promise<Version> {
    const turns = new TimeSlicer();
    const functionsDir = await Deno.realPath(source.functionsDir);
    const { content, collected } = await this.#contents.read({ functionsDir, dataDir: this.#dataDir }, turns);
    const hash = hashOf(content);
    const known = await this.#soundOrRemoved(hash, turns);
    const authorFolder = source.authorFolder ?? collected.folder;
    if (known === null) {
      const manifest = { ...content, hash, madeAt: Date.now(), madeFrom: authorFolder };
      await this.#write(manifest, { collected, durable: source.durable ?? false, turns });
    }
    const manifest = known ?? await this.#sound(hash, turns);
    if (manifest === null) throw new ChangedError();
    this.#newest = manifest;
    return this.#version(manifest, { authorFolder });
  }

  /** Like {@linkcode VersionStore.get}; `null` for a damaged one that can be made again, because it does not run. */
  async #soundOrRemoved(hash: string, turns: TimeSlicer): Promise<Manifest | null> {
    return await this.#sound(hash, turns).catch(async (error) => {
      if (error instanceof DamagedVersionError && await removeVersion(this.#dir, hash)) return null;
      throw error;
    });
  }

  async #write(
    manifest: Manifest,
    { collected, durable, turns }: {
      readonly collected: Pick<Collected, "folder">;
      readonly durable: boolean;
      readonly turns: TimeSlicer;
    },
  ): Promise<void> {
    const same = new Map<string, string>();
    const newest = this.#newest ?? await this.#lastServed(turns);
    if (newest !== null) {
      const folder = codeFolder(this.#dir, newest.hash);
      for (const [path, { sum }] of Object.entries(newest.files)) same.set(sum, join(folder, path));
    }
    await writeVersion(this.#dir, manifest, { from: collected.folder, links: same, durable, turns });
    await Deno.utime(join(this.#dir, manifest.hash), new Date(NEVER), new Date(NEVER));
    // Its files were just compared with their sums.
    this.#checked.set(manifest.hash, manifest);
  }

  /** The newest version, if its files are still what was written: damage must not be passed on. */
  async #lastServed(turns: TimeSlicer): Promise<Manifest | null> {
    const [newest] = await this.list();
    return newest === undefined ? null : await this.#sound(newest.hash, turns).catch(() => null);
  }

  /** The manifest of a version whose files are what was written; `null` when there is none. */
  async #sound(hash: string, turns: TimeSlicer): Promise<Manifest | null> {
    const manifest = await readManifest(this.#dir, hash);
    if (manifest === null || this.#checked.has(hash)) return manifest;
    await checkFiles(this.#dir, manifest, turns);
    this.#checked.set(hash, manifest);
    return manifest;
  }

  #version(manifest: Manifest, { authorFolder = manifest.madeFrom } = {}): Version {
    const { hash, functions, code, static: frontend } = manifest;
    const folder = codeFolder(this.#dir, hash);
    const staticDir = frontend === undefined ? null : join(folder, frontend);
    return { hash, folder, functionsDir: join(folder, functions), authorFolder, code, staticDir };
  }
}

function asVersionError(error: unknown): unknown {
  if (isDiskFull(error)) {
    return new VersionError(
      "There is no room on the disk for a version of the functions in the data folder",
      {
        cause: error,
      },
    );
  }
  if (error instanceof VersionError) return error;
  return new VersionError(error instanceof Error ? error.message : String(error), { cause: error });
}
