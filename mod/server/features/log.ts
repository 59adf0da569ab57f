/** The execution log: its worker and its admin endpoints. */
import { Hono } from "hono";
import { join } from "node:path";
import type { ServeConfig } from "../../config/config.ts";
import { SystemCalls } from "../../functions/system_calls.ts";
import type { Log } from "../../kit/log.ts";
import { type AdminEnv, adminGuard } from "../../ops/mod.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";
import { ExecutionLog, logRoutes, LogStreams, noLogRoutes } from "../../ops/log/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AccountsFeature } from "./accounts.ts";
import { verifyWith } from "./admin.ts";

/** `null` if the execution log is disabled. */
export function openLog({ dataDir, executionLog }: ServeConfig, log: Log): ExecutionLog | null {
  if (executionLog === null) return null;
  return new ExecutionLog({
    path: join(dataDir, archiveNames.log),
    settings: executionLog,
    log,
  });
}

export interface LogFeature extends Feature {
  /** Ends open streams, so that a stop does not wait for their readers. */
  endStreams(): void;
  readonly streamCount: number;
}

export function startLog(
  { host, port }: FeatureContext,
  { accounts: { authenticator }, executionLog }: {
    readonly accounts: AccountsFeature;
    readonly executionLog: ExecutionLog | null;
  },
): LogFeature {
  const guarded = new Hono<AdminEnv>().use("*", adminGuard(verifyWith(authenticator)));
  if (executionLog === null) {
    return {
      routes: [{ at: "/api/admin", app: new Hono().route("/", guarded.route("/", noLogRoutes())) }],
      endStreams() {},
      streamCount: 0,
    };
  }
  executionLog.loggedArgs.connect({ version: () => host.code.version, calls: new SystemCalls(port) });
  const streams = new LogStreams(executionLog);
  authenticator.onSessionEnd((ended) => streams.sessionEnded(ended));
  const routes = logRoutes({ log: executionLog, streams, now: Date.now });
  return {
    routes: [{ at: "/api/admin", app: new Hono().route("/", guarded.route("/", routes)) }],
    endStreams: () => streams[Symbol.dispose](),
    get streamCount() {
      return streams.size;
    },
    reload: () => executionLog.loggedArgs.reload(),
    start() {
      executionLog.begin();
      executionLog.loggedArgs.reload();
    },
    stop: () => streams[Symbol.dispose](),
  };
}
