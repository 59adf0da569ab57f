/** Replication over HTTP: status, snapshots on request, and point-in-time restores. */
import { type Context, Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readJsonBody } from "../../kit/request_body.ts";
import type { Log } from "../../kit/log.ts";
import { opsLimits } from "../limits.ts";
import type { AdminEnv } from "../admin/admin_guard.ts";
import { type ExportRebuilt, exportRebuiltTable } from "../backups/restore/rebuilt_table.ts";
import { type RestorePort, stagedFor } from "../backups/restore/routes.ts";
import type { RestorePoint } from "./history.ts";
import { isGeneration } from "./names.ts";
import type { StagedPoint } from "./restore_point.ts";
import { StageJobError } from "./process/jobs.ts";

/** Replication as used by the endpoints. */
export interface ReplicationPort {
  status(): Promise<object>;
  takeSnapshot(): Promise<object>;
  /** Stages a point, or only writes its database to a path. Throws a `StageJobError` with the reason. */
  stage(point: RestorePoint, rebuilt?: { readonly databaseTo: string }): Promise<StagedPoint>;
}

const pointSchema = z.strictObject({
  toTs: z.int().min(0).optional(),
  toTime: z.iso.datetime({ offset: true }).optional(),
  generation: z.string().refine(isGeneration, "is no name of a generation").optional(),
}).refine(({ toTs, toTime }) => toTs === undefined || toTime === undefined, "Give toTs or toTime, not both");

/** `port` is `null` on a server that does not replicate. */
export function replicationRoutes(
  { port, restores, exportRebuilt, incomingDir, follower, log }: {
    readonly port: ReplicationPort | null;
    readonly restores: Pick<RestorePort, "cancel">;
    /** Without it, tables of a point are not exported. */
    readonly exportRebuilt?: ExportRebuilt | undefined;
    /** Folder for rebuilt databases, which is emptied at start. */
    readonly incomingDir: string;
    /** Returns the status of a server that follows another. */
    readonly follower?: (() => object) | null | undefined;
    readonly log: Log;
  },
): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  /** Whether a point is being rebuilt. Two at once could fill the disk. */
  let staging = false;
  const needed = () => {
    if (port === null) throw new ServiceError("replication_off");
    return port;
  };
  app.get(
    "/replication",
    async (c) =>
      c.json(await port?.status() ?? { enabled: false, ...(follower && { follower: follower() }) }),
  );
  app.post("/replication/snapshot", async (c) => c.json(await needed().takeSnapshot()));
  /** Rebuilds the point of a request. */
  const rebuild = async <Result>(
    c: Context<AdminEnv>,
    work: (replication: ReplicationPort, point: RestorePoint) => Promise<Result>,
  ): Promise<Result> => {
    const replication = needed();
    const { toTime, ...rest } = await readJsonBody(c.req.raw, pointSchema, {
      bytesMax: opsLimits.bodyBytesMax,
      whenEmpty: {},
    });
    if (staging) throw new ServiceError("overloaded", "Another point is being rebuilt, try again later");
    staging = true;
    try {
      return await work(replication, {
        ...rest,
        ...(toTime !== undefined && { toTime: Date.parse(toTime) }),
      });
    } catch (error) {
      throw explained(error, log);
    } finally {
      staging = false;
    }
  };
  app.post("/restore/point-in-time", async (c) => {
    const restore = await rebuild(
      c,
      (replication, point) => stagedFor(c, restores, () => replication.stage(point)),
    );
    log("info", "An administrator staged a restore to a point in time; the next start applies it", {
      adminId: c.get("adminId"),
      source: restore.source,
      ts: restore.ts,
    });
    return c.json({ restore });
  });
  if (exportRebuilt === undefined) return app;
  app.post("/restore/point-in-time/export/:table", (c) =>
    exportRebuiltTable(c, {
      exportRebuilt,
      incomingDir,
      build: (databaseTo) => rebuild(c, (replication, point) => replication.stage(point, { databaseTo })),
    }));
  return app;
}

function explained(error: unknown, log: Log): unknown {
  if (!(error instanceof StageJobError)) return error;
  if (error.fault === "asked") return new ServiceError("point_unreachable", error.message, { cause: error });
  log("error", "A restore to a point in time could not be staged", { code: "replication", error });
  if (error.fault === "room") return new ServiceError("disk_full", error.message, { cause: error });
  return new ServiceError("restore_failed", `The restore could not be staged: ${error.message}`, {
    cause: error,
  });
}
