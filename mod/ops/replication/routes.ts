/** Replication over HTTP: status, snapshots on request, and point-in-time restores. */
import { Hono } from "hono";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readJsonBody } from "../../kit/request_body.ts";
import type { Log } from "../../kit/log.ts";
import { opsLimits } from "../limits.ts";
import type { AdminEnv } from "../admin/admin_guard.ts";
import { type RestorePort, stagedFor } from "../backups/restore/routes.ts";
import type { RestorePoint } from "./history.ts";
import { isGeneration } from "./names.ts";
import type { StagedPoint } from "./restore_point.ts";
import { StageJobError } from "./process/jobs.ts";

/** Replication as used by the endpoints. */
export interface ReplicationPort {
  status(): Promise<object>;
  takeSnapshot(): Promise<object>;
  /** Throws a `StageJobError` with the reason. */
  stage(point: RestorePoint): Promise<StagedPoint>;
}

const pointSchema = z.strictObject({
  toTs: z.int().min(0).optional(),
  toTime: z.iso.datetime({ offset: true }).optional(),
  generation: z.string().refine(isGeneration, "is no name of a generation").optional(),
}).refine(({ toTs, toTime }) => toTs === undefined || toTime === undefined, "Give toTs or toTime, not both");

/** `port` is `null` on a server that does not replicate. */
export function replicationRoutes(
  { port, restores, follower, log }: {
    readonly port: ReplicationPort | null;
    readonly restores: Pick<RestorePort, "cancel">;
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
  app.post("/restore/point-in-time", async (c) => {
    const replication = needed();
    const { toTime, ...rest } = await readJsonBody(c.req.raw, pointSchema, {
      bytesMax: opsLimits.bodyBytesMax,
      whenEmpty: {},
    });
    if (staging) throw new ServiceError("overloaded", "Another point is being rebuilt, try again later");
    staging = true;
    const adminId = c.get("adminId");
    try {
      const point = { ...rest, ...(toTime !== undefined && { toTime: Date.parse(toTime) }) };
      const restore = await stagedFor(c, restores, () => replication.stage(point));
      log("info", "An administrator staged a restore to a point in time; the next start applies it", {
        adminId,
        source: restore.source,
        ts: restore.ts,
      });
      return c.json({ restore });
    } catch (error) {
      throw explained(error, log);
    } finally {
      staging = false;
    }
  });
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
