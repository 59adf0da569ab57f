/** Issues of this server, and alerts about them. */
import type { PostgresCluster } from "../../../cluster/postgres/mod.ts";
import { isFollower } from "../../../config/config.ts";
import { SystemCalls } from "../../../functions/system_calls.ts";
import { Alerts, findIssues, type IssueSources } from "../../../ops/alerts/mod.ts";
import { stagedRestore } from "../../../ops/backups/restore/mod.ts";
import type { ExecutionLog } from "../../../ops/log/mod.ts";
import type { RunStats } from "../../../ops/stats/mod.ts";
import { recentFailures } from "../../../scheduler/mod.ts";
import type { Feature, FeatureContext } from "../../feature.ts";
import { type AccountsFeature, appNameOf } from "../accounts.ts";
import type { AdminFeature } from "../admin.ts";
import type { BackupsFeature } from "../backups.ts";
import type { ClusterFeature } from "../cluster.ts";
import type { ReplicationFeature } from "../replication.ts";
import { diskOf } from "../stats.ts";

/** Age at which a failed scheduled function is no longer an issue. */
const FAILURE_KEPT_MS = 86_400_000;

export interface AlertsParts {
  readonly accounts: AccountsFeature;
  readonly admin: AdminFeature;
  readonly backups: BackupsFeature;
  /** `null` outside a cluster. */
  readonly cluster: Pick<PostgresCluster, "leadsSurely"> | null;
  readonly clustering: Pick<ClusterFeature, "figures" | "members">;
  readonly executionLog: ExecutionLog | null;
  readonly replication: ReplicationFeature;
  readonly runStats: RunStats;
}

export interface AlertsFeature extends Feature, Pick<Alerts, "configure"> {}

export function startAlerts(context: FeatureContext, parts: AlertsParts): AlertsFeature {
  const { config, port, url, log } = context;
  const { accounts, cluster } = parts;
  const calls = new SystemCalls(port);
  const alerts = new Alerts({
    calls,
    findIssues: async (thresholds) => findIssues(await sources(context, { ...parts, calls }), thresholds),
    sendMail: (mail) => accounts.sendMail(mail),
    dashboardUrl: `${config.publicUrl ?? url}/_/`,
    config: config.alerts,
    app: appNameOf(config.accounts, context),
    mayCheck: () => cluster?.leadsSurely ?? true,
    log,
  });
  return {
    actions: alerts.actions,
    configure: (config, names) => alerts.configure(config, names),
    start() {
      if (!isFollower(config)) alerts.start();
    },
    stop: () => alerts[Symbol.asyncDispose](),
  };
}

async function sources(
  { config: { dataDir }, host }: FeatureContext,
  { accounts, admin, backups, calls, clustering, executionLog, replication, runStats }: AlertsParts & {
    readonly calls: SystemCalls;
  },
): Promise<IssueSources> {
  const now = Date.now();
  const [disk, stored, newest, isStaged, failed, cluster] = await Promise.all([
    diskOf(dataDir),
    admin.listBackups(),
    admin.newestBackup(),
    // An unreadable marker is an issue too.
    stagedRestore(dataDir).then((staged) => staged !== null, () => true),
    recentFailures(calls, now - FAILURE_KEPT_MS),
    clusterSource(clustering),
  ]);
  return {
    now,
    disk,
    replication: replication.replication?.figures() ?? null,
    cluster,
    backups: {
      newest,
      failure: backups.status?.failure ?? null,
      damaged: stored.flatMap((backup) => "error" in backup ? [backup] : []),
      isStaged,
    },
    // Functions that the live version lacks are not its operator's concern.
    functions: runStats.functions().filter(({ function: path }) => host.info(path) !== undefined),
    isolates: host.isolates.roles,
    logTrouble: executionLog?.facts.trouble ?? null,
    mailTrouble: accounts.mailTrouble,
    failed,
  };
}

async function clusterSource(
  { figures, members }: AlertsParts["clustering"],
): Promise<IssueSources["cluster"]> {
  if (figures === null) return null;
  const { awayMs } = figures();
  // Without the database, a query for the members would wait for it.
  if (awayMs !== null) return { awayMs, servers: [] };
  return { awayMs, servers: await members().catch(() => []) };
}
