/** Scheduled backups as this server is configured. */
import { join } from "node:path";
import { removeIfThere } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import { BackupError } from "../../ops/backups/mod.ts";
import {
  BACKUP_PATH,
  backupActions,
  type BackupTarget,
  FolderTarget,
  ScheduledBackups,
} from "../../ops/backups/scheduled/mod.ts";
import { emptyFolder } from "../../ops/mod.ts";
import { serviceCron, systemClock } from "../../scheduler/mod.ts";
import type { BackupsConfig, ServeConfig } from "../../config/config.ts";
import { reasonOf, StartError } from "../../config/start_error.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AdminFeature } from "./admin.ts";

/** Below the data folder: where the process that makes backups may write. */
const OUTGOING_DIR = "outgoing";

/** The place that backups go to. Disposing of it ends what is on its way there. */
export interface BackupPlace extends AsyncDisposable {
  readonly target: BackupTarget;
}

/**
 * Opens the place of scheduled backups; `null` without such. Throws a `StartError` when backups cannot be put there, so it
 * is called before anything is started.
 */
export async function openBackupPlace(
  { config: { backups }, log }: { readonly config: Pick<ServeConfig, "backups">; readonly log: Log },
): Promise<BackupPlace | null> {
  if (backups === null) return null;
  const stopping = new AbortController();
  const target = await openTarget(backups.to, { signal: stopping.signal, log });
  return {
    target,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await target[Symbol.asyncDispose]();
    },
  };
}

/** The schedule of backups; a feature that does nothing without one. When the server stops, one on its way to its place ends. */
export async function startBackups(
  { config: { dataDir, backups: config, storage }, log }: FeatureContext,
  { place, admin }: { readonly place: BackupPlace | null; readonly admin: AdminFeature },
): Promise<Feature> {
  const outgoingDir = join(dataDir, OUTGOING_DIR);
  if (config === null || place === null) {
    // Of a server that had a schedule, and was killed.
    await removeIfThere(outgoingDir);
    return {};
  }
  await emptyFolder(outgoingDir);
  const { everyMs, keep } = config;
  const backups = new ScheduledBackups({
    target: place.target,
    make: admin.makeBackup,
    outgoingDir,
    everyMs,
    keep,
    // Files in a bucket do not go when the disk of the data folder does.
    withFiles: storage.s3 === null,
    clock: systemClock,
    counts: admin.backupCounts,
    log,
  });
  return {
    crons: [serviceCron("svc-backup", { kind: "interval", everyMs }, { path: BACKUP_PATH, kind: "action" })],
    actions: backupActions(backups),
    start: () => backups.start(),
    async stop() {
      const closed = backups[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
      await closed;
    },
  };
}

async function openTarget(
  to: BackupsConfig["to"],
  { signal, log }: { readonly signal: AbortSignal; readonly log: Log },
): Promise<BackupTarget> {
  if (to.kind === "folder") {
    try {
      return await FolderTarget.open(to.path, { signal });
    } catch (error) {
      throw new StartError(`Backups cannot be put into "${to.path}": ${reasonOf(error)}`, { cause: error });
    }
  }
  const { BucketTarget } = await import("../../ops/backups/scheduled/bucket_target.ts");
  try {
    const { target, unreachable } = await BucketTarget.open(to.place, { signal });
    if (unreachable !== null) {
      log("warn", "The bucket of scheduled backups cannot be reached now", {
        target: target.place,
        reason: unreachable,
      });
    }
    return target;
  } catch (error) {
    if (!(error instanceof BackupError)) throw error;
    throw new StartError(`Scheduled backups: ${error.message}`, { cause: error });
  }
}
