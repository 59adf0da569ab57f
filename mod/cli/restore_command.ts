/** The command `restore`: puts a backup in the place of a data folder's contents while no server runs on it. */
import { basename, join, resolve } from "node:path";
import { removeIfThere, statIfThere } from "../kit/durable_files.ts";
import { stderrLog } from "../kit/log.ts";
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
import { ConsoleProgress } from "./console_progress.ts";
import { INCOMING_DIR } from "../config/config.ts";
import { bucketLocation } from "../config/locations.ts";
import { DataLock } from "../server/data/data_lock.ts";
import { applyRestore } from "../server/data/data_restore.ts";
import type { OptionValues } from "../config/options.ts";
import { OptionValueError } from "../config/option_types.ts";
import { fetchArchive, parseRemoteArchive, type RemoteArchive } from "./remote_archive.ts";
import { reasonOf, StartError } from "../config/start_error.ts";

export const restoreCommand: CommandSpec = {
  name: "restore",
  description: "Put a backup in the place of the data, while no server runs; what it replaces is kept",
  argument: {
    name: "archive",
    description: "Backup to restore (.tar.zst), or its place in a bucket, as s3://bucket/prefix/name.tar.zst",
    optional: true,
  },
  run,
};

async function run(options: OptionValues, archive: string): Promise<number> {
  const { data, cancel } = options;
  const log = stderrLog({ debug: false });
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
    log("error", error.message);
    return exitCodes.failed;
  }
}

/** What is asked for has to be one thing. */
function faultOf(options: OptionValues, archive: string): string | null {
  const { cancel, from, list, toTime, toTs, generation, dryRun, json } = options;
  const asked = [archive !== "", cancel, from !== null].filter(Boolean).length;
  if (asked === 0) return "Name the archive to restore, or a replica with --from, or say --cancel";
  if (asked > 1) return "Name an archive, or a replica with --from, or say --cancel: one of them";
  if (from === null && (list || toTime !== null || toTs !== null || generation !== null || dryRun || json)) {
    return "--list, --to-time, --to-ts, --generation, --dry-run and --json are for restores --from a replica";
  }
  if (toTime !== null && toTs !== null) return "Say --to-time or --to-ts, not both";
  return json && !list ? "--json is for --list" : null;
}

/** Lists a replica, tells what a restore would take, or restores. */
async function restoreFrom(options: OptionValues, from: NonNullable<OptionValues["from"]>): Promise<string> {
  const { withReplica, listText, choose, stageChosen } = await import("./replica_restore.ts");
  return await withReplica(options, from, async (target, generations) => {
    if (options.list) return listText(generations, { place: target.place, json: options.json });
    const plan = choose(generations, { options, target });
    const { planText } = await import("../ops/replication/mod.ts");
    if (options.dryRun) return `${planText(plan)} Nothing has changed.`;
    using lock = await DataLock.acquire(options.data, { by: "restore" });
    const pending = await stagedRestore(options.data);
    const missing = await told(
      (reason) => `Cannot restore from "${target.place}": ${reason}. Nothing has changed`,
      () => stageChosen(target, plan, options),
    );
    const applied = await applyRestore(options.data, "apply");
    if (applied === null) throw new StartError("The restore was cancelled by somebody");
    return [
      ...lock.restored === null ? [] : [finished(lock.restored)],
      report(applied, { dataDir: options.data, notes: await notesOfReplica(options.data) }),
      ...missing,
      ...pending === null ? [] : [`The restore of "${pending.source}" that was staged is dropped.`],
    ].join("\n");
  });
}

async function restore(dataDir: string, archive: string): Promise<string> {
  // Before the data folder is made, when it is a new one.
  try {
    await Deno.stat(archive);
  } catch (error) {
    const reason = error instanceof Deno.errors.NotFound ? "There is no such file" : reasonOf(error);
    throw new StartError(`Cannot restore "${archive}": ${reason}. Nothing has changed`, { cause: error });
  }
  using lock = await DataLock.acquire(dataDir, { by: "restore" });
  return await restoreFile({ dataDir, lock, archive, shown: archive, source: basename(archive) });
}

