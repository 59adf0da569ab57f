/** The features of a server. Each is a line here, and finds those it works with by their names. */
import type { LoadedSecret } from "../auth/mod.ts";
import type { FollowerFigures } from "../cluster/mod.ts";
import type { PostgresCluster } from "../cluster/postgres/mod.ts";
import { observeAll, type RunObserver } from "../functions/host/mod.ts";
import type { ExecutionLog } from "../ops/log/mod.ts";
import type { Metrics } from "../ops/metrics/mod.ts";
import type { RunStats } from "../ops/stats/mod.ts";
import { loadSecret } from "./data/secret.ts";
import { RunLines } from "./dev/run_lines.ts";
import type { FeatureContext, Features } from "./feature.ts";
import { startAccounts } from "./features/accounts.ts";
import { startAdmin } from "./features/admin.ts";
import { type BackupPlace, openBackupPlace, startBackups } from "./features/backups.ts";
import { startClustering } from "./features/cluster.ts";
import { startDeploy } from "./features/deploy.ts";
import { startFollowing } from "./features/following.ts";
import { startHealth } from "./features/health.ts";
import { openLog, startLog } from "./features/log.ts";
import { startMaintenance } from "./features/maintenance.ts";
import { openMetrics, startMetrics } from "./features/metrics.ts";
import { startReplication } from "./features/replication.ts";
import { startScheduling } from "./features/scheduling.ts";
import { openStats, startStats } from "./features/stats.ts";
import { startSteering } from "./features/steering.ts";
import { startStorage } from "./features/storage.ts";
import { startSync } from "./features/sync.ts";

/** In the order in which they are started and told of commits. */
const STARTS = {
  // Told of commits first: a session that ended sends nothing more.
  accounts: startAccounts,
  storage: startStorage,
  steering: startSteering,
  deploy: startDeploy,
  maintenance: startMaintenance,
  replication: startReplication,
  following: startFollowing,
  admin: startAdmin,
  backups: startBackups,
  logs: startLog,
  sync: startSync,
  stats: startStats,
  clustering: startClustering,
  health: startHealth,
  scheduling: startScheduling,
  meters: startMetrics,
};

/** What features work with that is there before them. */
export interface Given {
  readonly secret: LoadedSecret;
  /** Where scheduled backups go; `null`: none are made. */
  readonly backupPlace: BackupPlace | null;
  /** `null` without `--metrics`. */
  readonly metrics: Metrics | null;
  /** `null` when the operator wants none. */
  readonly executionLog: ExecutionLog | null;
  readonly runStats: RunStats;
  /** The cluster that this server is one of; `null`: it is alone. */
  readonly cluster: PostgresCluster | null;
  /** Sockets that the system has room for. */
  readonly socketsMax: number;
  /** What the processes beside this one have to do; absent when there are none. */
  readonly workerFigures?: () => readonly FollowerFigures[];
  /** From now on the app's front end lies in this folder, `null`: it has none; unless it was named by an option. */
  readonly serveFrontend: (folder: string | null) => Promise<void>;
}

/** What is opened before the isolates are, which report to some of it. */
type Opened = Pick<Given, "secret" | "backupPlace" | "metrics" | "executionLog" | "runStats">;

/** `opened` gets what has to be given up at the end. */
export async function openGiven(
  { config, again = false, log }: Pick<FeatureContext, "config" | "again" | "log">,
  opened: AsyncDisposableStack,
): Promise<Opened & { readonly observer: RunObserver }> {
  const secret = await loadSecret(config.dataDir);
  // Another server leads a cluster also while the place of backups is away.
  const later = again && config.cluster !== null;
  const backupPlace = opened.use(await openBackupPlace({ config, later, log }));
  const metrics = opened.use(await openMetrics(config));
  // Given up last: it is told how the last runs ended.
  const executionLog = opened.use(openLog(config, log));
  const runStats = openStats();
  const lines = config.dev ? new RunLines(log) : null;
  const observers = [metrics?.runs ?? null, executionLog, runStats, lines];
  const observer = observeAll(observers.filter((one) => one !== null));
  return { secret, backupPlace, metrics, executionLog, runStats, observer };
}

/** All features, by name. What a feature does later may ask for those behind it in the list, its start may not. */
export type Parts =
  & Given
  & { readonly features: Features }
  & { readonly [Name in keyof typeof STARTS]: Awaited<ReturnType<(typeof STARTS)[Name]>> };

/** Makes each of them. `parts` is filled meanwhile. */
export async function startFeatures(context: FeatureContext, parts: Parts): Promise<void> {
  for (const [name, start] of Object.entries(STARTS)) {
    Object.assign(parts, { [name]: parts.features.add(await start(context, parts)) });
  }
}
