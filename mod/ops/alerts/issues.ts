/** Conditions that an operator should know about: the overview lists them, and alerts report them. */
import { duration, size } from "../../kit/units.ts";
import { alertLimits } from "../limits.ts";
import type { FunctionStats, StatsOfFunction } from "../stats/run_stats.ts";

export interface Issue {
  /** Identifies the condition while its text changes, such as `errors:orders:add`. */
  readonly key: string;
  readonly tone: "bad" | "warn";
  readonly text: string;
  /** Label of the link, and the view of the dashboard that it opens: the address after `#/`. */
  readonly act: string;
  readonly view: string;
}

export interface AlertThresholds {
  /** Share of a function's calls in the last hour that failed. */
  readonly errorRate: number;
  /** 95th percentile of a query's or mutation's duration in the last hour. */
  readonly latencyMs: number;
  readonly backupAgeMs: number;
  /** Replication lag. */
  readonly lagMs: number;
  /** Free share of the data folder's disk. */
  readonly diskFree: number;
}

export const defaultThresholds: AlertThresholds = {
  errorRate: 0.01,
  latencyMs: 5_000,
  backupAgeMs: 2 * 86_400_000,
  lagMs: 60_000,
  diskFree: 0.1,
};

export interface IssueSources {
  readonly now: number;
  readonly disk: { readonly free: number | null; readonly total: number | null };
  /** `null` without replication. */
  readonly replication: {
    readonly takenBy: { readonly host: string } | null;
    readonly lagMs: number | null;
    readonly errors: readonly { readonly message: string }[];
  } | null;
  /** `null` outside a cluster. */
  readonly cluster: {
    /** How long its database has been unreachable; `null` if it is reachable. */
    readonly awayMs: number | null;
    readonly servers: readonly {
      readonly address: string;
      readonly lagCommits: number;
      readonly seenMs: number;
    }[];
  } | null;
  readonly backups: {
    /** Time of the newest backup at any location: `-Infinity` if there is none, `null` while unknown. */
    readonly newest: number | null;
    /** Why the last scheduled backup failed, or `null`. */
    readonly failure: string | null;
    readonly damaged: readonly { readonly name: string; readonly error: string }[];
    /** Whether a restore is prepared. */
    readonly isStaged: boolean;
  };
  /** Functions of the live version. */
  readonly functions: readonly StatsOfFunction[];
  readonly isolates: Readonly<Record<string, { readonly lost: number }>>;
  /** Problems of the execution log and of outgoing mail, or `null`. */
  readonly logTrouble: string | null;
  readonly mailTrouble: string | null;
  /** Names of scheduled functions that failed within a day, and cron jobs whose last run failed. */
  readonly failed: {
    readonly jobs: readonly string[];
    readonly crons: readonly { readonly name: string; readonly error: string }[];
  };
}

/** A cluster member is reported when it was last seen longer ago, or lags by more commits. */
const SILENT_MS = 10_000;
const LAG_COMMITS = 1_000;
/** The disk is reported below this number of free bytes too. */
const FREE_BYTES = 1024 ** 3;
/** Calls within an hour from which a latency is meaningful. */
const CALLS_MIN = 20;
/** Functions reported for one reason, worst first. */
const FUNCTIONS_MAX = 20;

/** Returns all issues, most severe first. */
export function findIssues(sources: IssueSources, thresholds: AlertThresholds): readonly Issue[] {
  const found = [
    ...diskIssues(sources, thresholds),
    ...replicationIssues(sources, thresholds),
    ...clusterIssues(sources),
    ...backupIssues(sources, thresholds),
    ...functionIssues(sources, thresholds),
    ...serverIssues(sources),
    ...scheduleIssues(sources),
  ];
  return found.toSorted((a, b) => Number(a.tone === "warn") - Number(b.tone === "warn"))
    .map(({ key, text, ...issue }) => ({
      ...issue,
      key: key.slice(0, alertLimits.keyCharsMax),
      text: text.slice(0, alertLimits.textCharsMax),
    }));
}

function* diskIssues(
  { disk: { free, total } }: IssueSources,
  { diskFree }: AlertThresholds,
): Generator<Issue> {
  if (free === null || total === null) return;
  if (free > total * diskFree && free > FREE_BYTES) return;
  const text = `The data folder's disk is nearly full: ${size(free)} of ${size(total)} free.`;
  yield { key: "disk", tone: "bad", text, act: "Backups", view: "backups" };
}

function* replicationIssues(
  { replication }: IssueSources,
  { lagMs: lagMsMax }: AlertThresholds,
): Generator<Issue> {
  if (replication === null) return;
  const link = { key: "replication", tone: "bad", act: "View", view: "backups" } as const;
  const { takenBy, lagMs, errors } = replication;
  if (takenBy !== null) {
    yield { ...link, text: `Replication stopped: ${takenBy.host} has taken over the target.` };
  } else if (lagMs !== null && lagMs > lagMsMax) {
    const reason = errors.at(-1)?.message;
    yield {
      ...link,
      text: `The replica is ${duration(lagMs)} behind${reason === undefined ? "" : `: ${reason}`}.`,
    };
  }
}

