/** Lock of a data folder: an advisory lock on its file `lock`, which the kernel releases when the process ends. */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileErrorReason, StartError } from "../../config/start_error.ts";
import { removeIfThere, statIfThere, writeDurably } from "../../kit/durable_files.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";
import type { AppliedRestore } from "../../ops/backups/restore/mod.ts";
import { dataLockLimits } from "../limits.ts";
import { checkNoUnfinishedImport, handleRestore, type RestoreStep } from "./data_restore.ts";

/** Marks a data folder of the bundled example, which is served when no app is found and must not add tables to an app. */
const EXAMPLE_MARK = "example";

export interface DataOwner {
  readonly example: boolean;
  readonly restored?: boolean;
}

/** Call with the lock held, before the database is opened. Throws a `StartError` if the example would use an app's data. */
export async function claimData(dataDir: string, { example, restored = false }: DataOwner): Promise<void> {
  const mark = join(dataDir, EXAMPLE_MARK);
  if (restored || !example) await removeIfThere(mark);
  if (!example) return;
  const known = !restored && await statIfThere(mark) !== null;
  if (known) return;
  if (await statIfThere(join(dataDir, archiveNames.database)) !== null) {
    throw new StartError(
      `The data in "${dataDir}" belongs to an app, but there is no folder "functions" here. Pass the app's folder with ` +
        "--functions, or another folder with --data for the bundled example",
      { code: "app_not_loaded" },
    );
  }
  await writeDurably(mark, "The data in this folder belongs to the bundled example.\n");
}

/** Commands that use data folders. */
export type LockUser = "serve" | "restore" | "import" | "export" | "backup" | "admin";

/** Another process uses the data folder. */
export class DataLockedError extends StartError {
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
  /** Command written to the lock file, for error messages of other processes. */
  readonly by: LockUser;
  /** Handling of restores. By default an interrupted restore is finished. */
  readonly restore?: RestoreStep;
  /** How long to wait for another process, in milliseconds. */
  readonly waitMs?: number;
}

/** Held until it is disposed of. */
export class DataLock implements Disposable {
  readonly #file: Deno.FsFile;
  readonly restored: AppliedRestore | null;

  private constructor(file: Deno.FsFile, restored: AppliedRestore | null) {
    this.#file = file;
    this.restored = restored;
  }

  /** Creates the folder (0700), takes its lock and handles restores. Throws a `StartError`, which names a process that has it. */
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
      const deadline = performance.now() + waitMs;
      while (!await file.tryLock(true)) {
        if (performance.now() >= deadline) throw new DataLockedError(dataDir, await readText(file));
        await delay(dataLockLimits.retryMs);
      }
      await writeHolder(file, by);
      if (by !== "import") await checkNoUnfinishedImport(dataDir);
      return new DataLock(file, await handleRestore(dataDir, restore));
    } catch (error) {
      file.close();
      if (error instanceof StartError) throw error;
      throw new StartError(`Cannot use the data folder "${dataDir}": ${fileErrorReason(error)}`, {
        code: "data_folder",
        cause: error,
      });
    }
  }

  /** Returns `null` if another process holds the lock. Throws a `StartError` as `acquire` does. */
  static async acquireIfFree(dataDir: string, options: AcquireOptions): Promise<DataLock | null> {
    try {
      return await DataLock.acquire(dataDir, options);
    } catch (error) {
      if (error instanceof DataLockedError) return null;
      throw error;
    }
  }

  /** Releases the lock. The file stays: deleting it would let two processes lock two files of one name. */
  [Symbol.dispose](): void {
    this.#file.close();
  }
}

async function writeHolder(file: Deno.FsFile, by: LockUser): Promise<void> {
  await file.truncate(0);
  await file.seek(0, Deno.SeekMode.Start);
  await file.write(new TextEncoder().encode(`${Deno.pid} ${by}\n`));
}

async function readText(file: Deno.FsFile): Promise<string> {
  const bytes = new Uint8Array(32);
  const length = await file.read(bytes);
  return new TextDecoder().decode(bytes.subarray(0, length ?? 0)).trim();
}
