/** Everything `GET /api/admin/stats` tells: counted runs, and how the parts of the server are at the moment. */
import type { GaugeHistory } from "./gauges.ts";
import type { RunStats } from "./run_stats.ts";

/** What the parts of the server tell at once. Counts are since the start. */
export interface ServerParts {
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  ts(): number;
  /** Sockets, what they are subscribed to, and the waves in which that is brought up to date. */
  sync(): object;
  /** What waits, by queue. */
  queues(): object;
  isolates(): object;
  /** The execution log; `null` when there is none. */
  log(): object | null;
}

/** What takes a look at the machine or the database: told as it was known last. */
export interface MeasuredParts {
  /** Sizes of tables and indexes; `null` before they were measured. */
  tables(): object | null;
  /** Memory in bytes, and the disk of the data folder. */
  machine(): Promise<{ readonly memory: object; readonly disk: object }>;
}

export interface ServerStatsOptions {
  readonly runs: RunStats;
  readonly gauges: GaugeHistory;
  readonly parts: ServerParts;
  readonly measured: MeasuredParts;
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
