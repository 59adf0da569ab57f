/** Response of `GET /api/admin/stats`: counted runs and the current state of the server's parts. */
import type { GaugeHistory } from "./gauges.ts";
import type { RunStats } from "./run_stats.ts";

/** Values available immediately. Counters start with the process. */
export interface ServerParts {
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  ts(): number;
  /** Sockets, subscriptions and refresh batches of shared queries. */
  sync(): object;
  queues(): object;
  isolates(): object;
  /** The execution log, or `null`. */
  log(): object | null;
}

/** Values that require measuring the machine or the database; the last known ones are returned. */
export interface StatsSources {
  /** Sizes of tables and indexes; `null` before they were measured. */
  tables(): object | null;
  /** Memory in bytes, and the disk of the data folder. */
  machine(): Promise<{ readonly memory: object; readonly disk: object }>;
}

export interface ServerStatsOptions {
  readonly runs: RunStats;
  readonly gauges: GaugeHistory;
  readonly parts: ServerParts;
  readonly measured: StatsSources;
  readonly now: () => number;
}

export async function serverStats(
  { runs, gauges, parts, measured, now }: ServerStatsOptions,
): Promise<object> {
  const { memory, disk } = await measured.machine();
  return {
    at: now(),
    version: parts.version,
    startedAt: parts.startedAt,
    ts: parts.ts(),
    functions: runs.functions(),
    commitMs: runs.commitMs(),
    history: runs.history(),
    gauges: gauges.history,
    sync: parts.sync(),
    queues: parts.queues(),
    isolates: parts.isolates(),
    log: parts.log(),
    tables: measured.tables(),
    memory,
    disk,
  };
}
