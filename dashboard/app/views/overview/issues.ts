/** Issues shown on the overview, most severe first, each with a link to the view that resolves it. */
import type { BackupList, ClusterStatus, ScheduledBackups, Stats } from "../../server/stats.ts";
import { href } from "../../shell/route.ts";
import { count, duration, size } from "../../ui/format.tsx";

export interface Issue {
  readonly tone: "bad" | "warn";
  readonly text: string;
  readonly act: string;
  readonly to: string;
}

export interface IssueSources {
  readonly backups: BackupList | undefined;
  readonly scheduled: ScheduledBackups | undefined;
  readonly stats: Stats | undefined;
  readonly cluster: ClusterStatus | undefined;
  /** Names of failed scheduled functions. */
  readonly failedJobs: readonly string[];
  readonly now: number;
}

const DAY_MS = 86_400_000;
/** Maximum age of the newest backup before a warning. */
const BACKUP_LATE_MS = 2 * DAY_MS;
/** Maximum replication lag before an error. */
const LAG_MS = 60_000;
/** A cluster member is reported when it was last seen longer ago, or lags by more commits. */
const SILENT_MS = 10_000;
const LAG_COMMITS = 1_000;
/** The disk is reported as nearly full below this share and this number of bytes. */
const FREE_SHARE = 0.1;
const FREE_BYTES = 1024 ** 3;
/** Maximum error rate of a function before an error. */
const ERROR_SHARE = 0.01;
const FAILING_SHOWN_MAX = 5;

export function findIssues(known: IssueSources): readonly Issue[] {
  const found = [
    ...diskIssues(known),
    ...replicationIssues(known),
    ...clusterIssues(known),
    ...backupIssues(known),
    ...runIssues(known),
  ];
  return found.toSorted((a, b) => Number(a.tone === "warn") - Number(b.tone === "warn"));
}

function* diskIssues({ stats }: IssueSources): Generator<Issue> {
  const { free = null, total = null } = stats?.disk ?? {};
  if (free === null || total === null) return;
  if (free > total * FREE_SHARE && free > FREE_BYTES) return;
  const text = `The data folder's disk is nearly full: ${size(free)} of ${size(total)} free.`;
  yield { tone: "bad", text, act: "Backups", to: href(["backups"]) };
}

function* replicationIssues({ backups }: IssueSources): Generator<Issue> {
  const replication = backups?.replication;
  if (replication?.enabled !== true) return;
  const to = href(["backups"]);
  const { takenBy, lagMs, errors } = replication;
  if (takenBy !== null) {
    const text = `Replication stopped: ${takenBy.host} has taken over the target.`;
    yield { tone: "bad", text, act: "View", to };
  } else if (lagMs !== null && lagMs > LAG_MS) {
    const reason = errors.at(-1)?.message;
    const text = `The replica is ${duration(lagMs)} behind${reason === undefined ? "" : `: ${reason}`}.`;
    yield { tone: "bad", text, act: "View", to };
  }
}

function* clusterIssues({ cluster }: IssueSources): Generator<Issue> {
  if (cluster?.enabled !== true) return;
  const to = href(["servers"]);
  const { database: { status, forMs }, servers } = cluster;
  if (status === "away") {
    const text = `The cluster database has been unreachable for ${
      duration(forMs)
    }. Nothing can be committed.`;
    yield { tone: "bad", text, act: "View", to };
  }
  if (servers?.length === 1) {
    yield { tone: "warn", text: "The cluster has one server, so there is no failover.", act: "View", to };
  }
  for (const { address, lagCommits, seenMs } of servers ?? []) {
    if (seenMs > SILENT_MS) {
      yield { tone: "bad", text: `${address} was last seen ${duration(seenMs)} ago.`, act: "View", to };
    } else if (lagCommits > LAG_COMMITS) {
      yield { tone: "warn", text: `${address} is ${count(lagCommits)} commits behind.`, act: "View", to };
    }
  }
}

/** Creation time of the newest backup at any location: `-Infinity` if there is none, `null` while unknown. */
export function newestBackup(
  backups: BackupList | undefined,
  scheduled: ScheduledBackups | undefined,
): number | null {
  if (backups === undefined || scheduled === undefined) return null;
  const good = backups.backups.filter(({ error }) => error === undefined);
  const all = [...good, ...scheduled.place === null ? [] : scheduled.backups];
  return all.reduce((newest, { createdAt }) => Math.max(newest, Date.parse(createdAt)), -Infinity);
}

function* backupIssues({ backups, scheduled, now }: IssueSources): Generator<Issue> {
  if (backups === undefined) return;
  const to = href(["backups"]);
  const newest = newestBackup(backups, scheduled);
  if (scheduled !== undefined && scheduled.place !== null && scheduled.error !== undefined) {
    yield { tone: "warn", text: `Scheduled backups: ${scheduled.error}`, act: "View", to };
  } else if (newest !== null && newest < now - BACKUP_LATE_MS && !backups.replication.enabled) {
    const text = newest === -Infinity ? "There is no backup." : "The newest backup is older than two days.";
    yield { tone: "warn", text, act: "Back up", to: href(["backups"], { make: "true" }) };
  }
  for (const { name, error } of backups.backups) {
    if (error !== undefined) yield { tone: "warn", text: `${name}: ${error}`, act: "View", to };
  }
  if (backups.restore !== null) {
    yield { tone: "warn", text: "A restore will be applied at the next start.", act: "View", to };
  }
}

function* runIssues({ stats, failedJobs }: IssueSources): Generator<Issue> {
  const failing = (stats?.functions ?? []).filter(({ hour }) => (hour?.errorRate ?? 0) > ERROR_SHARE)
    .toSorted((a, b) => (b.hour?.errors ?? 0) - (a.hour?.errors ?? 0));
  for (const { function: path, hour } of failing.slice(0, FAILING_SHOWN_MAX)) {
    if (hour === null) continue;
    yield {
      tone: "bad",
      text: `${path} failed in ${count(hour.errors)} of ${count(hour.calls)} calls in the last hour.`,
      act: "View runs",
      to: href(["logs"], { function: path, outcome: "error" }),
    };
  }
  for (const [role, { lost }] of Object.entries(stats?.isolates ?? {})) {
    if (lost === 0) continue;
    const times = lost === 1 ? "once" : `${count(lost)} times`;
    const text = `The ${role} process has exited unexpectedly ${times} since the server started.`;
    yield { tone: "warn", text, act: "View errors", to: href(["logs"], { level: "error" }) };
  }
  const trouble = stats?.log?.trouble ?? null;
  if (trouble !== null) yield { tone: "warn", text: `Log: ${trouble}`, act: "Logs", to: href(["logs"]) };
  if (failedJobs.length > 0) {
    const text = `Scheduled functions failed: ${[...new Set(failedJobs)].join(", ")}.`;
    yield { tone: "warn", text, act: "View", to: href(["schedule"], { state: "failed" }) };
  }
}
