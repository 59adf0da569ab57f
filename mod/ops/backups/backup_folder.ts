/** Folder of the backups made by administrators. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { removeIfThere, syncFolder } from "../../kit/durable_files.ts";
import { ArchiveError } from "./archive/frames.ts";
import type { ArchiveManifest } from "./archive/mod.ts";
import { removeAbandonedFiles } from "../new_file.ts";

/** A backup, described by its manifest. */
export interface StoredBackup {
  readonly name: string;
  /** Bytes of the file. */
  readonly size: number;
  /** ISO 8601, in UTC. */
  readonly createdAt: string;
  /** Timestamp of the newest commit in it. */
  readonly ts: number;
  readonly parts: ArchiveManifest["parts"];
}

/** A file that cannot be read as a backup. */
export interface DamagedBackup {
  readonly name: string;
  readonly size: number;
  /** Modification time of the file: ISO 8601, in UTC. */
  readonly createdAt: string;
  readonly error: string;
}

/** A cached manifest. */
interface KnownFile {
  /** Changes with the file; `null` if the file must be read again. */
  readonly version: string | null;
  readonly backup: StoredBackup | DamagedBackup;
}

/** Names that cannot refer to anything outside the folder. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.tar\.zst$/;

export class BackupFolder {
  readonly path: string;
  /** By name, while the file is unchanged. Maintained by `list`. */
  #known: ReadonlyMap<string, KnownFile> = new Map();

  private constructor(path: string) {
    this.path = path;
  }

  /** Opens the folder, creating it if missing (mode 0700), and removes unfinished files of killed processes. */
  static async open(path: string): Promise<BackupFolder> {
    await Deno.mkdir(path, { recursive: true, mode: 0o700 });
    await removeAbandonedFiles(path);
    return new BackupFolder(path);
  }

  newName(now: Date): string {
    const time = now.toISOString().replaceAll(/[-:]|\.\d+/g, "");
    return `backup-${time}-${randomBytes(4).toString("hex")}.tar.zst`;
  }

  /** Returns the path of a backup; `null` for invalid names. */
  pathOf(name: string): string | null {
    return NAME.test(name) ? join(this.path, name) : null;
  }

  /** Lists all backups, newest first. Manifests of unchanged files are cached. */
  async list(): Promise<(StoredBackup | DamagedBackup)[]> {
    const found = new Map<string, KnownFile>();
    for await (const { name, isFile } of Deno.readDir(this.path)) {
      if (!isFile || !NAME.test(name)) continue;
      const facts = await this.#factsOf(name);
      if (facts !== null) found.set(name, facts);
    }
    this.#known = found;
    return [...found.values()].map(({ backup }) => backup).sort(newestFirst);
  }

  /** Returns one backup, or `null`. */
  async find(name: string): Promise<StoredBackup | DamagedBackup | null> {
    if (!NAME.test(name)) return null;
    return (await this.#factsOf(name))?.backup ?? null;
  }

  /** Opens a backup for reading, or returns `null`. */
  async read(name: string): Promise<{ readonly file: Deno.FsFile; readonly size: number } | null> {
    const path = this.pathOf(name);
    const info = path === null ? null : await lstatIfThere(path);
    const file = path === null || !info?.isFile ? null : await openIfThere(path);
    return file === null ? null : { file, size: (await file.stat()).size };
  }

  async remove(name: string): Promise<boolean> {
    const path = this.pathOf(name);
    const info = path === null ? null : await lstatIfThere(path);
    if (path === null || !info?.isFile) return false;
    await removeIfThere(path);
    await syncFolder(this.path);
    return true;
  }

  /** `null` if the file is gone. */
  async #factsOf(name: string): Promise<KnownFile | null> {
    const path = join(this.path, name);
    const info = await lstatIfThere(path);
    if (!info?.isFile) return null;
    const version = `${info.mtime?.getTime()} ${info.size}`;
    const known = this.#known.get(name);
    if (known?.version === version) return known;
    const common = { name, size: info.size };
    try {
      const { readManifest } = await import("./archive/read_manifest.ts");
      const file = await openIfThere(path);
      if (file === null) return null;
      const { createdAt, ts, parts } = await readManifest(file.readable);
      return { version, backup: { ...common, createdAt, ts, parts } };
    } catch (error) {
      // A damaged file is listed with its error.
      const createdAt = (info.mtime ?? new Date(0)).toISOString();
      const reason = error instanceof Error ? error.message : String(error);
      return {
        // Errors of the disk or of permissions may go away while the file stays the same, so they are not cached.
        version: error instanceof ArchiveError ? version : null,
        backup: { ...common, createdAt, error: reason },
      };
    }
  }
}

function newestFirst(a: StoredBackup | DamagedBackup, b: StoredBackup | DamagedBackup): number {
  return Date.parse(b.createdAt) - Date.parse(a.createdAt) || (a.name < b.name ? 1 : -1);
}

async function openIfThere(path: string): Promise<Deno.FsFile | null> {
  try {
    return await Deno.open(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

async function lstatIfThere(path: string): Promise<Deno.FileInfo | null> {
  try {
    return await Deno.lstat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
