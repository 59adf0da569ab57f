/**
 * Where a backup or an export keeps what it needs while it is made: copies of databases in the data folder, and links to
 * files beside the files, where links can be. One of a kind at a time is made of a data folder. What a killed one left
 * behind goes when the next one begins, or a server starts.
 */
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { removeIfThere, statIfThere } from "../../../kit/durable_files.ts";
import { opsLimits } from "../../limits.ts";

const kinds = ["backup", "export"] as const;
type WorkKind = (typeof kinds)[number];

/** Where the files of a data folder lie; files in a bucket do not. */
export function filesFolder(dataDir: string): string {
  return join(dataDir, "storage");
}

export class WorkFolder implements AsyncDisposable {
  /** An empty folder on the disk of the data folder. */
  readonly databases: string;
  /** A folder on the disk of the files. Not there yet. */
  readonly links: string;
  readonly #lock: Deno.FsFile;

  private constructor(
    dataDir: string,
    { kind, lock }: { readonly kind: WorkKind; readonly lock: Deno.FsFile },
  ) {
    this.databases = join(dataDir, `${kind}-work`);
    this.links = join(filesFolder(dataDir), `${kind}-work`);
    this.#lock = lock;
  }

  /** Waits for another of the kind under way, of which it tells by `onWait`. Throws what `signal` is aborted with meanwhile. */
  static async take(
    dataDir: string,
    { kind = "backup", signal = new AbortController().signal, onWait = () => {} }: {
      readonly kind?: WorkKind;
      readonly signal?: AbortSignal;
      readonly onWait?: () => void;
    } = {},
  ): Promise<WorkFolder> {
    const lock = await openLock(dataDir, kind);
    try {
      for (let looks = 0; !await lock.tryLock(true); looks++) {
        if (looks === 0) onWait();
        await wait(opsLimits.heldLookMs, undefined, { signal }).catch(() => {});
        signal.throwIfAborted();
      }
      const folder = new WorkFolder(dataDir, { kind, lock });
      await folder.#clear();
      await Deno.mkdir(folder.databases, { mode: 0o700 });
      return folder;
    } catch (error) {
      lock.close();
      throw error;
    }
  }

  /** Removes what those left behind that were killed. Does nothing while one of the kind is under way. */
  static async removeAbandoned(dataDir: string): Promise<void> {
    for (const kind of kinds) {
      if (await statIfThere(lockPath(dataDir, kind)) === null) continue;
      using lock = await openLock(dataDir, kind);
      if (await lock.tryLock(true)) await new WorkFolder(dataDir, { kind, lock }).#clear();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#clear();
    } finally {
      this.#lock.close();
    }
  }

  async #clear(): Promise<void> {
    await removeIfThere(this.databases);
    await removeIfThere(this.links);
  }
}

/** The file stays: removing it would let two lock two files of one name. */
async function openLock(dataDir: string, kind: WorkKind): Promise<Deno.FsFile> {
  return await Deno.open(lockPath(dataDir, kind), { write: true, create: true, mode: 0o600 });
}

function lockPath(dataDir: string, kind: WorkKind): string {
  return join(dataDir, `${kind}.lock`);
}
