/** The versions of an app's code: bundles in folders named by their hash. The server never serves the author's folder. */
import { dirname, join, relative } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { TimeSlicer } from "../../kit/clock.ts";
import { isDiskFull, removeIfThere, statIfThere, syncFolder, writeDurably } from "../../kit/durable_files.ts";
import { versionLimits } from "../limits.ts";
import { type AppBundle, type AppPlace, BUNDLE_NAME, bundleApp } from "../packages/mod.ts";
import { nameBelow } from "../packages/package_roots.ts";
import { readDeployed } from "./deployed.ts";
import {
  hashOf,
  isHash,
  type Manifest,
  type OldCode,
  type OldTarget,
  sumOf,
  type VersionContent,
} from "./manifest.ts";
import {
  ChangedError,
  checkFiles,
  codeFolder,
  DamagedVersionError,
  holdVersion,
  newFolder,
  readManifest,
  removeUnfinishedVersions,
  removeVersion,
  writeVersion,
} from "./version_files.ts";

/** The name of the bundle in the code folder. The author's files there have other names. */
const OLD_BUNDLE_NAME = "syncline-bundle.js";

/** Writes the bundle and its checksum, unless they exist and match. */
async function bundleOldVersion(
  versionsDir: string,
  { functions, code, files }: {
    readonly functions: string;
    readonly code: OldCode;
    readonly files: Readonly<Record<string, unknown>>;
  },
  { folder, bundle }: { readonly folder: string; readonly bundle: string },
): Promise<void> {
  const sumPath = `${bundle}.sha256`;
  if (await statIfThere(bundle) !== null && await statIfThere(sumPath) !== null) {
    if (sumOf(await Deno.readFile(bundle)).sum === await Deno.readTextFile(sumPath)) return;
  }
  // The bundler finds packages by files that these versions lack, so that it gets relative paths instead.
  const temporary = await newFolder(versionsDir);
  using _lock = temporary.manifest;
  const work = join(await Deno.realPath(temporary.path), "code");
  try {
    for (const path of Object.keys(files)) {
      if (!/\.(?:[cm]?[jt]sx?|json)$/.test(path)) continue;
      await Deno.mkdir(dirname(join(work, path)), { recursive: true });
      const text = await Deno.readTextFile(join(folder, path));
      await Deno.writeTextFile(join(work, path), path.endsWith(".json") ? text : withPaths(text, path, code));
    }
    const made = await bundleApp({ functionsDir: join(work, functions), dataDir: folder, within: work });
    await Deno.writeFile(join(work, OLD_BUNDLE_NAME), made.code, { mode: 0o400 });
    await syncFolder(join(work, OLD_BUNDLE_NAME));
    await removeIfThere(sumPath);
    await Deno.rename(join(work, OLD_BUNDLE_NAME), bundle);
    await Deno.writeTextFile(sumPath, sumOf(made.code).sum);
  } finally {
    await removeIfThere(temporary.path);
  }
}

