/** Scheduled backups as this server is configured. */
import { join } from "node:path";
import { systemClock } from "../../kit/clock.ts";
import { removeIfThere } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import { BackupError } from "../../ops/backups/mod.ts";
import {
  BACKUP_PATH,
  backupActions,
  type BackupTarget,
  LazyTarget,
  openFolder,
  ScheduledBackups,
} from "../../ops/backups/scheduled/mod.ts";
import { emptyFolder } from "../../ops/mod.ts";
import { type Cron, serviceCron } from "../../scheduler/mod.ts";
import type { PostgresCluster } from "../../cluster/postgres/mod.ts";
import type { BackupsConfig, ServeConfig } from "../../config/config.ts";
import { fileErrorReason, StartError } from "../../config/start_error.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AdminFeature } from "./admin.ts";
import type { MaintenanceFeature } from "./maintenance.ts";
import type { CronPort } from "./scheduling.ts";

/** Below the data folder: where the process that makes backups may write. */
const OUTGOING_DIR = "outgoing";

/** The place that backups go to. Disposing of it ends what is on its way there. */
export interface BackupPlace extends AsyncDisposable {
  readonly target: BackupTarget;
}

/**
 * Opens the place of scheduled backups; `null` without such. Throws a `StartError` when backups cannot be put there, so it
 * is called before anything is started. With `later` nothing waits for the place, and the next backup tells what is wrong
 * with it.
 */
export async function openBackupPlace(
  { config: { backups }, later = false, log }: {
    readonly config: Pick<ServeConfig, "backups">;
    readonly later?: boolean;
    readonly log: Log;
  },
): Promise<BackupPlace | null> {
  if (backups === null) return null;
  const stopping = new AbortController();
  const open = () => openTarget(backups.to, { signal: stopping.signal, log });
  const target = later ? new LazyTarget(nameOf(backups.to), open) : await open();
  return {
    target,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await target[Symbol.asyncDispose]();
    },
  };
}

export interface BackupsFeature extends Feature {
  /** Where backups go now; `null`: none are made. */
  readonly target: BackupTarget | null;
  /** Rejects with a `StartError` when backups cannot be made so. */
  tryOut(config: BackupsConfig | null): Promise<void>;
  /** From now on backups are made so; `null`: none are. Throws a `StartError` when they cannot be put there. */
  configure(config: BackupsConfig | null): Promise<void>;
}

/** Backups as they are made now. Disposing of it ends one on its way to its place. */
interface Schedule extends AsyncDisposable {
  readonly config: BackupsConfig;
  readonly target: BackupTarget;
  readonly backups: ScheduledBackups;
}

/** The schedule of backups, if there is one. When the server stops, one on its way to its place ends. */
export async function startBackups(
  { config: { dataDir, backups: config, storage }, takesOver, log }: FeatureContext,
  parts: {
    readonly backupPlace: BackupPlace | null;
    readonly maintenance: MaintenanceFeature;
    readonly admin: AdminFeature;
    /** The cluster that this server is one of; `null`: it is alone. */
    readonly cluster: Pick<PostgresCluster, "leadsSurely"> | null;
    /** Changes the schedule while the server runs. */
    readonly scheduling: CronPort;
  },
): Promise<BackupsFeature> {
  const { backupPlace: first, maintenance, admin, cluster } = parts;
  const outgoingDir = join(dataDir, OUTGOING_DIR);
  const scheduleOf = async (config: BackupsConfig, place: BackupPlace): Promise<Schedule> => {
    if (started) await emptyFolder(outgoingDir);
    const backups = new ScheduledBackups({
      target: place.target,
      make: maintenance.makeBackup,
      outgoingDir,
      everyMs: config.everyMs,
      keep: config.keep,
      // Files in a bucket do not go when the disk of the data folder does.
      withFiles: storage.s3 === null,
      clock: systemClock,
      mayMake: () => cluster?.leadsSurely ?? true,
      counts: admin.backupCounts,
      log,
    });
    return {
      config,
      target: place.target,
      backups,
      async [Symbol.asyncDispose]() {
        const closed = backups[Symbol.asyncDispose]();
        await place[Symbol.asyncDispose]();
        await closed;
      },
    };
  };
  let started = false;
  let schedule = config === null || first === null ? null : await scheduleOf(config, first);
  // What is there is of a server that was killed, or of the one that still works here.
  const clear = async () =>
    schedule === null ? await removeIfThere(outgoingDir) : await emptyFolder(outgoingDir);
  if (!takesOver) await clear();
  return {
    leads: true,
    get target() {
      return schedule?.target ?? null;
    },
    get crons() {
      return schedule === null ? [] : [cronOf(schedule.config)];
    },
    actions: backupActions({
      run: () =>
        schedule?.backups.run() ?? Promise.resolve({ kind: "failed", reason: "there is no schedule" }),
    }),
    async start() {
      if (takesOver) await clear();
      started = true;
      schedule?.backups.start();
    },
    async stop() {
      await schedule?.[Symbol.asyncDispose]();
    },
    async configure(changed) {
      if (JSON.stringify(changed) === JSON.stringify(schedule?.config ?? null)) return;
      // The new place is tried before the old one is given up.
      const place = await openBackupPlace({ config: { backups: changed }, log });
      await schedule?.[Symbol.asyncDispose]();
      schedule = changed === null || place === null ? null : await scheduleOf(changed, place);
      if (changed === null) await parts.scheduling.removeServiceCron(CRON_NAME);
      else await parts.scheduling.setServiceCron(cronOf(changed));
      if (started) schedule?.backups.start();
    },
    async tryOut(changed) {
      if (changed === null || JSON.stringify(changed.to) === JSON.stringify(schedule?.config.to)) return;
      await using _place = await openBackupPlace({ config: { backups: changed }, log });
    },
  };
}

const CRON_NAME = "svc-backup";

function cronOf({ everyMs }: BackupsConfig): Cron {
  return serviceCron(CRON_NAME, { kind: "interval", everyMs }, { path: BACKUP_PATH, kind: "action" });
}

function nameOf(to: BackupsConfig["to"]): string {
  return to.kind === "folder" ? to.path : `s3://${to.place.bucket}/${to.place.prefix}`;
}

async function openTarget(
  to: BackupsConfig["to"],
  { signal, log }: { readonly signal: AbortSignal; readonly log: Log },
): Promise<BackupTarget> {
  if (to.kind === "folder") {
    try {
      return await openFolder(to.path, { signal });
    } catch (error) {
      throw new StartError(`Cannot store backups in "${to.path}": ${fileErrorReason(error)}`, {
        code: "backup",
        cause: error,
      });
    }
  }
  const { BucketTarget } = await import("../../ops/backups/scheduled/bucket_target.ts");
  try {
    const { target, unreachable } = await BucketTarget.open(to.place, { signal });
    if (unreachable !== null) {
      log("warn", "The bucket of scheduled backups cannot be reached now", {
        code: "backup",
        target: target.place,
        reason: unreachable,
      });
    }
    return target;
  } catch (error) {
    if (!(error instanceof BackupError)) throw error;
    throw new StartError(`Scheduled backups: ${error.message}`, { code: "backup", cause: error });
  }
}
