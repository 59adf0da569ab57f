/** `GET /api/admin/logs` and its stream (contract: Admin and operations endpoints; Events). */
import { Hono } from "hono";
import { ServiceError } from "../../errors.ts";
import { requestSearch } from "../../kit/http_request.ts";
import type { AdminEnv } from "../admin/admin_guard.ts";
import type { ExecutionLog } from "./execution_log.ts";
import { parseLogQuery, parseStreamQuery } from "./log_query.ts";
import type { LogStreams } from "./stream/log_streams.ts";

export interface LogRoutesOptions {
  readonly log: Pick<ExecutionLog, "page" | "facts">;
  readonly streams: LogStreams;
  readonly now: () => number;
}

export function logRoutes({ log, streams, now }: LogRoutesOptions): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  app.get("/logs", async (c) => {
    return c.json(await logPage(log, new URLSearchParams(requestSearch(c.req.raw)), now()));
  });
  app.get("/logs/stream", async (c) => {
    const { filter, after } = parseStreamQuery(
      new URLSearchParams(requestSearch(c.req.raw)),
      c.req.header("last-event-id") ?? null,
    );
    const stream = await streams.open({
      filter,
      after,
      session: {
        sessionId: c.get("sessionId"),
        principal: `admin:${c.get("adminId")}`,
        expiresAt: c.get("expiresAt"),
      },
    });
    return c.body(stream, 200, {
      "Content-Type": "text/event-stream; charset=utf-8",
      // Prevents proxies from buffering the events.
      "X-Accel-Buffering": "no",
    });
  });
  return app;
}

/** Reads a page of runs. Throws `bad_request` for invalid parameters. */
export async function logPage(
  log: LogRoutesOptions["log"],
  parameters: URLSearchParams,
  now: number,
): Promise<object> {
  const question = parseLogQuery(parameters, now);
  const { runs, next, cut, lastId, histogram } = await log.page(question);
  return {
    runs,
    cursor: next === null ? null : String(next),
    complete: !cut,
    lastId,
    ...(question.histogram !== undefined && { histogram }),
    log: log.facts,
  };
}

/** Routes of a server without an execution log. */
export function noLogRoutes(): Hono<AdminEnv> {
  const refuse = () => {
    throw new ServiceError("not_found", "The execution log is disabled (--log-keep off)");
  };
  return new Hono<AdminEnv>().get("/logs", refuse).get("/logs/stream", refuse);
}