const SPECIFIER = /(\b(?:from|import)\s*\(?\s*|\brequire(?:\.resolve)?\s*\(\s*)(["'`])([^"'`\\\n$]+)\2/g;

/** Replaces the names of packages by relative paths. */
function withPaths(text: string, path: string, { scopes, table }: OldCode): string {
  const file = table.files[path];
  const scope = Object.keys(scopes).filter((name) => name === "." || `./${path}`.startsWith(`${name}/`))
    .toSorted((a, b) => b.length - a.length)[0] ?? "";
  return text.replace(SPECIFIER, (whole, before: string, quote: string, specifier: string) => {
    const target = before.startsWith("require")
      ? targetOf(file?.requires[specifier])
      : targetOf(file?.imports[specifier]) ?? addressOf(scopes[scope]?.[specifier]);
    if (target === null || target.split("/").includes("..")) return whole;
    const place = relative(dirname(path), target);
    return `${before}${quote}${
      /^node:/.test(target) ? target : place.startsWith(".") ? place : `./${place}`
    }${quote}`;
  });
}

function targetOf(target: OldTarget | undefined): string | null {
  return target?.file ?? addressOf(target?.module);
}

/** The path of a module or CommonJS file, or the name of a module of the runtime. */
function addressOf(address: string | undefined): string | null {
  if (address === undefined) return null;
  if (address.startsWith("./")) return address.slice(2);
  if (!address.startsWith("data:")) return null;
  const source = address.replaceAll("%23", "#").replaceAll("%25", "%");
  const [, builtin] = /^data:text\/javascript,export\*from"(node:[^"]+)"/.exec(source) ?? [];
  if (builtin !== undefined) return builtin;
  const [, path] = /\]\(("(?:[^"\\]|\\.)*")\),n=/.exec(source) ?? [];
  return path === undefined ? null : JSON.parse(path) as string;
}

/** A version that can be loaded. Paths are absolute and real. */
export interface Version {
  readonly hash: string;
  readonly folder: string;
  /** The file that isolates load. */
  readonly bundle: string;
  /** The functions folder in the names of its sources. */
  readonly functions: string;
  /** Folder on the author's disk to which those names are relative. */
  readonly authorFolder: string;
  /** The frontend's folder, or `null`. */
  readonly staticDir: string | null;
  /** Whether it was named by its hash, not made from a local folder. */
  readonly deployed?: true;
}

export interface VersionSource {
  /** The functions folder. Packages are in `node_modules` beside or above it. */
  readonly functionsDir: string;
  /** Name of the parent folder in errors, if the code is not at the author's location. */
  readonly authorFolder?: string;
  /** Whether it must survive a power failure, because it cannot be rebuilt. */
  readonly durable?: boolean;
}

export interface VersionInfo {
  readonly hash: string;
  readonly madeAt: number;
  readonly madeFrom: string;
  /** When it was last loaded, milliseconds since the epoch, or `null`. */
  readonly servedAt: number | null;
  readonly files: number;
  readonly bytes: number;
}

/** Thrown if a version cannot be made or loaded. The message is one line. */
export class VersionError extends Error {
  override readonly name = "VersionError";
}

/** Folder time of a version that was never loaded. */
const NEVER = 0;
/** File with the hash of the app's version that was served last. */
const LAST_SERVED = "last_served";
/** Functions folders of the bundled example and the empty app, also those of another installation. */
const BUNDLED = /\/(?:mod\/config\/empty_app|examples\/chat\/functions)$/;

export class VersionStore {
  readonly #dataDir: string;
  readonly #dir: string;
  /** Versions verified by this process. */
  readonly #checked = new Map<string, Manifest>();
  /** The version made last. Most files of the next one are the same. */
  #newest: Manifest | null = null;

  private constructor(dataDir: string, dir: string) {
    this.#dataDir = dataDir;
    this.#dir = dir;
  }

  /** Returns the app's version that was served last, or `null`. Throws if it is missing or damaged. */
  static async lastServed(dataDir: string): Promise<Manifest | null> {
    const dir = join(dataDir, "versions");
    const hash = await readLastServed(dir);
    if (hash === null) return null;
    const manifest = isHash(hash) ? await readManifest(dir, hash) : null;
    if (manifest === null) throw new VersionError(`The version ${hash}, which was served last, is missing`);
    return manifest;
  }

  /** Opens the versions of a data folder. `folder` is their location in it. */
  static async open(dataDir: string, folder = "versions"): Promise<VersionStore> {
    const dir = join(dataDir, folder);
    try {
      await Deno.mkdir(dir, { recursive: true, mode: 0o700 });
      await removeUnfinishedVersions(dir);
    } catch (error) {
      throw asVersionError(error);
    }
    return new VersionStore(dataDir, await Deno.realPath(dir));
  }

  /** Writes the current code as a version, unless it exists. @throws VersionError, leaving nothing behind. */
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

  /** Imports a version from a folder. @throws VersionError if a file does not match, or the disk is full. */
  async adopt(manifest: Manifest, folder: string): Promise<Version> {
    try {
      const turns = new TimeSlicer();
      if (await this.#soundOrRemoved(manifest.hash, turns) === null) {
        await this.#write(manifest, { from: folder, durable: true, turns });
      }
      return { ...await this.#version(manifest), deployed: true };
    } catch (error) {
      if (error instanceof ChangedError) throw new VersionError("A file does not match the manifest");
      throw asVersionError(error);
    }
  }

  /** Returns the manifest of a version. Throws like {@linkcode VersionStore.get}. */
  async manifest(hash: string): Promise<Manifest> {
    await this.get(hash);
    const manifest = this.#checked.get(hash);
    if (manifest === undefined) throw new VersionError(`There is no version ${hash} in the data folder`);
    return manifest;
  }

  /** Returns a version by hash. @throws VersionError if it does not exist or is damaged. */
  async get(hash: string): Promise<Version> {
    try {
      const manifest = isHash(hash) ? await this.#sound(hash, new TimeSlicer()) : null;
      if (manifest === null) throw new VersionError(`There is no version ${hash} in the data folder`);
      return { ...await this.#version(manifest), deployed: true };
    } catch (error) {
      throw asVersionError(error);
    }
  }

  /** Lists all versions except damaged ones, most recently loaded first. Those never loaded are sorted by creation time. */
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

  /** Locks a version against removal, until disposed. @throws VersionError if it does not exist. */
  async hold({ hash }: Pick<Version, "hash">): Promise<Disposable> {
    const held = await holdVersion(this.#dir, hash);
    if (held === null) throw new VersionError(`The version ${hash} is no longer in the data folder`);
    return held;
  }

  /** Records that a version was loaded, and removes old unused ones. */
  async served({ hash }: Pick<Version, "hash">): Promise<void> {
    const now = new Date();
    await Deno.utime(join(this.#dir, hash), now, now);
    const manifest = this.#checked.get(hash) ?? await readManifest(this.#dir, hash);
    if (manifest !== null && !BUNDLED.test(join(manifest.madeFrom, manifest.functions))) {
      await recordLastServed(this.#dir, hash);
    }
    const [versions, deployed] = [await this.list(), await readDeployed(this.#dataDir).catch(() => null)];
    // A server without a functions folder starts with it, however old it is.
    const kept = new Set([hash, deployed?.current]);
    const unused = versions.filter(({ servedAt, madeAt }) =>
      servedAt === null && madeAt < Date.now() - versionLimits.unusedMs
    );
    for (const old of new Set([...unused, ...versions.slice(versionLimits.kept)])) {
      if (!kept.has(old.hash)) await this.remove(old.hash);
    }
  }

  /** Removes a version unless it is in use. Returns whether it is gone. */
  async remove(hash: string): Promise<boolean> {
    const gone = await removeVersion(this.#dir, hash);
    if (gone) this.#checked.delete(hash);
    return gone;
  }

  async #make(source: VersionSource): Promise<Version> {
    const turns = new TimeSlicer();
    const functionsDir = await Deno.realPath(source.functionsDir);
    const { content, bundle } = await bundleContent({ functionsDir, dataDir: this.#dataDir });
    if (!bundle.unchanged()) throw new ChangedError();
    const hash = hashOf(content);
    const known = await this.#soundOrRemoved(hash, turns);
    const authorFolder = source.authorFolder ?? bundle.folder;
    if (known === null) {
      const manifest = { ...content, hash, madeAt: Date.now(), madeFrom: authorFolder };
      await this.#write(manifest, { from: bundle.code, durable: source.durable ?? false, turns });
    }
    const manifest = known ?? await this.#sound(hash, turns);
    if (manifest === null) throw new ChangedError();
    this.#newest = manifest;
    return await this.#version(manifest, { authorFolder });
  }

  /** Like {@linkcode VersionStore.get}, but returns `null` for a damaged version: it is not running, so it can be rebuilt. */
  async #soundOrRemoved(hash: string, turns: TimeSlicer): Promise<Manifest | null> {
    return await this.#sound(hash, turns).catch(async (error) => {
      if (error instanceof DamagedVersionError && await removeVersion(this.#dir, hash)) return null;
      throw error;
    });
  }

  async #write(
    manifest: Manifest,
    { from, durable, turns }: {
      readonly from: string | Uint8Array<ArrayBuffer>;
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
    await writeVersion(this.#dir, manifest, { from, links: same, durable, turns });
    await Deno.utime(join(this.#dir, manifest.hash), new Date(NEVER), new Date(NEVER));
    // Its files were just verified.
    this.#checked.set(manifest.hash, manifest);
  }

  /** Returns the newest version if it is undamaged, so that damage is not copied. */
  async #lastServed(turns: TimeSlicer): Promise<Manifest | null> {
    const [newest] = await this.list();
    return newest === undefined ? null : await this.#sound(newest.hash, turns).catch(() => null);
  }

  /** Returns the manifest of an undamaged version, or `null`. */
  async #sound(hash: string, turns: TimeSlicer): Promise<Manifest | null> {
    const manifest = await readManifest(this.#dir, hash);
    if (manifest === null || this.#checked.has(hash)) return manifest;
    await checkFiles(this.#dir, manifest, turns);
    this.#checked.set(hash, manifest);
    return manifest;
  }

  async #version(manifest: Manifest, { authorFolder = manifest.madeFrom } = {}): Promise<Version> {
    const { hash, functions, code, static: frontend } = manifest;
    const folder = codeFolder(this.#dir, hash);
    const staticDir = frontend === undefined ? null : join(folder, frontend);
    const bundle = join(folder, code === undefined ? BUNDLE_NAME : OLD_BUNDLE_NAME);
    if (code !== undefined) {
      await bundleOldVersion(this.#dir, { functions, code, files: manifest.files }, { folder, bundle });
    }
    return { hash, folder, bundle, functions, authorFolder, staticDir };
  }
}

function asVersionError(error: unknown): unknown {
  if (isDiskFull(error)) {
    return new VersionError(
      "The disk is full: cannot write a version of the functions in the data folder",
      {
        cause: error,
      },
    );
  }
  if (error instanceof VersionError) return error;
  return new VersionError(error instanceof Error ? error.message : String(error), { cause: error });
}

export async function bundleContent(
  place: AppPlace,
): Promise<{ readonly content: VersionContent; readonly bundle: AppBundle }> {
  const bundle = await bundleApp(place);
  const functions = nameBelow(bundle.folder, place.functionsDir);
  return { content: { functions, files: { [BUNDLE_NAME]: sumOf(bundle.code) } }, bundle };
}

async function readLastServed(versionsDir: string): Promise<string | null> {
  try {
    return await Deno.readTextFile(join(versionsDir, LAST_SERVED));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Servers start while the disk is full: then no version is recorded, rather than an earlier one. */
async function recordLastServed(versionsDir: string, hash: string): Promise<void> {
  if (await readLastServed(versionsDir) === hash) return;
  const path = join(versionsDir, LAST_SERVED);
  try {
    await writeDurably(path, hash);
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    await removeIfThere(path);
  }
}