function* clusterIssues({ cluster }: IssueSources): Generator<Issue> {
  if (cluster === null) return;
  const link = { act: "View", view: "servers" };
  const { awayMs, servers } = cluster;
  if (awayMs !== null) {
    const text = `The cluster database has been unreachable for ${
      duration(awayMs)
    }. Nothing can be committed.`;
    yield { ...link, key: "cluster:database", tone: "bad", text };
  }
  if (servers.length === 1) {
    const text = "The cluster has one server, so there is no failover.";
    yield { ...link, key: "cluster:single", tone: "warn", text };
  }
  for (const { address, lagCommits, seenMs } of servers) {
    const key = `cluster:${address}`;
    if (seenMs > SILENT_MS) {
      yield { ...link, key, tone: "bad", text: `${address} was last seen ${duration(seenMs)} ago.` };
    } else if (lagCommits > LAG_COMMITS) {
      yield { ...link, key, tone: "warn", text: `${address} is ${shown(lagCommits)} commits behind.` };
    }
  }
}

function* backupIssues(
  { backups: { newest, failure, damaged, isStaged }, replication, now }: IssueSources,
  { backupAgeMs }: AlertThresholds,
): Generator<Issue> {
  const link = { tone: "warn", act: "View", view: "backups" } as const;
  if (failure !== null) {
    yield { ...link, key: "backup:failed", tone: "bad", text: `Scheduled backups: ${failure}` };
  } else if (newest !== null && newest < now - backupAgeMs && replication === null) {
    const text = newest === -Infinity
      ? "There is no backup."
      : `The newest backup is ${duration(now - newest)} old.`;
    yield { ...link, key: "backup:age", text, act: "Back up", view: "backups?make=true" };
  }
  for (const { name, error } of damaged) {
    yield { ...link, key: `backup:${name}`, text: `${name}: ${error}` };
  }
  if (isStaged) {
    yield { ...link, key: "restore", text: "A restore will be applied at the next start." };
  }
}

function* functionIssues(
  { functions }: IssueSources,
  { errorRate, latencyMs }: AlertThresholds,
): Generator<Issue> {
  const recent = functions.flatMap(({ hour, ...row }) => hour === null ? [] : [{ ...row, ...hour }]);
  const failing = recent.filter((row) => row.errorRate > errorRate)
    .toSorted((a, b) => b.errors - a.errors);
  for (const { function: path, errors, calls } of failing.slice(0, FUNCTIONS_MAX)) {
    yield {
      key: `errors:${path}`,
      tone: "bad",
      text: calls === 1
        ? `${path} failed in its only call in the last hour.`
        : `${path} failed in ${shown(errors)} of ${shown(calls)} calls in the last hour.`,
      act: "View runs",
      view: `logs?${new URLSearchParams({ function: path, outcome: "error,timeout,refused" })}`,
    };
  }
  const p95Of = ({ p95 }: Pick<FunctionStats, "p95">) => p95 ?? 0;
  // Actions and routes call other services, which decide how long they take.
  const slow = recent.filter(({ kind, calls }) =>
    (kind === "query" || kind === "mutation") && calls >= CALLS_MIN
  )
    .filter((row) => p95Of(row) > latencyMs)
    .toSorted((a, b) => p95Of(b) - p95Of(a));
  for (const row of slow.slice(0, FUNCTIONS_MAX)) {
    yield {
      key: `latency:${row.function}`,
      tone: "warn",
      text: `${row.function} took longer than ${duration(p95Of(row))} in 5 % of its calls in the last hour.`,
      act: "View",
      view: `functions/${encodeURIComponent(row.function)}`,
    };
  }
}

function* serverIssues({ isolates, logTrouble, mailTrouble }: IssueSources): Generator<Issue> {
  for (const [role, { lost }] of Object.entries(isolates)) {
    if (lost === 0) continue;
    const times = lost === 1 ? "once" : `${shown(lost)} times`;
    yield {
      key: `isolate:${role}`,
      tone: "warn",
      text: `The ${role} process has exited unexpectedly ${times} since the server started.`,
      act: "View errors",
      view: "logs?level=error",
    };
  }
  if (logTrouble !== null) {
    yield { key: "log", tone: "warn", text: `Log: ${logTrouble}`, act: "Logs", view: "logs" };
  }
  if (mailTrouble !== null) {
    const text = `Mail cannot be sent: ${mailTrouble}`;
    yield { key: "mail", tone: "bad", text, act: "Settings", view: "settings/mail" };
  }
}

function* scheduleIssues({ failed: { jobs, crons } }: IssueSources): Generator<Issue> {
  const link = { tone: "warn", act: "View" } as const;
  for (const { name, error } of crons) {
    const text = `The cron job ${name} failed: ${error}`;
    yield { ...link, key: `cron:${name}`, text, view: "schedule" };
  }
  if (jobs.length > 0) {
    const text = `Scheduled functions failed: ${jobs.join(", ")}.`;
    yield { ...link, key: "jobs", text, view: "schedule?state=failed" };
  }
}

function shown(count: number): string {
  return count.toLocaleString("en");
}
