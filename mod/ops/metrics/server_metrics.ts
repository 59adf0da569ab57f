/** All metrics of the server. Names and labels are stable across versions: dashboards and alerts depend on them. */
import type { IsolateRole } from "../../functions/host/mod.ts";
import type { Histogram, RunTotals, Tally } from "../stats/mod.ts";
import type { Exposition, Sample } from "./exposition.ts";

/** Sources of the values. Counters start at zero with the process. */
export interface ServerFigures {
  readonly version: string;
  readonly runtime: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** The newest commit. */
  ts(): number;
  commits(): number;
  mutationsWaiting(): number;
  sockets(): number;
  subscriptions(): number;
  sharedQueries(): number;
  transitions(): number;
  /** `null` on servers that follow: the leader has the rooms. */
  rooms(): { readonly rooms: number; readonly members: number } | null;
  /** The same for streams. */
  streams(): StreamFigures | null;
  /** By role: running, started, and unexpectedly exited processes. */
  isolates(): Readonly<Record<IsolateRole, IsolateFigures>>;
  files(): FileFigures;
  backups(): Promise<BackupFigures>;
  /** Absent without replication. */
  readonly replication?: () => ReplicationFigures;
  /** Followers only. */
  readonly follower?: () => { readonly lagCommits: number; readonly lagMs: number | null };
  /** Cluster members only. */
  readonly cluster?: () => ClusterFigures;
  /** Absent without `--otlp-endpoint`. */
  readonly telemetry?: () => { readonly spans: number; readonly logRecords: number };
  /** Sizes of the database files in bytes; 0 if missing. */
  databaseBytes(): Promise<{ readonly data: number; readonly wal: number }>;
  /** Resident memory in bytes; `null` for isolates if unavailable. */
  memory(): Promise<MemoryFigures>;
}

/** Status of a cluster member. */
export interface ClusterFigures {
  readonly role: "leader" | "follower";
  /** `null` on followers. */
  readonly epoch: number | null;
  /** Time since the cluster's database has become unreachable; `null` while it is reachable. */
  readonly awayMs: number | null;
}

export interface IsolateFigures {
  readonly running: number;
  readonly starts: number;
  readonly lost: number;
}

export interface StreamFigures {
  readonly open: number;
  readonly readers: number;
  readonly bytes: number;
}

export interface FileFigures {
  readonly uploads: number;
  readonly uploadedBytes: number;
  readonly reads: number;
  readonly readBytes: number;
}

export interface BackupFigures {
  readonly made: number;
  readonly failed: number;
  /** Milliseconds since the epoch; `null` if no backup is known. */
  readonly lastAt: number | null;
  /** Duration of the last backup since the start, or `null`. */
  readonly lastMs: number | null;
}

/** Values are `null` while unknown, such as before the target has responded. */
export interface ReplicationFigures {
  readonly lagCommits: number | null;
  readonly lagMs: number | null;
  readonly journalBytes: number | null;
  /** Since the replication process started. */
  readonly segments: number | null;
  readonly failures: number | null;
  readonly overflows: number | null;
  /** Whether another server has taken over the target. */
  readonly taken: boolean;
}

export interface MemoryFigures {
  readonly main: number;
  readonly isolates: ReadonlyMap<IsolateRole, number> | null;
}

export interface CountedFigures {
  readonly figures: ServerFigures;
  readonly runs: RunTotals;
  readonly requests: Tally<string, string>;
  readonly auth: Tally<string, string>;
  readonly lag: Histogram;
}

export function defineMetrics(to: Exposition, counted: CountedFigures): void {
  defineProcess(to, counted);
  defineData(to, counted);
  defineCalls(to, counted);
  defineSync(to, counted);
  defineIsolates(to, counted);
  defineFiles(to, counted);
  defineBackups(to, counted);
  defineReplication(to, counted);
  defineFollower(to, counted);
  defineCluster(to, counted);
  defineTelemetry(to, counted);
}

function defineProcess(to: Exposition, { figures, requests, auth, lag }: CountedFigures): void {
  const { version, runtime } = figures;
  to.gauge({
    name: "syncline_build_info",
    help: "Always 1; the labels contain the versions of Syncline and Deno",
    labels: ["version", "deno"],
    read: () => [{ labels: { version, deno: runtime }, value: 1 }],
  });
  to.gauge({
    name: "syncline_start_time_seconds",
    help: "Start time of the server in seconds since the epoch",
    read: () => figures.startedAt / 1000,
  });
  to.gauge({
    name: "syncline_memory_resident_bytes",
    help: "Resident memory of the main process and, by role, of all isolates",
    labels: ["process"],
    read: async () => {
      const { main, isolates } = await figures.memory();
      return [
        { labels: { process: "main" }, value: main },
        ...[...isolates ?? []].map(([process, value]) => ({ labels: { process }, value })),
      ];
    },
  });
  to.histogram({
    name: "syncline_event_loop_lag_seconds",
    help: "Event loop lag of the main process, measured five times a second",
    read: () => [{ values: lag }],
  });
  to.counter({
    name: "syncline_http_requests_total",
    help: "HTTP responses by route class and status class",
    labels: ["route", "status"],
    read: () => samples(requests, ["route", "status"]),
  });
  to.counter({
    name: "syncline_auth_requests_total",
    help: "Account requests such as sign-ins and token refreshes, by outcome",
    labels: ["operation", "outcome"],
    read: () => samples(auth, ["operation", "outcome"]),
  });
}

