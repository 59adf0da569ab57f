/**
 * Every metric of the server: name, meaning, and where its value comes from. Names and labels are kept from version to
 * version, because dashboards and alerts stand on them.
 */
import type { IsolateRole } from "../../functions/host/mod.ts";
import type { Distribution } from "./distribution.ts";
import type { Exposition, Sample } from "./exposition.ts";
import type { RunFigures } from "./run_figures.ts";
import type { Tally } from "./tally.ts";

/** What the parts of the server tell when they are asked. Counts are since its start. */
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
  /** By role; of each how many run, were started, and ended without being told to. */
  isolates(): Readonly<Record<IsolateRole, IsolateFigures>>;
  files(): FileFigures;
  backups(): Promise<BackupFigures>;
  /** Absent on a server that does not replicate. */
  readonly replication?: () => ReplicationFigures;
  /** Only of a server that follows another. */
  readonly follower?: () => { readonly lagCommits: number; readonly lagMs: number | null };
  /** Only of a server of a cluster. */
  readonly cluster?: () => ClusterFigures;
  /** Sizes of the database's files in bytes; 0 for one that is not there. */
  databaseBytes(): Promise<{ readonly data: number; readonly wal: number }>;
  /** Resident memory in bytes; `null` for isolates where it cannot be had. */
  memory(): Promise<MemoryFigures>;
}

/** What a server is in its cluster. */
export interface ClusterFigures {
  readonly role: "leader" | "follower";
  /** `null` on followers. */
  readonly epoch: number | null;
  /** Since when the cluster's database has not answered; `null`: it does. */
  readonly awayMs: number | null;
}

export interface IsolateFigures {
  readonly running: number;
  readonly starts: number;
  readonly lost: number;
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
  /** Milliseconds since the epoch; `null` when no backup is known. */
  readonly lastAt: number | null;
  /** Of the last one made since the start; `null` without. */
  readonly lastMs: number | null;
}

/** `null` while it is not known, as before the target has answered. */
export interface ReplicationFigures {
  readonly lagCommits: number | null;
  readonly lagMs: number | null;
  readonly journalBytes: number | null;
  /** Since the process that ships was started. */
  readonly segments: number | null;
  readonly failures: number | null;
  readonly overflows: number | null;
  /** Whether another server has taken the target. */
  readonly taken: boolean;
}

export interface MemoryFigures {
  readonly main: number;
  readonly isolates: ReadonlyMap<IsolateRole, number> | null;
}

export interface CountedFigures {
  readonly figures: ServerFigures;
  readonly runs: RunFigures;
  readonly requests: Tally<string, string>;
  readonly auth: Tally<string, string>;
  readonly lag: Distribution;
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
}

function defineProcess(to: Exposition, { figures, requests, auth, lag }: CountedFigures): void {
  const { version, runtime } = figures;
  to.gauge({
    name: "syncline_build_info",
    help: "Always 1; the labels tell the version of Syncline and of Deno",
    labels: ["version", "deno"],
    read: () => [{ labels: { version, deno: runtime }, value: 1 }],
  });
  to.gauge({
    name: "syncline_start_time_seconds",
    help: "When the server was started, seconds since the epoch; the time since then is its uptime",
    read: () => figures.startedAt / 1000,
  });
  to.gauge({
    name: "syncline_memory_resident_bytes",
    help: "Resident memory of main and, by role, of the isolates together",
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
    help: "How late main's event loop came to a timer, measured five times a second",
    read: () => [{ values: lag }],
  });
  to.counter({
    name: "syncline_http_requests_total",
    help: "Answered HTTP requests, by the part of the server they were for and the class of the status",
    labels: ["route", "status"],
    read: () => samples(requests, ["route", "status"]),
  });
  to.counter({
    name: "syncline_auth_requests_total",
    help: "Sign-ins, refreshes and the like, by how they ended",
    labels: ["operation", "outcome"],
    read: () => samples(auth, ["operation", "outcome"]),
  });
}

