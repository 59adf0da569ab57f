/** `GET /api/health/ready`, for load balancers and supervisors; requires no token. */
import { Hono } from "hono";
import type { Readiness } from "./readiness.ts";

export function healthRoutes(readiness: Pick<Readiness, "report">): Hono {
  return new Hono().get("/ready", async (c) => {
    const report = await readiness.report();
    return c.json(report, report.status === "ready" ? 200 : 503, { "Cache-Control": "no-store" });
  });
}
