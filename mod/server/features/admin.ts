/** The admin endpoints: wires them to accounts, maintenance and the data folder. */
import { Hono } from "hono";
import { join } from "node:path";
import { ServiceError } from "../../errors.ts";
import type { Log } from "../../kit/log.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";
import { BackupCounts, BackupFolder, Backups } from "../../ops/backups/mod.ts";
import { exportRoutes, tableExports } from "../../ops/tables/export/routes.ts";
import { importRoutes } from "../../ops/tables/import/routes.ts";
import type { BackupTarget } from "../../ops/backups/scheduled/mod.ts";
import { cancelRestore, stagedDatabase, stagedRestore } from "../../ops/backups/restore/mod.ts";
import type { AdminWork, AuditLog } from "../../ops/admin/mod.ts";
import { adminRoutes, emptyFolder, type VerifyToken } from "../../ops/mod.ts";
import { BACKUPS_DIR, INCOMING_DIR } from "../../config/config.ts";
import { guestCaller } from "../../sync/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AccountsFeature } from "./accounts.ts";
import type { DeployFeature } from "./deploy.ts";
import type { FollowingFeature } from "./following.ts";
import type { MaintenanceFeature } from "./maintenance.ts";
import type { ReplicationFeature } from "./replication.ts";
import type { StorageFeature } from "./storage.ts";

export interface AdminFeature extends Feature {
  /** Numbers of backups made and failed. */
  readonly backupCounts: BackupCounts;
  /** Reads the existing backups once and returns the counts. */
  knownBackups(): Promise<BackupCounts>;
  /** Lists the backups in the data folder. */
  readonly listBackups: BackupFolder["list"];
  /** Returns the time of the newest backup at any location: `-Infinity` if there is none, `null` while unknown. */
  newestBackup(): Promise<number | null>;
}

export async function startAdmin(
  context: FeatureContext,
  parts: {
    readonly accounts: AccountsFeature;
    readonly storage: Pick<StorageFeature, "probe">;
    readonly steering: { readonly audit: AuditLog; readonly work: AdminWork };
    readonly maintenance: MaintenanceFeature;
    readonly replication: ReplicationFeature;
    readonly following: FollowingFeature;
    readonly deploy: DeployFeature;
    readonly backups: {
      readonly target: BackupTarget | null;
      readonly status: { readonly isListed: boolean } | null;
    };
  },
): Promise<AdminFeature> {
  const { accounts: { authenticator, sessions }, steering: { audit, work }, maintenance } = parts;
  const { apiKeys } = authenticator;
  const { config: { dataDir, cluster }, port, clientOf, restart, log } = context;
  const folder = await BackupFolder.open(join(dataDir, BACKUPS_DIR));
  const incomingDir = join(dataDir, INCOMING_DIR);
  await emptyFolder(incomingDir);
  const counts = new BackupCounts();
  let looked: Promise<void> | null = null;
  const knownBackups = async () => {
    await (looked ??= countExisting({ folder, counts, log }));
    return counts;
  };
  const newestBackup = async () => {
    const [newest] = (await folder.list()).filter((backup) => !("error" in backup));
    const at = Math.max(
      (await knownBackups()).last?.at ?? -Infinity,
      Date.parse(newest?.createdAt ?? "") || -Infinity,
    );
    return at === -Infinity && parts.backups.status?.isListed === false ? null : at;
  };
  const databasePath = join(dataDir, archiveNames.database);
  const exported = tableExports({ databasePath, log });
  const routes = adminRoutes({
    verify: verifyWith(authenticator),
    impersonate: (call) => sessions.impersonate(call),
    backups: new Backups({
      folder,
      make: (options) => counts.count(() => maintenance.makeBackup(options)),
      log,
    }),
    restores: {
      stage(options) {
        if (cluster !== null && options.checkOnly !== true) throw restoreInCluster();
        return maintenance.stage(options);
      },
      staged: () => stagedRestore(dataDir),
      cancel: (stagedAt) => cancelRestore(dataDir, { stagedAt }),
    },
    places: { files: parts.storage.probe, replica: parts.replication.probe },
    incomingDir,
    audit: { log: audit, clientOf },
    deploy: {
      ...parts.deploy.routesOptions,
      keys: {
        verify: (token, c) => apiKeys.verifyDeployKey(token, guestCaller(clientOf(c)).blame),
        isActive: (keyId) => apiKeys.mayDeploy(keyId),
      },
    },
    scheduledTarget: () => parts.backups.target,
    newestBackup,
    tables: [
      exportRoutes({ databasePath, exported, stagedDatabase: () => stagedDatabase(dataDir), log }),
      importRoutes({ port, works: work, tempDir: incomingDir, log }),
    ],
    exportRebuilt: exported,
    replication: parts.replication.replication,
    follower: parts.following.status,
    restart,
    log,
  });
  return {
    routes: [{ at: "/api/admin", app: new Hono().route("/", routes) }],
    backupCounts: counts,
    listBackups: () => folder.list(),
    knownBackups,
    newestBackup,
  };
}

/** In a cluster, the shared log decides the contents of the database. */
function restoreInCluster(): ServiceError {
  return new ServiceError(
    "bad_request",
    "A server of a cluster cannot be restored. Restore the backup into an empty folder and create a new cluster from it",
  );
}

/** Checks access tokens for `/api/admin`. */
export function verifyWith(authenticator: AccountsFeature["authenticator"]): VerifyToken {
  return async (token) => {
    const verification = await authenticator.verify(token);
    // API keys, which alone never expire, are no administrator's.
    if (!verification.ok || verification.expiresAt === null) return null;
    const { identity, expiresAt } = verification;
    return { identity, expiresAt, role: () => authenticator.adminRole(identity) };
  };
}

async function countExisting(
  { folder, counts, log }: {
    readonly folder: BackupFolder;
    readonly counts: BackupCounts;
    readonly log: Log;
  },
): Promise<void> {
  try {
    for (const backup of await folder.list()) {
      if (!("error" in backup)) counts.found(Date.parse(backup.createdAt));
    }
  } catch (error) {
    log("warn", "Cannot read the backup folder: metrics omit earlier backups", {
      code: "metrics",
      error,
    });
  }
}
