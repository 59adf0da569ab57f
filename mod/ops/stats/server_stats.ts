/** Response of `GET /api/admin/stats`: counted runs, the current state of the server's parts, and gauges of the last hour. */
import { statsLimits } from "../limits.ts";
import type { RunStats } from "./run_stats.ts";

const MINUTE_MS = 60_000;

/** One sample. Sizes are in bytes; `null` if unavailable. */
export interface Gauges {
  readonly sockets: number;
  readonly subscriptions: number;
  /** Of the main process and all isolates. */
  readonly memory: number;
  /** Of the database and the execution log. */
  readonly stored: number;
  readonly diskFree: number | null;
}

export interface GaugesAt extends Gauges {
  /** Milliseconds since the epoch, rounded down to the minute. */
  readonly at: number;
}

/** Gauges of the last hour, sampled once a minute. */
export class GaugeHistory {
  /** Oldest first; at most `gaugesKept`. Not persisted. */
  readonly #samples: GaugesAt[] = [];
  readonly #measure: () => Promise<Gauges>;
  readonly #now: () => number;
  /** Minute of the last sample, initially that of the start. */
  #minute: number;

  constructor({ look, now }: { readonly look: () => Promise<Gauges>; readonly now: () => number }) {
    this.#measure = look;
    this.#now = now;
    this.#minute = minuteOf(now());
  }

  /** Oldest first. */
  get history(): readonly GaugesAt[] {
    return this.#samples;
  }

  /** Takes the sample of a new minute. Call often enough; a failed sample leaves a gap. */
  async sample(): Promise<void> {
    const at = minuteOf(this.#now());
    if (at <= this.#minute) return;
    this.#minute = at;
    try {
      this.#samples.push({ at, ...await this.#measure() });
      if (this.#samples.length > statsLimits.gaugesKept) this.#samples.shift();
    } catch {
      // Failures are reported to direct requests for the same values.
    }
  }
}

function minuteOf(now: number): number {
  return Math.floor(now / MINUTE_MS) * MINUTE_MS;
}

/** Values available immediately. Counters start with the process. */
export interface ServerParts {
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** The address that users open; `null` if it is not configured. */
  readonly publicUrl: string | null;
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
    publicUrl: parts.publicUrl,
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
