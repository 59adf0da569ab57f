/** A folder as the place of a replica, best on another disk. Files appear under their names when they are whole and on disk. */
import { randomBytes } from "node:crypto";
import { basename, dirname, join } from "node:path";
import {
  fileErrorReason,
  isDiskFull,
  removeIfThere,
  statIfThere,
  syncFolder,
  writeAll,
} from "../../../kit/durable_files.ts";
import { replicationLimits } from "../../limits.ts";
import { ReplicaError } from "../replica_error.ts";
import { removeOldTries } from "./tries.ts";
import type { ReplicaTarget, TargetObject } from "./replica_target.ts";

/** Listings in which names go while they are looked at. */
const LISTINGS_MAX = 5;
const PARTIAL = /^\..+\.[0-9a-f]{12}\.partial$/;

export class FolderTarget implements ReplicaTarget {
  readonly place: string;
  readonly #signal: AbortSignal;

  private constructor(place: string, signal: AbortSignal) {
    this.place = place;
    this.#signal = signal;
  }

  /** Makes the folder (mode 0700) when it is missing, if that is asked for. */
  static async open(
    path: string,
    { make, signal = new AbortController().signal }: {
      readonly make: boolean;
      readonly signal?: AbortSignal;
    },
  ): Promise<FolderTarget> {
    const target = new FolderTarget(path, signal);
    if (make) await target.#told(() => Deno.mkdir(path, { recursive: true, mode: 0o700 }));
    await target.#present();
    return target;
  }

  async *list(begin: string): AsyncGenerator<TargetObject> {
    await this.#present();
    const folder = begin.slice(0, begin.lastIndexOf("/") + 1);
    for (let look = 1;; look++) {
      const found: TargetObject[] = [];
      let gone = false;
      for (const name of await this.#told(() => this.#namesIn(folder))) {
        if (!name.startsWith(begin)) continue;
        const info = await this.#told(() => statIfThere(join(this.place, name)));
        if (info === null) gone = true;
        else found.push({ name, size: info.size });
      }
      // What went meanwhile may be part of a larger segment, which came after the names were read.
      if (!gone || look >= LISTINGS_MAX) return yield* found;
    }
  }

  async read(name: string): Promise<Uint8Array<ArrayBuffer> | null> {
    await this.#present();
    return await this.#told(async () => {
      const info = await statIfThere(join(this.place, name));
      if (info === null) return null;
      if (info.size > replicationLimits.objectBytesMax) throw tooLarge(name);
      try {
        return await Deno.readFile(join(this.place, name), { signal: this.#signal });
      } catch (error) {
        // It went after it was looked at, as segments do that were merged.
        if (error instanceof Deno.errors.NotFound) return null;
        throw error;
      }
    });
  }

