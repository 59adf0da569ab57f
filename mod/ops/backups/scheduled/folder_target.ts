/** A folder as the place of scheduled backups, on the disk of the data folder or on another one. */
import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import { removeIfThere, statIfThere, syncFolder } from "../../../kit/durable_files.ts";
import { BackupError } from "../backup_error.ts";
import { NewFile } from "../../new_file.ts";
import type { BackupTarget } from "./backup_target.ts";
import { scheduledAt } from "./names.ts";

export interface FolderTargetOptions {
  /** Ends a copy under way. */
  readonly signal?: AbortSignal;
  /** Renames a file; tests give one that fails as between two disks. */
  readonly rename?: (from: string, to: string) => Promise<void>;
}

export class FolderTarget implements BackupTarget {
  readonly place: string;
  readonly #signal: AbortSignal;
  readonly #rename: (from: string, to: string) => Promise<void>;

  private constructor(path: string, { signal, rename }: FolderTargetOptions) {
    this.place = path;
    this.#signal = signal ?? new AbortController().signal;
    this.#rename = rename ?? Deno.rename;
  }

  /** Makes the folder (mode 0700) when it is missing. Throws when nothing can be written there. */
  static async open(path: string, options: FolderTargetOptions = {}): Promise<FolderTarget> {
    await Deno.mkdir(path, { recursive: true, mode: 0o700 });
    const probe = join(path, `.syncline-probe-${randomBytes(6).toString("hex")}`);
    await Deno.writeFile(probe, new Uint8Array(1), { createNew: true, mode: 0o600 });
    await Deno.remove(probe);
    return new FolderTarget(path, options);
  }

  /** The folder as it was opened before: nothing is tried. */
  static at(path: string): FolderTarget {
    return new FolderTarget(path, {});
  }

  /** The folder is not made again: it may be one of a disk that is not mounted now. */
  async check(): Promise<void> {
    if ((await statIfThere(this.place))?.isDirectory) return;
    throw new BackupError(
      `The folder "${this.place}" is not there any more: mount its disk, or start the server again to make it anew`,
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
    if (await statIfThere(target) !== null) throw new BackupError(`"${target}" is there already`);
    try {
      await this.#rename(path, target);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EXDEV")) throw error;
      return await this.#copy(path, target);
    }
    await syncFolder(this.place);
    await syncFolder(dirname(path));
  }

  async bring(name: string, path: string): Promise<boolean> {
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
      new BackupError(`There is no room in "${dirname(target)}" for a backup: free some`);
    await source.readable.pipeTo(copy.writable({ whenFull }), { signal: this.#signal });
    await copy.place();
  }
}
