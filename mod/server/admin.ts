/** The admin endpoints as this server is configured: what they need of accounts and of the data folder is put together here. */
import { Hono } from "hono";
import { join } from "node:path";
import type { AccountService } from "../auth/mod.ts";
import type { Log } from "../kit/log.ts";
import { archiveNames } from "../ops/archive/mod.ts";
import { BackupFolder } from "../ops/backups/backup_folder.ts";
import { Backups, type MakeBackup } from "../ops/backups/backups.ts";
import { exportRoutes } from "../ops/export/mod.ts";
import { importRoutes, type ImportRoutesOptions } from "../ops/import/mod.ts";
import { Maintenance } from "../ops/maintenance/mod.ts";
import { cancelRestore, stagedRestore } from "../ops/restore/mod.ts";
import { adminRoutes } from "../ops/routes.ts";
import { emptyFolder } from "../ops/spooled_body.ts";
import type { BackendSurroundings } from "./backend.ts";
import { BACKUPS_DIR, INCOMING_DIR } from "./config.ts";

export interface StartAdminOptions extends Pick<BackendSurroundings, "restart"> {
  /** Held by this server. */
  readonly dataDir: string;
  /** The writer. */
  readonly port: ImportRoutesOptions["port"];
  readonly accounts: Pick<AccountService, "authenticator" | "sessions">;
  readonly log: Log;
}

/** Disposing of it ends a backup or a check that is under way. */
export interface Admin extends AsyncDisposable {
  /** For `/api/admin`. */
  readonly routes: Hono;
  /** Makes a backup in the data folder, outside of this process. */
  readonly makeBackup: MakeBackup;
  /** What is known of backups now. */
  backupFigures(): Promise<BackupFigures>;
}

export interface BackupFigures {
  /** Since the start. */
  readonly made: number;
  readonly failed: number;
  /** When the newest one was made, milliseconds since the epoch; `null` when none is known. */
  readonly lastAt: number | null;
  /** How long the last one since the start took; `null` without. */
  readonly lastMs: number | null;
}

export async function startAdmin(
  { dataDir, port, accounts, restart, log }: StartAdminOptions,
): Promise<Admin> {
  const { authenticator, sessions } = accounts;
  const folder = await BackupFolder.open(join(dataDir, BACKUPS_DIR));
  const incomingDir = join(dataDir, INCOMING_DIR);
  await emptyFolder(incomingDir);
  const maintenance = new Maintenance({ dataDir, log });
  let earlier: Promise<{ readonly createdAt: string } | undefined> | undefined;
  const makeBackup: MakeBackup = (options) => maintenance.backup(options);
  const routes = adminRoutes({
    async verify(token) {
      const verification = await authenticator.verify(token);
      return verification.ok ? verification.identity : null;
    },
    impersonate: (call) => sessions.impersonate(call),
    backups: new Backups({ folder, make: makeBackup, log }),
    restores: {
      stage: (options) => maintenance.stage(options),
      staged: () => stagedRestore(dataDir),
      cancel: () => cancelRestore(dataDir),
    },
    incomingDir,
    tables: [
      exportRoutes({ databasePath: join(dataDir, archiveNames.database), log }),
      importRoutes({ port, tempDir: incomingDir, log }),
    ],
    restart,
    log,
  });
  return {
    routes: new Hono().route("/", routes),
    makeBackup,
    async backupFigures() {
      const { made, failed, last } = maintenance.backups;
      // Looked for once: from then on the last one is known, also when its file is deleted.
      earlier ??= folder.list().then((backups) => backups.find((backup) => !("error" in backup)))
        .catch((error) => {
          log("warn", "Metrics do not tell of earlier backups: their folder cannot be read", { error });
          return undefined;
        });
      const newest = last ?? await earlier;
      const lastAt = newest === undefined ? null : Date.parse(newest.createdAt);
      return { made, failed, lastAt, lastMs: last?.ms ?? null };
    },
    [Symbol.asyncDispose]: () => maintenance[Symbol.asyncDispose](),
  };
}