function defineData(to: Exposition, { figures }: CountedFigures): void {
  to.gauge({
    name: "syncline_commit_ts",
    help: "Timestamp of the newest commit",
    read: () => figures.ts(),
  });
  to.counter({
    name: "syncline_commits_total",
    help: "Commits with changes",
    read: () => figures.commits(),
  });
  to.gauge({
    name: "syncline_database_bytes",
    help: "Size of the database and its write-ahead log on disk",
    labels: ["file"],
    read: async () => {
      const { data, wal } = await figures.databaseBytes();
      return [{ labels: { file: "data" }, value: data }, { labels: { file: "wal" }, value: wal }];
    },
  });
}

function defineCalls(to: Exposition, { figures, runs }: CountedFigures): void {
  to.counter({
    name: "syncline_function_runs_total",
    help: "Function runs by kind and outcome, including system functions; cached query results are not runs",
    labels: ["kind", "outcome"],
    read: () => samples(runs.ends, ["kind", "outcome"]),
  });
  to.histogram({
    name: "syncline_function_run_duration_seconds",
    help:
      "Duration of runs: queries without queueing, mutations until committed, actions until they ended, " +
      "routes until the response ended",
    labels: ["kind"],
    read: () => Object.entries(runs.seconds).map(([kind, values]) => ({ labels: { kind }, values })),
  });
  to.gauge({
    name: "syncline_mutations_waiting",
    help: "Mutations queued for the writer",
    read: () => figures.mutationsWaiting(),
  });
  to.histogram({
    name: "syncline_commit_group_mutations",
    help: "Mutations per commit",
    read: () => [{ values: runs.groupCalls }],
  });
  to.counter({
    name: "syncline_rate_limit_refusals_total",
    help: "Mutations that failed because a rate limit of the app refused them",
    read: () => runs.refusedLimits.total,
  });
}

function defineSync(to: Exposition, { figures }: CountedFigures): void {
  to.gauge({
    name: "syncline_sockets",
    help: "Connected WebSockets",
    read: () => figures.sockets(),
  });
  to.gauge({
    name: "syncline_subscriptions",
    help: "Query subscriptions of all sockets",
    read: () => figures.subscriptions(),
  });
  to.gauge({
    name: "syncline_shared_queries",
    help: "Distinct queries that are subscribed to or cached",
    read: () => figures.sharedQueries(),
  });
  to.counter({
    name: "syncline_transitions_total",
    help: "Transitions sent to sockets",
    read: () => figures.transitions(),
  });
  to.gauge({
    name: "syncline_rooms",
    help: "Rooms with members, of all servers; absent on followers",
    read: () => figures.rooms()?.rooms ?? null,
  });
  to.gauge({
    name: "syncline_room_members",
    help: "Members of rooms; a client counts once for each of its rooms; absent on followers",
    read: () => figures.rooms()?.members ?? null,
  });
  to.gauge({
    name: "syncline_streams",
    help: "Streams that actions are writing; absent on followers",
    read: () => figures.streams()?.open ?? null,
  });
  to.gauge({
    name: "syncline_stream_readers",
    help: "Responses that read streams at the leader; absent on followers",
    read: () => figures.streams()?.readers ?? null,
  });
  to.gauge({
    name: "syncline_stream_memory_bytes",
    help: "Memory of open streams and of those that have ended a short time ago; absent on followers",
    read: () => figures.streams()?.bytes ?? null,
  });
}

function defineIsolates(to: Exposition, { figures }: CountedFigures): void {
  const byRole = (read: (isolates: IsolateFigures) => number) => (): Sample[] =>
    Object.entries(figures.isolates()).map(([role, isolates]) => ({
      labels: { role },
      value: read(isolates),
    }));
  to.gauge({
    name: "syncline_isolates",
    help: "Running isolate processes",
    labels: ["role"],
    read: byRole(({ running }) => running),
  });
  to.counter({
    name: "syncline_isolate_starts_total",
    help: "Started isolate processes",
    labels: ["role"],
    read: byRole(({ starts }) => starts),
  });
  to.counter({
    name: "syncline_isolate_losses_total",
    help: "Isolate processes that exited unexpectedly and were replaced",
    labels: ["role"],
    read: byRole(({ lost }) => lost),
  });
}

