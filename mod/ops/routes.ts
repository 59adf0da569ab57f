/**
 * Routes below `/api/admin` (AD), behind one guard, with those of impersonation, location tests and restarts. Features of the
 * server mount `/logs`, `/stats` and `/cluster`.
 */
import { Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { type LocationProbe, probeLocation } from "../kit/locations/location_probe.ts";
import type { Log } from "../kit/log.ts";
import { readJsonBody } from "../kit/request_body.ts";
import { type AdminEnv, adminGuard, type KeyVerifier, type VerifyToken } from "./admin/admin_guard.ts";
import { type AuditRequests, auditRequests } from "./admin/audit_log.ts";
import type { Backups } from "./backups/backups.ts";
import type { ExportRebuilt } from "./backups/restore/rebuilt_table.ts";
import { type RestorePort, restoreRoutes, stagedOrError } from "./backups/restore/routes.ts";
import { backupRoutes } from "./backups/routes.ts";
import type { BackupTarget } from "./backups/scheduled/mod.ts";
import { scheduledRoutes } from "./backups/scheduled/routes.ts";
import { deployPath, deployRoutes, type DeployRoutesOptions } from "./deploy/routes.ts";
import { opsLimits } from "./limits.ts";
import { type ReplicationPort, replicationRoutes } from "./replication/routes.ts";

interface ImpersonationCall {
  readonly userId: string;
  readonly adminId: string;
  /** The administrator's own session. The impersonation ends with it. */
  readonly adminSession: string;
  /** Lifetime of the session, regardless of token refreshes. */
  readonly lifetimeMs: number;
  readonly userAgent: string | null;
}

export interface ImpersonationRoutesOptions {
  /** Returns the token response of the contract; `null` if the user does not exist. */
  readonly impersonate: (call: ImpersonationCall) => Promise<object | null>;
  readonly log: Log;
}

const bodySchema = z.object({
  userId: z.string(),
  ttlSeconds: z.int().min(1).max(opsLimits.impersonationSecondsMax)
    .default(opsLimits.impersonationSecondsDefault),
});

/** `POST /api/admin/impersonate`: creates a session in which an administrator acts as a user. */
function impersonationRoutes({ impersonate, log }: ImpersonationRoutesOptions): Hono<AdminEnv> {
  return new Hono<AdminEnv>().post("/impersonate", async (c) => {
    const body = await readJsonBody(c.req.raw, bodySchema, { bytesMax: opsLimits.bodyBytesMax });
    const { userId, ttlSeconds } = body;
    const adminId = c.get("adminId");
    c.set("noted", { userId, ttlSeconds });
    const userAgent = c.req.header("user-agent") ?? null;
    const tokens = await impersonate({
      userId,
      adminId,
      adminSession: c.get("sessionId"),
      lifetimeMs: ttlSeconds * 1000,
      userAgent,
    });
    if (tokens === null) throw new ServiceError("not_found", "User not found");
    log("info", "Impersonation started", { adminId, userId, ttlSeconds });
    return c.json(tokens);
  });
}

/** By name; `null` if not configured. */
type TestedLocations = Readonly<Record<"files" | "replica", () => LocationProbe | null>>;

/** Throws `not_found` for a location that is not configured, and `overloaded` if its test is already running. */
function locationRoutes(locations: TestedLocations): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  const running = new Set<string>();
  app.post("/places/:name/check", async (c) => {
    const name = c.req.param("name");
    const probe = Object.hasOwn(locations, name) ? locations[name as keyof TestedLocations]() : null;
    if (probe === null) throw new ServiceError("not_found", `No location is configured for "${name}"`);
    if (running.has(name)) {
      throw new ServiceError("overloaded", "A test of this location is already running. Try again later.");
    }
    running.add(name);
    try {
      return c.json(await probeLocation(probe, { stepMs: opsLimits.placeStepMs }));
    } finally {
      running.delete(name);
    }
  });
  return app;
}

export interface RestartRoutesOptions {
  /** Starts a graceful stop; requests in progress are answered. `null` without a supervisor. */
  readonly restart: (() => void) | null;
  readonly log: Log;
}

/** `/api/admin/restore/restart`: `POST` restarts the process, which applies a staged restore; `GET` returns whether that is possible. */
function restartRoutes({ restart, log }: RestartRoutesOptions): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  app.get("/restore/restart", (c) => c.json({ offered: restart !== null }));
  app.post("/restore/restart", (c) => {
    if (restart === null) throw new ServiceError("not_found");
    log("info", "Restart requested by an administrator", { adminId: c.get("adminId") });
    restart();
    return c.json({});
  });
  return app;
}

export interface AdminRoutesOptions {
  readonly verify: VerifyToken;
  /** Returns the token response of the contract; `null` if the user does not exist. */
  readonly impersonate: (call: ImpersonationCall) => Promise<object | null>;
  readonly backups: Backups;
  readonly restores: RestorePort;
  /** Returns the target of scheduled backups; `null` without a schedule. */
  readonly scheduledTarget?: () => BackupTarget | null;
  /** Returns the time of the newest backup at any location; not finite if there is none. Optional. */
  readonly newestBackup?: () => Promise<number | null>;
  /** Storage locations that can be tested. Optional. */
  readonly places?: TestedLocations;
  /** Folder of request bodies being received. */
  readonly incomingDir: string;
  /** Audits requests. Optional. */
  readonly audit?: AuditRequests;
  readonly tables: readonly Hono<AdminEnv>[];
  /** Exports a table of a backup or a point in time. Optional. */
  readonly exportRebuilt?: ExportRebuilt;
  /** Deploys, and the keys that authorize them. Optional. */
  readonly deploy?: DeployRoutesOptions & { readonly keys: Omit<KeyVerifier, "accepts"> };
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
  const keys = deploy && { ...deploy.keys, accepts: (path: string) => deployPath.test(path) };
  app.use("*", adminGuard(verify, keys));
  if (options.audit !== undefined) app.use("*", auditRequests(options.audit));
  app.route("/", impersonationRoutes({ impersonate, log }));
  const state = async () => ({
    newest: await options.newestBackup?.() ?? null,
    restore: await stagedOrError(restores),
    replication: await replication?.status() ??
      { enabled: false, ...(options.follower && { follower: options.follower() }) },
  });
  app.route("/", backupRoutes({ backups, state, log }));
  const { scheduledTarget: target = () => null } = options;
  app.route("/", scheduledRoutes({ target, incomingDir }));
  if (options.places !== undefined) app.route("/", locationRoutes(options.places));
  const { exportRebuilt, follower } = options;
  app.route(
    "/",
    restoreRoutes({ restores, folder: backups.folder, target, exportRebuilt, incomingDir, log }),
  );
  for (const routes of tables) app.route("/", routes);
  if (deploy !== undefined) app.route("/", deployRoutes(deploy));
  app.route("/", restartRoutes({ restart, log }));
  app.route(
    "/",
    replicationRoutes({ port: replication, restores, exportRebuilt, incomingDir, follower, log }),
  );
  return app;
}