function defineData(to: Exposition, { figures }: CountedFigures): void {
  to.gauge({
    name: "syncline_commit_ts",
    help: "Timestamp of the newest commit, as clients see it",
    read: () => figures.ts(),
  });
  to.counter({
    name: "syncline_commits_total",
    help: "Commits that changed something",
    read: () => figures.commits(),
  });
  to.gauge({
    name: "syncline_database_bytes",
    help: "Size of the database and of its write-ahead log on disk",
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
    help:
      "Runs of functions by kind and outcome, those of the service included; answers from the query cache are none",
    labels: ["kind", "outcome"],
    read: () => samples(runs.ends, ["kind", "outcome"]),
  });
  to.histogram({
    name: "syncline_function_run_duration_seconds",
    help:
      "How long they took: a query its run, a mutation until it was committed, an action until it ended, " +
      "a route until its response had ended",
    labels: ["kind"],
    read: () => Object.entries(runs.seconds).map(([kind, values]) => ({ labels: { kind }, values })),
  });
  to.gauge({
    name: "syncline_mutations_waiting",
    help: "Mutations that the writer has not taken yet",
    read: () => figures.mutationsWaiting(),
  });
  to.histogram({
    name: "syncline_commit_group_mutations",
    help: "Mutations that the writer committed together",
    read: () => [{ values: runs.groupCalls }],
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
    help: "Queries that sockets are subscribed to, counted for each socket",
    read: () => figures.subscriptions(),
  });
  to.gauge({
    name: "syncline_shared_queries",
    help: "Distinct queries that are subscribed to or kept in the cache",
    read: () => figures.sharedQueries(),
  });
  to.counter({
    name: "syncline_transitions_total",
    help: "Transitions sent to sockets",
    read: () => figures.transitions(),
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
    help: "Processes that run the app's functions",
    labels: ["role"],
    read: byRole(({ running }) => running),
  });
  to.counter({
    name: "syncline_isolate_starts_total",
    help: "Times such a process was started",
    labels: ["role"],
    read: byRole(({ starts }) => starts),
  });
  to.counter({
    name: "syncline_isolate_losses_total",
    help: "Times one crashed or was killed from outside; another one takes its place",
    labels: ["role"],
    read: byRole(({ lost }) => lost),
  });
}

function defineFiles(to: Exposition, { figures }: CountedFigures): void {
  to.counter({
    name: "syncline_file_uploads_total",
    help: "Files that were stored",
    read: () => figures.files().uploads,
  });
  to.counter({
    name: "syncline_file_upload_bytes_total",
    help: "Bytes of these files",
    read: () => figures.files().uploadedBytes,
  });
  to.counter({
    name: "syncline_file_reads_total",
    help: "Reads of files and thumbnails that were answered with contents",
    read: () => figures.files().reads,
  });
  to.counter({
    name: "syncline_file_read_bytes_total",
    help: "Bytes of these answers; of one that broke off all of it counts",
    read: () => figures.files().readBytes,
  });
}

function defineBackups(to: Exposition, { figures }: CountedFigures): void {
  to.counter({
    name: "syncline_backups_total",
    help: "Backups that the running server made, by how they ended; a scheduled one when it is in its place",
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
    help: "When the newest known backup was made, seconds since the epoch; absent when there is none",
    read: async () => seconds((await figures.backups()).lastAt),
  });
  to.gauge({
    name: "syncline_backup_last_duration_seconds",
    help: "How long the last successful backup since the start took; absent when there is none",
    read: async () => seconds((await figures.backups()).lastMs),
  });
}

function defineReplication(to: Exposition, { figures: { replication } }: CountedFigures): void {
  if (replication === undefined) return;
  to.gauge({
    name: "syncline_replication_lag_commits",
    help: "Commits that are not at the replica yet; absent while it is not known what is",
    read: () => replication().lagCommits,
  });
  to.gauge({
    name: "syncline_replication_lag_seconds",
    help:
      "Age of the oldest commit that is not at the replica yet, 0 when all are; absent while it is not known what is",
    read: () => seconds(replication().lagMs),
  });
  to.gauge({
    name: "syncline_replication_journal_bytes",
    help: "Journal that waits to be shipped",
    read: () => replication().journalBytes,
  });
  to.gauge({
    name: "syncline_replication_taken",
    help: "1 when another server has taken the replica's place and nothing is shipped any more",
    read: () => replication().taken ? 1 : 0,
  });
  to.counter({
    name: "syncline_replication_segments_total",
    help: "Segments that were shipped and confirmed",
    read: () => replication().segments,
  });
  to.counter({
    name: "syncline_replication_failures_total",
    help: "Tries to ship that failed",
    read: () => replication().failures,
  });
  to.counter({
    name: "syncline_replication_overflows_total",
    help: "Journals that were dropped because they had grown too large; each begins a new generation",
    read: () => replication().overflows,
  });
}

function defineFollower(to: Exposition, { figures: { follower } }: CountedFigures): void {
  if (follower === undefined) return;
  to.gauge({
    name: "syncline_follower_lag_commits",
    help: "Commits that are at the replica and are not shown yet",
    read: () => follower().lagCommits,
  });
  to.gauge({
    name: "syncline_follower_lag_seconds",
    help: "Time since all that was at the replica was shown; absent before that was so for the first time",
    read: () => seconds(follower().lagMs),
  });
}

function defineCluster(to: Exposition, { figures: { cluster } }: CountedFigures): void {
  if (cluster === undefined) return;
  to.gauge({
    name: "syncline_cluster_leader",
    help: "1 on the server of a cluster that makes the commits",
    read: () => cluster().role === "leader" ? 1 : 0,
  });
  to.gauge({
    name: "syncline_cluster_epoch",
    help: "Number of the lease under which this server makes commits; absent on followers",
    read: () => cluster().epoch,
  });
  to.gauge({
    name: "syncline_cluster_database_away_seconds",
    help: "Time since the database of the cluster has answered last; 0 while it does",
    read: () => (cluster().awayMs ?? 0) / 1000,
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