function defineFiles(to: Exposition, { figures }: CountedFigures): void {
  to.counter({
    name: "syncline_file_uploads_total",
    help: "Stored files",
    read: () => figures.files().uploads,
  });
  to.counter({
    name: "syncline_file_upload_bytes_total",
    help: "Bytes of stored files",
    read: () => figures.files().uploadedBytes,
  });
  to.counter({
    name: "syncline_file_reads_total",
    help: "Responses with contents of files or thumbnails",
    read: () => figures.files().reads,
  });
  to.counter({
    name: "syncline_file_read_bytes_total",
    help: "Bytes of these responses; aborted ones count in full",
    read: () => figures.files().readBytes,
  });
}

function defineBackups(to: Exposition, { figures }: CountedFigures): void {
  to.counter({
    name: "syncline_backups_total",
    help: "Backups by outcome since the server started; scheduled ones count once they are in the target",
    labels: ["outcome"],
    read: async () => {
      const { made, failed } = await figures.backups();
      return [{ labels: { outcome: "success" }, value: made }, {
        labels: { outcome: "error" },
        value: failed,
      }];
    },
  });
  to.gauge({
    name: "syncline_backup_last_success_timestamp_seconds",
    help: "Time of the newest known backup in seconds since the epoch; absent without backups",
    read: async () => seconds((await figures.backups()).lastAt),
  });
  to.gauge({
    name: "syncline_backup_last_duration_seconds",
    help: "Duration of the last successful backup since the server started; absent without one",
    read: async () => seconds((await figures.backups()).lastMs),
  });
}

function defineReplication(to: Exposition, { figures: { replication } }: CountedFigures): void {
  if (replication === undefined) return;
  to.gauge({
    name: "syncline_replication_lag_commits",
    help: "Commits not replicated yet; absent while unknown",
    read: () => replication().lagCommits,
  });
  to.gauge({
    name: "syncline_replication_lag_seconds",
    help: "Age of the oldest commit not replicated yet, 0 if there is none; absent while unknown",
    read: () => seconds(replication().lagMs),
  });
  to.gauge({
    name: "syncline_replication_journal_bytes",
    help: "Size of the journal waiting for replication",
    read: () => replication().journalBytes,
  });
  to.gauge({
    name: "syncline_replication_taken",
    help: "1 if another server has taken over the target, which stops replication",
    read: () => replication().taken ? 1 : 0,
  });
  to.counter({
    name: "syncline_replication_segments_total",
    help: "Replicated segments",
    read: () => replication().segments,
  });
  to.counter({
    name: "syncline_replication_failures_total",
    help: "Failed replication attempts",
    read: () => replication().failures,
  });
  to.counter({
    name: "syncline_replication_overflows_total",
    help: "Journals dropped because of their size; each starts a new generation",
    read: () => replication().overflows,
  });
}

function defineFollower(to: Exposition, { figures: { follower } }: CountedFigures): void {
  if (follower === undefined) return;
  to.gauge({
    name: "syncline_follower_lag_commits",
    help: "Commits in the replica that are not applied yet",
    read: () => follower().lagCommits,
  });
  to.gauge({
    name: "syncline_follower_lag_seconds",
    help: "Time since the follower was last up to date; absent before the first time",
    read: () => seconds(follower().lagMs),
  });
}

function defineCluster(to: Exposition, { figures: { cluster } }: CountedFigures): void {
  if (cluster === undefined) return;
  to.gauge({
    name: "syncline_cluster_leader",
    help: "1 on the cluster's leader",
    read: () => cluster().role === "leader" ? 1 : 0,
  });
  to.gauge({
    name: "syncline_cluster_epoch",
    help: "Epoch of the leader's lease; absent on followers",
    read: () => cluster().epoch,
  });
  to.gauge({
    name: "syncline_cluster_database_away_seconds",
    help: "Time since the cluster's database has become unreachable; 0 while it is reachable",
    read: () => (cluster().awayMs ?? 0) / 1000,
  });
}

function defineTelemetry(to: Exposition, { figures: { telemetry } }: CountedFigures): void {
  if (telemetry === undefined) return;
  to.counter({
    name: "syncline_telemetry_dropped_spans_total",
    help: "Spans dropped because the queue was full or their export failed",
    read: () => telemetry().spans,
  });
  to.counter({
    name: "syncline_telemetry_dropped_log_records_total",
    help: "Log records dropped because the queue was full or their export failed",
    read: () => telemetry().logRecords,
  });
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1000;
}

function* samples(
  tally: Tally<string, string>,
  [row, column]: readonly [string, string],
): Generator<Sample> {
  for (const entry of tally.entries()) {
    yield { labels: { [row]: entry.row, [column]: entry.column }, value: entry.count };
  }
}
