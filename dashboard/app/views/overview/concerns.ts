/** What needs attention, the worst first, each with the place to act. */
import type { BackupList, ClusterStatus, ScheduledBackups, Stats } from "../../server/stats.ts";
import { href } from "../../shell/route.ts";
import { count, duration, size } from "../../ui/texts.tsx";

export interface Concern {
  readonly tone: "bad" | "warn";
  readonly text: string;
  readonly act: string;
  readonly to: string;
}

export interface Known {
  readonly backups: BackupList | undefined;
  readonly scheduled: ScheduledBackups | undefined;
  readonly stats: Stats | undefined;
  readonly cluster: ClusterStatus | undefined;
  /** Scheduled functions that have failed. */
  readonly failedJobs: readonly string[];
  readonly now: number;
}

const DAY_MS = 86_400_000;
/** Without a backup for so long somebody should know. */
const BACKUP_LATE_MS = 2 * DAY_MS;
/** A replica that is behind by more loses as much with the machine. */
const LAG_MS = 60_000;
/** A server of a cluster that is silent for longer may be gone; one that is behind by more shows old states. */
const SILENT_MS = 10_000;
const LAG_COMMITS = 1_000;
/** Less room than this share, or this many bytes, is nearly none. */
const FREE_SHARE = 0.1;
const FREE_BYTES = 1024 ** 3;
/** A function that fails more often than this. */
const ERROR_SHARE = 0.01;
const FAILING_TOLD = 5;

export function concerns(known: Known): readonly Concern[] {
  const found = [
    ...ofDisk(known),
    ...ofReplication(known),
    ...ofCluster(known),
    ...ofBackups(known),
    ...ofRuns(known),
  ];
  return found.toSorted((a, b) => Number(a.tone === "warn") - Number(b.tone === "warn"));
}

function* ofDisk({ stats }: Known): Generator<Concern> {
  const { free = null, total = null } = stats?.disk ?? {};
  if (free === null || total === null) return;
  if (free > total * FREE_SHARE && free > FREE_BYTES) return;
  const text = `The disk of the data folder is nearly full: ${size(free)} of ${size(total)} are free.`;
  yield { tone: "bad", text, act: "Backups", to: href(["backups"]) };
}

function* ofReplication({ backups }: Known): Generator<Concern> {
  const replication = backups?.replication;
  if (replication?.enabled !== true) return;
  const to = href(["backups"]);
  const { takenBy, lagMs, errors } = replication;
  if (takenBy !== null) {
    const text = `The replica's target was taken by ${takenBy.host}: nothing is shipped from here.`;
    yield { tone: "bad", text, act: "Look", to };
  } else if (lagMs !== null && lagMs > LAG_MS) {
    const reason = errors.at(-1)?.message;
    const text = `The replica is ${duration(lagMs)} behind${reason === undefined ? "" : `: ${reason}`}.`;
    yield { tone: "bad", text, act: "Look", to };
  }
}

function* ofCluster({ cluster }: Known): Generator<Concern> {
  if (cluster?.enabled !== true) return;
  const to = href(["servers"]);
  const { database: { status, forMs }, servers } = cluster;
  if (status === "away") {
    const text = `The cluster's database has not answered for ${duration(forMs)}: nothing can be committed.`;
    yield { tone: "bad", text, act: "Look", to };
  }
  if (servers?.length === 1) {
    yield { tone: "warn", text: "No other server would take over from this one.", act: "Look", to };
  }
  for (const { address, lagCommits, seenMs } of servers ?? []) {
    if (seenMs > SILENT_MS) {
      yield { tone: "bad", text: `${address} was not heard of for ${duration(seenMs)}.`, act: "Look", to };
    } else if (lagCommits > LAG_COMMITS) {
      yield { tone: "warn", text: `${address} is ${count(lagCommits)} commits behind.`, act: "Look", to };
    }
  }
}

/** When the newest backup was made, wherever it lies; `-Infinity`: there is none, `null`: not known yet. */
export function newestBackup(
  backups: BackupList | undefined,
  scheduled: ScheduledBackups | undefined,
): number | null {
  if (backups === undefined || scheduled === undefined) return null;
  const good = backups.backups.filter(({ error }) => error === undefined);
  const all = [...good, ...scheduled.place === null ? [] : scheduled.backups];
  return all.reduce((newest, { createdAt }) => Math.max(newest, Date.parse(createdAt)), -Infinity);
}

function* ofBackups({ backups, scheduled, now }: Known): Generator<Concern> {
  if (backups === undefined) return;
  const to = href(["backups"]);
  const newest = newestBackup(backups, scheduled);
  if (scheduled !== undefined && scheduled.place !== null && scheduled.error !== undefined) {
    yield { tone: "warn", text: `Scheduled backups: ${scheduled.error}`, act: "Look", to };
  } else if (newest !== null && newest < now - BACKUP_LATE_MS && !backups.replication.enabled) {
    const text = newest === -Infinity ? "There is no backup." : "The newest backup is older than two days.";
    yield { tone: "warn", text, act: "Back up", to: href(["backups"], { make: "true" }) };
  }
  for (const { name, error } of backups.backups) {
    if (error !== undefined) yield { tone: "warn", text: `${name}: ${error}`, act: "Look", to };
  }
  if (backups.restore !== null) {
    yield { tone: "warn", text: "A restore waits for the next start.", act: "Look", to };
  }
}

function* ofRuns({ stats, failedJobs }: Known): Generator<Concern> {
  const failing = (stats?.functions ?? []).filter(({ hour }) => (hour?.errorRate ?? 0) > ERROR_SHARE)
    .toSorted((a, b) => (b.hour?.errors ?? 0) - (a.hour?.errors ?? 0));
  for (const { function: path, hour } of failing.slice(0, FAILING_TOLD)) {
    if (hour === null) continue;
    yield {
      tone: "bad",
      text: `${path} failed ${count(hour.errors)} of ${count(hour.calls)} times in the last hour.`,
      act: "See the runs",
      to: href(["logs"], { function: path, outcome: "error" }),
    };
  }
  for (const [role, { lost }] of Object.entries(stats?.isolates ?? {})) {
    if (lost === 0) continue;
    const times = lost === 1 ? "once" : `${count(lost)} times`;
    const text = `The ${role} process has ended by itself ${times} since the start.`;
    yield { tone: "warn", text, act: "See the errors", to: href(["logs"], { level: "error" }) };
  }
  const trouble = stats?.log?.trouble ?? null;
  if (trouble !== null) yield { tone: "warn", text: `Log: ${trouble}`, act: "Logs", to: href(["logs"]) };
  if (failedJobs.length > 0) {
    const text = `Scheduled functions have failed: ${[...new Set(failedJobs)].join(", ")}.`;
    yield { tone: "warn", text, act: "Look", to: href(["schedule"], { state: "failed" }) };
  }
}
