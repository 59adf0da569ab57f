/**
 * Working folder of a backup or export: copies of databases in the data folder, and links beside the files where supported. At
 * most one of each kind is in progress per data folder. Leftovers of killed processes are removed by the next one or at server
 * startup.
 */
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { removeIfThere, statIfThere } from "../../../kit/durable_files.ts";
import { opsLimits } from "../../limits.ts";

const kinds = ["backup", "export"] as const;
type WorkKind = (typeof kinds)[number];

export function filesFolder(dataDir: string): string {
  return join(dataDir, "storage");
}

export class WorkFolder implements AsyncDisposable {
  /** An empty folder on the data folder's disk. */
  readonly databases: string;
  /** A folder on the files' disk. Not created yet. */
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

  /** Waits for another one of the kind, calling `onWait`. Throws the reason of `signal`. */
  static async acquire(
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
        await wait(opsLimits.lockPollMs, undefined, { signal }).catch(() => {});
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

  /** Removes leftovers, unless one of the kind is in progress. */
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

/** The lock file is never removed: otherwise two processes could lock different files of the same name. */
async function openLock(dataDir: string, kind: WorkKind): Promise<Deno.FsFile> {
  return await Deno.open(lockPath(dataDir, kind), { write: true, create: true, mode: 0o600 });
}

function lockPath(dataDir: string, kind: WorkKind): string {
  return join(dataDir, `${kind}.lock`);
}
