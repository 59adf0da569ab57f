/** What is below `/api/admin` (AD), and the door of all of it; `/logs`, `/stats` and `/cluster` are mounted by their features. */
import { Hono } from "hono";
import type { Log } from "../kit/log.ts";
import { type AdminEnv, adminGuard, type OtherKeys, type VerifyToken } from "./admin/admin_guard.ts";
import { type AuditRequests, auditRequests } from "./admin/audit_requests.ts";
import { type ImpersonationCall, impersonationRoutes } from "./admin/impersonation_routes.ts";
import { placeRoutes, type Places } from "./admin/place_routes.ts";
import { restartRoutes } from "./admin/restart_routes.ts";
import { type RestorePort, restoreRoutes, stagedOrFault } from "./backups/restore/routes.ts";
import type { Backups } from "./backups/backups.ts";
import { backupRoutes } from "./backups/routes.ts";
import type { BackupTarget } from "./backups/scheduled/backup_target.ts";
import { scheduledRoutes } from "./backups/scheduled/routes.ts";
import { deployPath, deployRoutes, type DeployRoutesOptions } from "./deploy/routes.ts";
import { type ReplicationPort, replicationRoutes } from "./replication/routes.ts";

export interface AdminRoutesOptions {
  readonly verify: VerifyToken;
  /** Gives the token response of the contract; `null` when there is no such user. */
  readonly impersonate: (call: ImpersonationCall) => Promise<object | null>;
  readonly backups: Backups;
  readonly restores: RestorePort;
  /** Where scheduled backups lie; `null` without a schedule. */
  readonly scheduledTarget?: () => BackupTarget | null;
  /** Where the server keeps files, and its replica, to be tried out; none can be without. */
  readonly places?: Places;
  /** Folder of bodies that are being received. */
  readonly incomingDir: string;
  /** Notes what is done by requests; nothing is noted without. */
  readonly audit?: AuditRequests;
  /** Exports and imports of tables. */
  readonly tables: readonly Hono<AdminEnv>[];
  /** Deploys of functions, and the keys that may make them; there are none without. */
  readonly deploy?: DeployRoutesOptions & { readonly keys: Pick<OtherKeys, "verify"> };
  /** `null` on a server that does not replicate. */
  readonly replication: ReplicationPort | null;
  /** What a server that follows another has to tell of that. */
  readonly follower?: (() => object) | null;
  /** Begins an orderly stop that ends in a restart; `null` when nobody would start the process again. */
  readonly restart: (() => void) | null;
  readonly log: Log;
}

/** The sub-app for `/api/admin`. Errors leave as `ServiceError`; who mounts it turns them into responses. */
export function adminRoutes(options: AdminRoutesOptions): Hono<AdminEnv> {
  const { verify, impersonate, backups, restores, incomingDir, tables, replication, restart, log } = options;
  const app = new Hono<AdminEnv>();
  // Before all others, unknown paths included: strangers do not learn what there is.
  const { deploy } = options;
  const keys = deploy && { opens: (path: string) => deployPath.test(path), verify: deploy.keys.verify };
  app.use("*", adminGuard(verify, keys));
  if (options.audit !== undefined) app.use("*", auditRequests(options.audit));
  app.route("/", impersonationRoutes({ impersonate, log }));
  const state = async () => ({
    restore: await stagedOrFault(restores),
    replication: await replication?.status() ??
      { enabled: false, ...(options.follower && { follower: options.follower() }) },
  });
  app.route("/", backupRoutes({ backups, state, log }));
  const { scheduledTarget: target = () => null } = options;
  app.route("/", scheduledRoutes({ target, incomingDir }));
  if (options.places !== undefined) app.route("/", placeRoutes(options.places));
  app.route("/", restoreRoutes({ restores, folder: backups.folder, target, incomingDir, log }));
  for (const routes of tables) app.route("/", routes);
  if (deploy !== undefined) app.route("/", deployRoutes(deploy));
  app.route("/", restartRoutes({ restart, log }));
  app.route("/", replicationRoutes({ port: replication, restores, follower: options.follower, log }));
  return app;
}
