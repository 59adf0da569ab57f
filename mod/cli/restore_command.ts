/** The command `restore`: replaces the contents of a data folder with a backup while no server runs. */
import { helpFields } from "../explained.ts";
import { basename, join, resolve } from "node:path";
import { removeIfThere, statIfThere } from "../kit/durable_files.ts";
import { archiveNames } from "../ops/backups/archive/mod.ts";
import {
  type AppliedRestore,
  BrokenMarkerError,
  cancelRestore,
  RestoreError,
  stagedRestore,
  stageRestore,
} from "../ops/backups/restore/mod.ts";
import { emptyFolder } from "../ops/spooled_body.ts";
import { type CommandSpec, exitCodes } from "./command_line.ts";
import { commandLog } from "../kit/command_log.ts";
import { ConsoleProgress } from "./console_progress.ts";
import { INCOMING_DIR } from "../config/config.ts";
import { bucketLocation } from "../config/locations.ts";
import { DataLock } from "../server/data/data_lock.ts";
import { handleRestore } from "../server/data/data_restore.ts";
import type { OptionValues } from "../config/options.ts";
import { OptionValueError } from "../config/option_types.ts";
import { fetchArchive, parseRemoteArchive, type RemoteArchive } from "./remote_archive.ts";
import { fileErrorReason, StartError } from "../config/start_error.ts";

export const restoreCommand: CommandSpec = {
  name: "restore",
  description: "Replace the data with a backup while no server runs; the old data is kept",
  argument: {
    name: "archive",
    description: "Backup to restore (.tar.zst), or its URL, such as s3://bucket/prefix/name.tar.zst",
    optional: true,
  },
  run,
};

async function run(options: OptionValues, archive: string): Promise<number> {
  const { data, cancel } = options;
  const log = commandLog();
  const fault = faultOf(options, archive);
  if (fault !== null) {
    log("error", fault);
    return exitCodes.usage;
  }
  let remote: RemoteArchive | null;
  try {
    remote = parseRemoteArchive(archive);
  } catch (error) {
    if (!(error instanceof OptionValueError)) throw error;
    log("error", `Invalid archive: ${error.message}`);
    return exitCodes.usage;
  }
  try {
    const text = cancel
      ? await cancelStaged(data)
      : options.from !== null
      ? await restoreFrom(options, options.from)
      : remote === null
      ? await restore(data, archive)
      : await restoreRemote(options, { archive, remote });
    await Deno.stdout.write(new TextEncoder().encode(`${text}\n`));
    return exitCodes.ok;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    log("error", error.message, helpFields(error));
    return exitCodes.failed;
  }
}

/** Returns what is wrong with the combination of options, or `null`. */
function faultOf(options: OptionValues, archive: string): string | null {
  const { cancel, from, list, toTime, toTs, generation, dryRun, json } = options;
  const sources = [archive !== "", cancel, from !== null].filter(Boolean).length;
  if (sources === 0) return "Missing source: pass an archive, a replica with --from, or --cancel";
  if (sources > 1) return "An archive, --from and --cancel cannot be combined";
  if (from === null && (list || toTime !== null || toTs !== null || generation !== null || dryRun || json)) {
    return "--list, --to-time, --to-ts, --generation, --dry-run and --json need --from";
  }
  if (toTime !== null && toTs !== null) return "--to-time and --to-ts cannot be combined";
  return json && !list ? "--json needs --list" : null;
}

/** Lists a replica, shows a restore plan, or restores. */
async function restoreFrom(options: OptionValues, from: NonNullable<OptionValues["from"]>): Promise<string> {
  const { withReplica, listText, choose, stageChosen } = await import("./replica_restore.ts");
  return await withReplica(options, from, async (target, generations) => {
    if (options.list) return listText(generations, { location: target.location, json: options.json });
    const plan = choose(generations, { options, target });
    const { planText } = await import("../ops/replication/mod.ts");
    if (options.dryRun) return `${planText(plan)} Nothing has changed.`;
    using lock = await DataLock.acquire(options.data, { by: "restore" });
    const pending = await stagedRestore(options.data);
    const missing = await asStartError(
      (reason) => `Cannot restore from "${target.location}": ${reason}. Nothing has changed`,
      () => stageChosen(target, plan, options),
    );
    const applied = await handleRestore(options.data, "apply");
    if (applied === null) {
      throw new StartError("The restore was cancelled by an administrator", { code: "restore" });
    }
    return [
      ...lock.restored === null ? [] : [finished(lock.restored)],
      report(applied, { dataDir: options.data, notes: await notesOfReplica(options.data) }),
      ...missing,
      ...pending === null ? [] : [`Dropped the staged restore of "${pending.source}".`],
    ].join("\n");
  });
}

async function restore(dataDir: string, archive: string): Promise<string> {
  // Check before a new data folder is created.
  try {
    await Deno.stat(archive);
  } catch (error) {
    const reason = error instanceof Deno.errors.NotFound ? "the file does not exist" : fileErrorReason(error);
    throw new StartError(`Cannot restore "${archive}": ${reason}. Nothing has changed`, {
      code: "restore",
      cause: error,
    });
  }
  using lock = await DataLock.acquire(dataDir, { by: "restore" });
  return await restoreFile({ dataDir, lock, archive, shown: archive, source: basename(archive) });
}

