/**
 * One server for a data folder: a lock on its file `lock`, which the kernel drops when the process ends. Whoever takes the
 * folder has to get the lock alone, and shares it from then on: a server that takes over joins the one that holds it, so
 * that there is no moment in which nobody does.
 */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { dataLockLimits } from "../limits.ts";
import type { AppliedRestore } from "../../ops/backups/restore/mod.ts";
import { applyRestore, type RestoreStep } from "./data_restore.ts";
import { fileErrorReason, StartError } from "../../config/start_error.ts";
import { refuseUnfinished } from "./unfinished_import.ts";

/** What takes data folders: names of commands. */
export type DataUser = "serve" | "restore" | "import" | "export" | "backup" | "admin";

/** Another process holds the data folder. */
export class DataLockedError extends StartError {
  /** Whether that is a server, as far as its lock file tells. */
  readonly byServer: boolean;

  constructor(dataDir: string, holder: string) {
    const [, id, command = "serve"] = /^(\d+)(?: ([a-z]+))?$/.exec(holder) ?? [];
    const byServer = command === "serve";
    const who = byServer ? "Another server" : `The command ${command}`;
    super(
      `${who} ${id === undefined ? "" : `(process ${id}) `}is using the data folder "${dataDir}". ` +
        `${byServer ? "Stop it first" : "Wait until it has ended"}, or choose another folder with --data`,
    );
    this.byServer = byServer;
  }
}

export interface AcquireOptions {
  /** Who takes it; others are told. */
  readonly by: DataUser;
  /** What is done about restores; without it one that was interrupted is finished. */
  readonly restore?: RestoreStep;
  /** For so long, in milliseconds, another holder is waited for. */
  readonly waitMs?: number;
}

/** Holds a data folder until it is disposed of. */
export class DataLock implements Disposable {
  readonly #file: Deno.FsFile;
  /** The restore that was applied or finished when the folder was taken. */
  readonly restored: AppliedRestore | null;

  private constructor(file: Deno.FsFile, restored: AppliedRestore | null) {
    this.#file = file;
    this.restored = restored;
  }

  /**
   * Creates the folder (mode 0700) when it is missing and takes its lock. Throws a `StartError` when the folder cannot
   * be used, or when another process holds it, whose id and command it names. A restore that was interrupted is finished first, so
   * whoever holds the folder finds all of it; `restore` says what else is done about restores. A folder that an import has
   * not finished is refused to all others.
   */
  static async acquire(
    dataDir: string,
    { by, restore = "finish", waitMs = 0 }: AcquireOptions,
  ): Promise<DataLock> {
    try {
      await Deno.mkdir(dataDir, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw new StartError(`Cannot create the data folder "${dataDir}": ${fileErrorReason(error)}`, {
        code: "data_folder",
        cause: error,
      });
    }
    let file;
    try {
      file = await Deno.open(join(dataDir, "lock"), { read: true, write: true, create: true, mode: 0o600 });
    } catch (error) {
      throw new StartError(`Cannot use the data folder "${dataDir}": ${fileErrorReason(error)}`, {
        code: "data_folder",
        cause: error,
      });
    }
    try {
      const givesUpAt = performance.now() + waitMs;
      // Between the two somebody else may be faster.
      while (!(await file.tryLock(true) && await file.tryLock(false))) {
        if (performance.now() >= givesUpAt) throw new DataLockedError(dataDir, await readText(file));
        await delay(dataLockLimits.retryMs);
      }
      await writeHolder(file, by);
      if (by !== "import") await refuseUnfinished(dataDir);
      return new DataLock(file, await applyRestore(dataDir, restore));
    } catch (error) {
      file.close();
      if (error instanceof StartError) throw error;
      throw new StartError(`Cannot use the data folder "${dataDir}": ${fileErrorReason(error)}`, {
        code: "data_folder",
        cause: error,
      });
    }
  }

  /** Takes a folder that no other process holds; `null` when one does. Throws a `StartError` as `acquire` does. */
  static async acquireIfFree(dataDir: string, options: AcquireOptions): Promise<DataLock | null> {
    try {
      return await DataLock.acquire(dataDir, options);
    } catch (error) {
      if (error instanceof DataLockedError) return null;
      throw error;
    }
  }

  /** Holds a folder beside the server that holds it, with its consent. Throws a `StartError` when somebody else is about to. */
  static async join(dataDir: string): Promise<DataLock> {
    const file = await Deno.open(join(dataDir, "lock"), { read: true, write: true });
    if (await file.tryLock(false)) return new DataLock(file, null);
    file.close();
    throw new StartError(`Another process is about to take the data folder "${dataDir}"`, {
      code: "data_folder",
    });
  }

  /**
   * Waits until no other process holds the folder, for at most `waitMs`. `false`: one still does. A try that fails gives up for
   * a moment what is held, so of two that share the folder only one may ask.
   */
  async alone(waitMs: number): Promise<boolean> {
    const givesUpAt = performance.now() + waitMs;
    for (;;) {
      if (await this.#file.tryLock(true) && await this.#file.tryLock(false)) return true;
      await this.#file.tryLock(false);
      if (performance.now() >= givesUpAt) return false;
      await delay(dataLockLimits.retryMs);
    }
  }

  /** The other one that held the folder gives it up: others are told of this one. */
  async own(by: DataUser): Promise<void> {
    await writeHolder(this.#file, by);
  }

  /** Gives the folder up. The file stays: deleting it would let two servers lock two files of one name. */
  [Symbol.dispose](): void {
    this.#file.close();
  }
}

async function writeHolder(file: Deno.FsFile, by: DataUser): Promise<void> {
  await file.truncate(0);
  await file.seek(0, Deno.SeekMode.Start);
  await file.write(new TextEncoder().encode(`${Deno.pid} ${by}\n`));
}

async function readText(file: Deno.FsFile): Promise<string> {
  const bytes = new Uint8Array(32);
  const length = await file.read(bytes);
  return new TextDecoder().decode(bytes.subarray(0, length ?? 0)).trim();
}
