/** Scheduled backups. */
import { join } from "node:path";
import { systemClock } from "../../kit/clock.ts";
import { removeIfThere } from "../../kit/durable_files.ts";
import type { Log } from "../../kit/log.ts";
import {
  BACKUP_PATH,
  backupActions,
  BackupTarget,
  ScheduledBackups,
} from "../../ops/backups/scheduled/mod.ts";
import { emptyFolder } from "../../ops/mod.ts";
import { type Cron, serviceCron } from "../../scheduler/mod.ts";
import type { PostgresCluster } from "../../cluster/postgres/mod.ts";
import type { BackupsConfig, ServeConfig } from "../../config/config.ts";
import { StartError } from "../../config/start_error.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AdminFeature } from "./admin.ts";
import type { MaintenanceFeature } from "./maintenance.ts";
import type { CronPort } from "./scheduling.ts";

/** Folder below the data folder in which backups are written before they are sent. */
const OUTGOING_DIR = "outgoing";

/** Opens the backup target; `null` if none. Throws a `StartError`. `later`: opens it on demand, and backups report errors. */
export async function openBackupTarget(
  { config: { backups }, later = false, log }: {
    readonly config: Pick<ServeConfig, "backups">;
    readonly later?: boolean;
    readonly log: Log;
  },
): Promise<BackupTarget | null> {
  if (backups === null) return null;
  const target = new BackupTarget(backups.to);
  if (later) return target;
  try {
    const { unreachable } = await target.open();
    if (unreachable !== null) {
      log("warn", "The bucket of scheduled backups is unreachable", {
        code: "backup",
        target: target.location,
        reason: unreachable,
      });
    }
    return target;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new StartError(`Scheduled backups: ${error.message}`, { code: "backup", cause: error });
  }
}

export interface BackupsFeature extends Feature {
  /** Current target; `null` if backups are disabled. */
  readonly target: BackupTarget | null;
  /** Why the last scheduled backup failed, and whether earlier ones are counted; `null` if backups are disabled. */
  readonly status: Pick<ScheduledBackups, "failure" | "isListed"> | null;
  /** Validates a configuration. Rejects with a `StartError`. */
  tryOut(config: BackupsConfig | null): Promise<void>;
  /** Applies a configuration; `null` disables backups. Throws a `StartError` if the target cannot be used. */
  configure(config: BackupsConfig | null): Promise<void>;
}

/** The current schedule. Disposing of it aborts a running backup. */
interface Schedule extends AsyncDisposable {
  readonly config: BackupsConfig;
  readonly target: BackupTarget;
  readonly backups: ScheduledBackups;
}

/** Starts the backup schedule, if there is one. A running backup is aborted when the server stops. */
export async function startBackups(
  { config: { dataDir, backups: config, storage }, log }: FeatureContext,
  parts: {
    readonly backupTarget: BackupTarget | null;
    readonly maintenance: MaintenanceFeature;
    readonly admin: AdminFeature;
    /** `null` outside a cluster. */
    readonly cluster: Pick<PostgresCluster, "leadsSurely"> | null;
    /** Changes the schedule while the server runs. */
    readonly scheduling: CronPort;
  },
): Promise<BackupsFeature> {
  const { backupTarget: first, maintenance, admin, cluster } = parts;
  const outgoingDir = join(dataDir, OUTGOING_DIR);
  const scheduleOf = async (config: BackupsConfig, target: BackupTarget): Promise<Schedule> => {
    if (started) await emptyFolder(outgoingDir);
    const backups = new ScheduledBackups({
      target,
      make: maintenance.makeBackup,
      outgoingDir,
      everyMs: config.everyMs,
      keep: config.keep,
      // Files in a bucket do not depend on the data folder's disk.
      withFiles: storage.s3 === null,
      clock: systemClock,
      mayMake: () => cluster?.leadsSurely ?? true,
      counts: admin.backupCounts,
      log,
    });
    return {
      config,
      target,
      backups,
      async [Symbol.asyncDispose]() {
        const closed = backups[Symbol.asyncDispose]();
        await target[Symbol.asyncDispose]();
        await closed;
      },
    };
  };
  let started = false;
  let schedule = config === null || first === null ? null : await scheduleOf(config, first);
  // Contains leftovers of a killed process.
  if (schedule === null) await removeIfThere(outgoingDir);
  else await emptyFolder(outgoingDir);
  return {
    get target() {
      return schedule?.target ?? null;
    },
    get status() {
      return schedule?.backups ?? null;
    },
    get crons() {
      return schedule === null ? [] : [cronOf(schedule.config)];
    },
    actions: backupActions({
      run: () =>
        schedule?.backups.run() ?? Promise.resolve({ kind: "failed", reason: "there is no schedule" }),
    }),
    start() {
      started = true;
      schedule?.backups.start();
    },
    async stop() {
      await schedule?.[Symbol.asyncDispose]();
    },
    async configure(changed) {
      if (JSON.stringify(changed) === JSON.stringify(schedule?.config ?? null)) return;
      // The new target is opened before the old one is closed.
      const target = await openBackupTarget({ config: { backups: changed }, log });
      await schedule?.[Symbol.asyncDispose]();
      schedule = changed === null || target === null ? null : await scheduleOf(changed, target);
      if (changed === null) await parts.scheduling.removeServiceCron(CRON_NAME);
      else await parts.scheduling.setServiceCron(cronOf(changed));
      if (started) schedule?.backups.start();
    },
    async tryOut(changed) {
      if (changed === null || JSON.stringify(changed.to) === JSON.stringify(schedule?.config.to)) return;
      await using _target = await openBackupTarget({ config: { backups: changed }, log });
    },
  };
}

const CRON_NAME = "svc-backup";

function cronOf({ everyMs }: BackupsConfig): Cron {
  return serviceCron(CRON_NAME, { kind: "interval", everyMs }, { path: BACKUP_PATH, kind: "action" });
}
