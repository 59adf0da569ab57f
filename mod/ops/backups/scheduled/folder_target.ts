/** A folder as target of scheduled backups, on any disk. */
import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import { removeIfThere, statIfThere, syncFolder } from "../../../kit/durable_files.ts";
import { BackupError } from "../backup_error.ts";
import { NewFile } from "../../new_file.ts";
import type { BackupTarget } from "./backup_target.ts";
import { scheduledAt } from "./names.ts";

export interface BackupFolderTargetOptions {
  /** Aborts a copy in progress. */
  readonly signal?: AbortSignal;
  /** Renames a file. Tests simulate failures across file systems. */
  readonly rename?: (from: string, to: string) => Promise<void>;
}

export class BackupFolderTarget implements BackupTarget {
  readonly place: string;
  readonly #signal: AbortSignal;
  readonly #rename: (from: string, to: string) => Promise<void>;

  private constructor(path: string, { signal, rename }: BackupFolderTargetOptions) {
    this.place = path;
    this.#signal = signal ?? new AbortController().signal;
    this.#rename = rename ?? Deno.rename;
  }

  /** Creates the folder (mode 0700) if missing. Throws if it is not writable. */
  static async open(path: string, options: BackupFolderTargetOptions = {}): Promise<BackupFolderTarget> {
    await Deno.mkdir(path, { recursive: true, mode: 0o700 });
    const probe = join(path, `.syncline-probe-${randomBytes(6).toString("hex")}`);
    await Deno.writeFile(probe, new Uint8Array(1), { createNew: true, mode: 0o600 });
    await Deno.remove(probe);
    return new BackupFolderTarget(path, options);
  }

  /** Returns the target of a folder that was opened before, without testing it. */
  static at(path: string): BackupFolderTarget {
    return new BackupFolderTarget(path, {});
  }

  /** Does not create the folder again, because its disk may not be mounted. */
  async check(): Promise<void> {
    if ((await statIfThere(this.place))?.isDirectory) return;
    throw new BackupError(
      `Folder "${this.place}" no longer exists. Mount its disk, or restart the server to create it`,
    );
  }

  async list(): Promise<string[]> {
    const names: string[] = [];
    for await (const { name, isFile } of Deno.readDir(this.place)) {
      if (isFile && scheduledAt(name) !== null) names.push(name);
    }
    return names;
  }

  async put(name: string, path: string): Promise<void> {
    const target = join(this.place, name);
    if (await statIfThere(target) !== null) throw new BackupError(`"${target}" already exists`);
    try {
      await this.#rename(path, target);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EXDEV")) throw error;
      return await this.#copy(path, target);
    }
    await syncFolder(this.place);
    await syncFolder(dirname(path));
  }

  async fetch(name: string, path: string): Promise<boolean> {
    const source = join(this.place, name);
    if (scheduledAt(name) === null || (await statIfThere(source))?.isFile !== true) return false;
    await this.#copy(source, path);
    return true;
  }

  async remove(name: string): Promise<void> {
    await removeIfThere(join(this.place, name));
    await syncFolder(this.place);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  async #copy(path: string, target: string): Promise<void> {
    await using copy = await NewFile.create(target);
    const source = await Deno.open(path);
    const whenFull = () =>
      new BackupError(`Not enough disk space in "${dirname(target)}" for a backup. Free disk space`);
    await source.readable.pipeTo(copy.writable({ whenFull }), { signal: this.#signal });
    await copy.publish();
  }
}