/** Holds the data folder while the archive comes, so that nobody else takes it for the restore meanwhile. */
async function restoreRemote(
  options: OptionValues,
  { archive, remote }: { readonly archive: string; readonly remote: RemoteArchive },
): Promise<string> {
  const place = bucketLocation(options, remote, "Backups");
  using lock = await DataLock.acquire(options.data, { by: "restore" });
  const folder = join(options.data, INCOMING_DIR);
  await emptyFolder(folder);
  try {
    const path = await fetchArchive(remote, { place, folder });
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
    /** Path of it. */
    readonly archive: string;
    /** As it was named. */
    readonly shown: string;
    readonly source: string;
  },
): Promise<string> {
  const pending = await stagedRestore(dataDir);
  using progress = new ConsoleProgress();
  await told(
    (reason) => `Cannot restore "${shown}": ${reason}. Nothing has changed`,
    () =>
      stageRestore({ dataDir, archive, source, withSecret: true }, {
        onProgress: (step) => progress.show(step),
      }),
  );
  progress[Symbol.dispose]();
  const applied = await applyRestore(dataDir, "apply");
  if (applied === null) throw new StartError(`The restore of "${shown}" was cancelled by somebody`);
  const before = lock.restored === null ? "" : `${finished(lock.restored)}\n`;
  const replaced = pending === null ? "" : `\nThe restore of "${pending.source}" that was staged is dropped.`;
  return `${before}${report(applied, { dataDir, notes: notesOfBackup(applied) })}${replaced}`;
}

async function cancelStaged(dataDir: string): Promise<string> {
  try {
    await Deno.stat(dataDir);
  } catch (error) {
    throw new StartError(`Cannot use the data folder "${dataDir}": ${reasonOf(error)}`, { cause: error });
  }
  using _lock = await DataLock.acquire(dataDir, { by: "restore", restore: "leave" });
  return await told((reason) => `Cannot cancel the restore: ${reason}`, async () => {
    const source = await sourceOf(dataDir);
    if (!await cancelRestore(dataDir)) return `No restore is staged in "${dataDir}".`;
    const of = source === null ? "" : ` of "${source}"`;
    return `Cancelled the restore${of}: the data stays as it is.`;
  });
}

/** What the staged restore is of; `null` when there is none, or its marker is broken. */
async function sourceOf(dataDir: string): Promise<string | null> {
  try {
    return (await stagedRestore(dataDir))?.source ?? null;
  } catch (error) {
    if (error instanceof BrokenMarkerError) return null;
    throw error;
  }
}

/** Errors an operator can do something about become a `StartError`: what the archive is, and what the disk says. */
async function told<T>(say: (reason: string) => string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const ofDisk = error instanceof Error && "code" in error;
    if (!(error instanceof RestoreError) && !ofDisk) throw error;
    throw new StartError(say(error.message), { cause: error });
  }
}

function finished({ source, keptIn }: AppliedRestore): string {
  const kept = keptIn === null ? "" : ` What it replaced is in ${keptIn}.`;
  return `The restore of "${source}", which was interrupted, is finished.${kept}`;
}

/** What was restored, where the old files are, and what is not as it was then. */
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
      `What it replaced is in ${resolve(keptIn)}: remove that folder when you do not need it any more.`,
    );
  }
  return [...lines, ...notes].join("\n");
}

function notesOfBackup({ parts }: AppliedRestore): string[] {
  const notes: string[] = [];
  if (!parts.includes("secret")) {
    notes.push(
      "The backup has no secret key. Unless the key in this folder is the one it was made with, everybody is signed " +
        "out and encrypted settings have to be entered again.",
    );
  }
  if (!parts.includes("log")) {
    notes.push("The backup has no execution log that this version reads. That in this folder stays.");
  }
  if (!parts.includes("files")) {
    notes.push(
      "The backup has no uploaded files. Those in this folder, or in a bucket, stay; what was deleted since the backup " +
        "cannot be read, and what was uploaded since is removed after the next start.",
    );
  }
  return notes;
}

/** A replica never has what a backup may have beside the documents. */
async function notesOfReplica(dataDir: string): Promise<string[]> {
  const notes = [
    "Secret key, execution log and uploaded files are never in a replica: what this folder, or a bucket, has of them " +
    "stays, but for files that were uploaded after this point, which are removed after the next start.",
  ];
  const { secret } = archiveNames;
  if (await statIfThere(join(dataDir, secret)) === null) {
    notes.push(
      `There is no ${secret} in this folder: put a copy of the server's there before the next start, or everybody is ` +
        "signed out and encrypted settings have to be entered again.",
    );
  }
  return notes;
}
