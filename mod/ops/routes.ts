/** Routes below `/api/admin` (AD), behind one guard. Their features mount `/logs`, `/stats` and `/cluster`. */
import { Hono } from "hono";
import type { Log } from "../kit/log.ts";
import { type AdminEnv, adminGuard, type KeyVerifier, type VerifyToken } from "./admin/admin_guard.ts";
import { type AuditRequests, auditRequests } from "./admin/audit_log.ts";
import {
  type ImpersonationCall,
  impersonationRoutes,
  locationRoutes,
  restartRoutes,
  type TestedLocations,
} from "./admin/endpoints.ts";
import { type RestorePort, restoreRoutes, stagedOrError } from "./backups/restore/routes.ts";
import type { Backups } from "./backups/backups.ts";
import { backupRoutes } from "./backups/routes.ts";
import type { BackupTarget } from "./backups/scheduled/mod.ts";
import { scheduledRoutes } from "./backups/scheduled/routes.ts";
import { deployPath, deployRoutes, type DeployRoutesOptions } from "./deploy/routes.ts";
import { type ReplicationPort, replicationRoutes } from "./replication/routes.ts";

export interface AdminRoutesOptions {
  readonly verify: VerifyToken;
  /** Returns the token response of the contract; `null` if the user does not exist. */
  readonly impersonate: (call: ImpersonationCall) => Promise<object | null>;
  readonly backups: Backups;
  readonly restores: RestorePort;
  /** Returns the target of scheduled backups; `null` without a schedule. */
  readonly scheduledTarget?: () => BackupTarget | null;
  /** Storage locations that can be tested. Optional. */
  readonly places?: TestedLocations;
  /** Folder of request bodies being received. */
  readonly incomingDir: string;
  /** Audits requests. Optional. */
  readonly audit?: AuditRequests;
  readonly tables: readonly Hono<AdminEnv>[];
  /** Deploys, and the keys that authorize them. Optional. */
  readonly deploy?: DeployRoutesOptions & { readonly keys: Pick<KeyVerifier, "verify"> };
  /** `null` without replication. */
  readonly replication: ReplicationPort | null;
  /** Status of a server that follows a replica. */
  readonly follower?: (() => object) | null;
  /** Starts a graceful stop for a restart; `null` without a supervisor. */
  readonly restart: (() => void) | null;
  readonly log: Log;
}

/** Creates the routes. Errors are thrown as `ServiceError` for the parent app. */
export function adminRoutes(options: AdminRoutesOptions): Hono<AdminEnv> {
  const { verify, impersonate, backups, restores, incomingDir, tables, replication, restart, log } = options;
  const app = new Hono<AdminEnv>();
  // First, and for unknown paths too, so that unauthenticated callers learn nothing about the routes.
  const { deploy } = options;
  const keys = deploy && { accepts: (path: string) => deployPath.test(path), verify: deploy.keys.verify };
  app.use("*", adminGuard(verify, keys));
  if (options.audit !== undefined) app.use("*", auditRequests(options.audit));
  app.route("/", impersonationRoutes({ impersonate, log }));
  const state = async () => ({
    restore: await stagedOrError(restores),
    replication: await replication?.status() ??
      { enabled: false, ...(options.follower && { follower: options.follower() }) },
  });
  app.route("/", backupRoutes({ backups, state, log }));
  const { scheduledTarget: target = () => null } = options;
  app.route("/", scheduledRoutes({ target, incomingDir }));
  if (options.places !== undefined) app.route("/", locationRoutes(options.places));
  app.route("/", restoreRoutes({ restores, folder: backups.folder, target, incomingDir, log }));
  for (const routes of tables) app.route("/", routes);
  if (deploy !== undefined) app.route("/", deployRoutes(deploy));
  app.route("/", restartRoutes({ restart, log }));
  app.route("/", replicationRoutes({ port: replication, restores, follower: options.follower, log }));
  return app;
}
