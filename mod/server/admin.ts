/** The admin endpoints as this server is configured: what they need of accounts and of the data folder is put together here. */
import { Hono } from "hono";
import { join } from "node:path";
import type { AccountService } from "../auth/mod.ts";
import type { Log } from "../kit/log.ts";
import { archiveNames } from "../ops/archive/mod.ts";
import { BackupFolder } from "../ops/backups/backup_folder.ts";
import { Backups } from "../ops/backups/backups.ts";
import { exportRoutes } from "../ops/export/mod.ts";
import { importRoutes, type ImportRoutesOptions } from "../ops/import/mod.ts";
import { Maintenance } from "../ops/maintenance/mod.ts";
import { cancelRestore, stagedRestore } from "../ops/restore/mod.ts";
import { adminRoutes } from "../ops/routes.ts";
import { emptyFolder } from "../ops/spooled_body.ts";
import type { BackendSurroundings } from "./backend.ts";

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

/** Below the data folder. */
const BACKUPS_DIR = "backups";
const INCOMING_DIR = "incoming";

export async function startAdmin(
  { dataDir, port, accounts, restart, log }: StartAdminOptions,
): Promise<Admin> {
  const { authenticator, sessions } = accounts;
  const folder = await BackupFolder.open(join(dataDir, BACKUPS_DIR));
  const incomingDir = join(dataDir, INCOMING_DIR);
  await emptyFolder(incomingDir);
  const maintenance = new Maintenance({ dataDir, log });
  const routes = adminRoutes({
    async verify(token) {
      const verification = await authenticator.verify(token);
      return verification.ok ? verification.identity : null;
    },
    impersonate: (call) => sessions.impersonate(call),
    backups: new Backups({ folder, make: (options) => maintenance.backup(options), log }),
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
    async backupFigures() {
      const { made, failed, last } = maintenance.backups;
      const stored = (await folder.list()).find((backup) => !("error" in backup));
      const times = [stored, last].map((backup) => Date.parse(backup?.createdAt ?? ""));
      const lastAt = Math.max(...times.filter((time) => !Number.isNaN(time)));
      return { made, failed, lastAt: lastAt === -Infinity ? null : lastAt, lastMs: last?.ms ?? null };
    },
    [Symbol.asyncDispose]: () => maintenance[Symbol.asyncDispose](),
  };
}