/** Downloads and restores an archive. Holds the lock of the data folder during the download. */
async function restoreRemote(
  options: OptionValues,
  { archive, remote }: { readonly archive: string; readonly remote: RemoteArchive },
): Promise<string> {
  const location = bucketLocation(options, remote, "Backups");
  using lock = await DataLock.acquire(options.data, { by: "restore" });
  const folder = join(options.data, INCOMING_DIR);
  await emptyFolder(folder);
  try {
    const path = await fetchArchive(remote, { location, folder });
    const source = basename(path);
    return await restoreFile({ dataDir: options.data, lock, archive: path, shown: archive, source });
  } finally {
    await removeIfThere(folder);
  }
}

async function restoreFile(
  { dataDir, lock, archive, shown, source }: {
    readonly dataDir: string;
    readonly lock: DataLock;
    readonly archive: string;
    /** The archive as named by the user. */
    readonly shown: string;
    readonly source: string;
  },
): Promise<string> {
  const pending = await stagedRestore(dataDir);
  using progress = new ConsoleProgress();
  await asStartError(
    (reason) => `Cannot restore "${shown}": ${reason}. Nothing has changed`,
    () =>
      stageRestore({ dataDir, archive, source, withSecret: true }, {
        onProgress: (step) => progress.show(step),
      }),
  );
  progress[Symbol.dispose]();
  const applied = await handleRestore(dataDir, "apply");
  if (applied === null) {
    throw new StartError(`The restore of "${shown}" was cancelled by an administrator`, { code: "restore" });
  }
  const before = lock.restored === null ? "" : `${finished(lock.restored)}\n`;
  const replaced = pending === null ? "" : `\nDropped the staged restore of "${pending.source}".`;
  return `${before}${report(applied, { dataDir, notes: notesOfBackup(applied) })}${replaced}`;
}

async function cancelStaged(dataDir: string): Promise<string> {
  try {
    await Deno.stat(dataDir);
  } catch (error) {
    throw new StartError(`Cannot use the data folder "${dataDir}": ${fileErrorReason(error)}`, {
      code: "data_folder",
      cause: error,
    });
  }
  using _lock = await DataLock.acquire(dataDir, { by: "restore", restore: "leave" });
  return await asStartError((reason) => `Cannot cancel the restore: ${reason}`, async () => {
    const source = await sourceOf(dataDir);
    if (!await cancelRestore(dataDir)) return `No restore is staged in "${dataDir}".`;
    const of = source === null ? "" : ` of "${source}"`;
    return `Cancelled the restore${of}. The data is unchanged.`;
  });
}

/** Returns the source of the staged restore; `null` if there is none or its marker is damaged. */
async function sourceOf(dataDir: string): Promise<string | null> {
  try {
    return (await stagedRestore(dataDir))?.source ?? null;
  } catch (error) {
    if (error instanceof BrokenMarkerError) return null;
    throw error;
  }
}

/** Turns errors an operator can fix (archive and disk errors) into a `StartError`. */
async function asStartError<T>(message: (reason: string) => string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isDiskError = error instanceof Error && "code" in error;
    if (!(error instanceof RestoreError) && !isDiskError) throw error;
    throw new StartError(message(error.message), { cause: error });
  }
}

function finished({ source, keptIn }: AppliedRestore): string {
  const kept = keptIn === null ? "" : ` The old files are in ${keptIn}.`;
  return `Finished the interrupted restore of "${source}".${kept}`;
}

/** Reports what was restored, where the old files are, and what the backup did not contain. */
function report(
  { source, createdAt, ts, tables, documents, keptIn }: AppliedRestore,
  { dataDir, notes }: { readonly dataDir: string; readonly notes: readonly string[] },
): string {
  const lines = [
    `Restored "${source}" of ${createdAt} into ${
      resolve(dataDir)
    }: ts ${ts}, ${tables} tables, ${documents} documents.`,
  ];
  if (keptIn !== null) {
    lines.push(
      `The old files are in ${resolve(keptIn)}: remove that folder when you no longer need it.`,
    );
  }
  return [...lines, ...notes].join("\n");
}

function notesOfBackup({ parts }: AppliedRestore): string[] {
  const notes: string[] = [];
  if (!parts.includes("secret")) {
    notes.push(
      "The backup contains no secret key. Unless this folder has the key the backup was made with, all users are signed " +
        "out and encrypted settings must be entered again.",
    );
  }
  if (!parts.includes("log")) {
    notes.push(
      "The backup contains no execution log in a format of this version. The log of this folder is kept.",
    );
  }
  if (!parts.includes("files")) {
    notes.push(
      "The backup contains no uploaded files. Files in this folder or a bucket are kept. Files deleted since the backup " +
        "cannot be read, and files uploaded since then are removed after the next start.",
    );
  }
  return notes;
}

async function notesOfReplica(dataDir: string): Promise<string[]> {
  const notes = [
    "A replica contains no secret key, execution log or uploaded files. Those in this folder or a bucket are kept, except " +
    "for files uploaded after the restored point, which are removed after the next start.",
  ];
  const { secret } = archiveNames;
  if (await statIfThere(join(dataDir, secret)) === null) {
    notes.push(
      `This folder has no ${secret}: copy it from the original server before the next start. Otherwise all users are ` +
        "signed out and encrypted settings must be entered again.",
    );
  }
  return notes;
}
