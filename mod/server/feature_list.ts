/** The features of a server. */
import type { LoadedSecret } from "../auth/mod.ts";
import type { FollowerFigures } from "../cluster/mod.ts";
import type { PostgresCluster } from "../cluster/postgres/mod.ts";
import { observeAll, type RunObserver } from "../functions/host/mod.ts";
import type { ExecutionLog } from "../ops/log/mod.ts";
import type { Metrics } from "../ops/metrics/mod.ts";
import type { Telemetry } from "../ops/telemetry/mod.ts";
import type { RunStats } from "../ops/stats/mod.ts";
import type { RoomLink } from "../presence/mod.ts";
import { loadSecret } from "./data/secret.ts";
import { FunctionLogPrinter } from "./dev/function_log_printer.ts";
import type { FeatureContext, Features } from "./feature.ts";
import { startAccounts } from "./features/accounts.ts";
import { startAdmin } from "./features/admin.ts";
import { startAlerts } from "./features/integrations/alerts.ts";
import { openBackupTarget, startBackups } from "./features/backups.ts";
import type { BackupTarget } from "../ops/backups/scheduled/mod.ts";
import { startClustering } from "./features/cluster.ts";
import { startDeploy } from "./features/deploy.ts";
import { startFollowing } from "./features/following.ts";
import { startHealth } from "./features/health.ts";
import { startLive } from "./features/live.ts";
import { openLog, startLog } from "./features/log.ts";
import { startMaintenance } from "./features/maintenance.ts";
import { startMcp } from "./features/integrations/mcp.ts";
import { openMetrics, startMetrics } from "./features/metrics.ts";
import { startPresence } from "./features/presence.ts";
import { startOpenApi } from "./features/integrations/openapi.ts";
import { startReplication } from "./features/replication.ts";
import { startScheduling } from "./features/scheduling.ts";
import { openStats, startStats } from "./features/stats.ts";
import { startAdminFunctions } from "./features/admin_functions.ts";
import { startStorage } from "./features/storage.ts";
import { startStreams } from "./features/streams.ts";
import { startSync } from "./features/sync.ts";
import { openTelemetry, startTelemetry } from "./features/integrations/telemetry.ts";

/** In the order in which features are started and receive commits. */
const STARTS = {
  // Receives commits first: a session that has ended sends nothing more.
  accounts: startAccounts,
  storage: startStorage,
  steering: startAdminFunctions,
  deploy: startDeploy,
  maintenance: startMaintenance,
  replication: startReplication,
  following: startFollowing,
  admin: startAdmin,
  openApi: startOpenApi,
  backups: startBackups,
  logs: startLog,
  presence: startPresence,
  streaming: startStreams,
  sync: startSync,
  stats: startStats,
  mcp: startMcp,
  live: startLive,
  clustering: startClustering,
  health: startHealth,
  alerts: startAlerts,
  scheduling: startScheduling,
  meters: startMetrics,
  exports: startTelemetry,
};

export interface ServerResources {
  readonly secret: LoadedSecret;
  /** Target of scheduled backups; `null` if there are none. */
  readonly backupTarget: BackupTarget | null;
  /** `null` without `--metrics` and `--otlp-endpoint`. */
  readonly metrics: Metrics | null;
  /** `null` without `--otlp-endpoint`. */
  readonly telemetry: Telemetry | null;
  /** `null` if the execution log is disabled. */
  readonly executionLog: ExecutionLog | null;
  readonly runStats: RunStats;
  /** `null` outside a cluster. */
  readonly cluster: PostgresCluster | null;
  /** Rooms of the leader; `null` on a server that does not follow one. */
  readonly leaderRooms: RoomLink | null;
  /** Requests a path from the leader; `null` on a server that does not follow one. */
  readonly leaderRequest: ((path: string, signal: AbortSignal) => Promise<Response>) | null;
  readonly socketsMax: number;
  /** Load of each worker process; absent without workers. */
  readonly workerFigures?: () => readonly Partial<FollowerFigures>[];
  /** Serves the app's frontend from this folder (`null`: none), unless an option names another. */
  readonly serveFrontend: (folder: string | null) => Promise<void>;
}

/** Opened before the isolates, which report to some of it. */
type OpenedResources = Pick<
  ServerResources,
  "secret" | "backupTarget" | "metrics" | "telemetry" | "executionLog" | "runStats"
>;

/** Opens the resources that features need and adds them to `opened`. */
export async function openResources(
  { config, isRestart = false, log }: Pick<FeatureContext, "config" | "isRestart" | "log">,
  opened: AsyncDisposableStack,
): Promise<OpenedResources & { readonly observer: RunObserver }> {
  const secret = await loadSecret(config.dataDir);
  // When leadership changes, an unreachable backup target must not delay the new leader.
  const later = isRestart && config.cluster !== null;
  const backupTarget = opened.use(await openBackupTarget({ config, later, log }));
  const runStats = openStats();
  const metrics = opened.use(await openMetrics(config, runStats));
  // Closed last, because they record how the last runs ended.
  const telemetry = opened.use(await openTelemetry(config, log));
  const executionLog = opened.use(openLog(config, log));
  const lines = config.dev ? new FunctionLogPrinter(log) : null;
  const observers = [executionLog, runStats, telemetry, lines];
  const observer = observeAll(observers.filter((one) => one !== null));
  return { secret, backupTarget, metrics, telemetry, executionLog, runStats, observer };
}

/** All features by name. A feature may use later features only after they have been started. */
export type FeatureParts =
  & ServerResources
  & { readonly features: Features }
  & { readonly [Name in keyof typeof STARTS]: Awaited<ReturnType<(typeof STARTS)[Name]>> };

/** Starts each feature and adds it to `parts`. */
export async function startFeatures(context: FeatureContext, parts: FeatureParts): Promise<void> {
  for (const [name, start] of Object.entries(STARTS)) {
    Object.assign(parts, { [name]: parts.features.add(await start(context, parts)) });
  }
}