  async stream(name: string): Promise<AsyncIterable<Uint8Array<ArrayBuffer>> | null> {
    await this.#present();
    return await this.#told(async () => {
      try {
        return this.#chunks(await Deno.open(join(this.place, name)));
      } catch (error) {
        if (error instanceof Deno.errors.NotFound) return null;
        throw error;
      }
    });
  }

  async download(name: string, path: string): Promise<boolean> {
    await this.#present();
    return await this.#told(async () => {
      if (await statIfThere(join(this.place, name)) === null) return false;
      try {
        await this.#copy(join(this.place, name), path);
      } catch (error) {
        // It may go in between.
        if (error instanceof Deno.errors.NotFound && await statIfThere(join(this.place, name)) === null) {
          return false;
        }
        throw error;
      }
      return true;
    });
  }

  async put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#present();
    await this.#told(() => this.#write(name, (partial) => this.#writeNew(partial, bytes), Deno.rename));
  }

  async upload(name: string, path: string): Promise<void> {
    await this.#present();
    await this.#told(() => this.#write(name, (partial) => this.#copy(path, partial), Deno.rename));
  }

  async create(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<boolean> {
    await this.#present();
    return await this.#told(async () => {
      try {
        // A link fails when there is a file of that name; a rename would replace it.
        await this.#write(name, (partial) => this.#writeNew(partial, bytes), async (partial, path) => {
          await Deno.link(partial, path);
          await Deno.remove(partial);
        });
        return true;
      } catch (error) {
        if (error instanceof Deno.errors.AlreadyExists) return false;
        throw error;
      }
    });
  }

  async remove(name: string): Promise<void> {
    await this.#present();
    await this.#told(() => removeIfThere(join(this.place, name)));
  }

  async tidy(at: number): Promise<void> {
    await this.#present();
    await this.#told(() => this.#namesIn(""));
    await removeOldTries(this, at);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  async *#chunks(opened: Deno.FsFile): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    using file = opened;
    const buffer = new Uint8Array(replicationLimits.streamChunkBytes);
    for (;;) {
      this.#signal.throwIfAborted();
      const read = await this.#told(() => file.read(buffer));
      if (read === null) return;
      yield buffer.slice(0, read);
    }
  }

  /** The folder is not made again while it is used: it may be one of a disk that is not mounted now. */
  async #present(): Promise<void> {
    this.#signal.throwIfAborted();
    if ((await this.#told(() => statIfThere(this.place)))?.isDirectory) return;
    throw new ReplicaError(
      "away",
      `The folder "${this.place}" is not there: mount its disk, or name another folder`,
    );
  }

  async #write(
    name: string,
    write: (partial: string) => Promise<void>,
    place: (partial: string, path: string) => Promise<void>,
  ): Promise<void> {
    const path = join(this.place, name);
    const folder = dirname(path);
    if (await statIfThere(folder) === null) await this.#makeFolder(folder);
    const partial = join(folder, `.${basename(path)}.${randomBytes(6).toString("hex")}.partial`);
    try {
      await write(partial);
      await place(partial, path);
    } catch (error) {
      await removeIfThere(partial).catch(() => {});
      throw error;
    }
    await syncFolder(folder);
  }

  async #makeFolder(folder: string): Promise<void> {
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    for (let path = folder; path.length >= this.place.length; path = dirname(path)) await syncFolder(path);
  }

  async #writeNew(path: string, bytes: Uint8Array): Promise<void> {
    using file = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
    await writeAll(file, bytes);
    await file.sync();
  }

  async #copy(from: string, to: string): Promise<void> {
    const source = await Deno.open(from);
    using target = await Deno.open(to, { write: true, createNew: true, mode: 0o600 });
    for await (const chunk of source.readable) {
      this.#signal.throwIfAborted();
      await writeAll(target, chunk);
    }
    await target.sync();
  }

  /** Also removes what killed processes left half written, when it is old. */
  async #namesIn(folder: string): Promise<string[]> {
    const names: string[] = [];
    let entries: Deno.DirEntry[];
    try {
      entries = await Array.fromAsync(Deno.readDir(join(this.place, folder)));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return names;
      throw error;
    }
    for (const { name, isDirectory } of entries) {
      if (isDirectory) names.push(...await this.#namesIn(`${folder}${name}/`));
      else if (!PARTIAL.test(name)) names.push(`${folder}${name}`);
      else await this.#removeOld(join(this.place, folder, name));
    }
    return names;
  }

  async #removeOld(path: string): Promise<void> {
    const info = await statIfThere(path);
    const age = Date.now() - (info?.mtime?.getTime() ?? Date.now());
    // Who may only read here leaves it.
    if (age > replicationLimits.partialKeptMs) await removeIfThere(path).catch(() => {});
  }

  async #told<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      if (error instanceof ReplicaError || this.#signal.aborted) throw error;
      const refused = error instanceof Deno.errors.PermissionDenied ||
        error instanceof Deno.errors.NotCapable;
      const reason = isDiskFull(error) ? "its disk is full" : fileErrorReason(error);
      throw new ReplicaError(refused ? "refused" : "away", `"${this.place}" cannot be used: ${reason}`, {
        cause: error,
      });
    }
  }
}

function tooLarge(name: string): ReplicaError {
  return new ReplicaError("target", `"${name}" is larger than anything of its kind: it is damaged`);
}
