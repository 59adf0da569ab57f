/** Statistics of this server, kept in the log's database across restarts. */
import { Hono } from "hono";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../../errors.ts";
import { VERSION } from "../../config/version.ts";
import { residentBytes } from "../../functions/host/mod.ts";
import { statIfThere } from "../../kit/durable_files.ts";
import type { TableSizes } from "../../ops/admin/mod.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";
import { statsLimits } from "../../ops/limits.ts";
import type { ExecutionLog } from "../../ops/log/mod.ts";
import { type AdminEnv, adminGuard } from "../../ops/mod.ts";
import {
  GaugeHistory,
  type Gauges,
  RunStats,
  type ServerParts,
  serverStats,
  Trend,
} from "../../ops/stats/mod.ts";
import type { SyncFeature } from "./sync.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AccountsFeature } from "./accounts.ts";
import { verifyWith } from "./admin.ts";
import type { LogFeature } from "./log.ts";

const DAY_HOURS = 24;

export interface StatsParts {
  readonly runStats: RunStats;
  readonly executionLog: ExecutionLog | null;
  readonly accounts: AccountsFeature;
  readonly logs: Pick<LogFeature, "streamCount">;
  readonly sync: Pick<SyncFeature, "load">;
  readonly steering: { readonly sizes: TableSizes };
}

export function openStats(): RunStats {
  return new RunStats({ now: Date.now });
}

export interface StatsFeature extends Feature {
  /** Returns the response of `/api/admin/stats`. */
  read(): Promise<object>;
}

export function startStats(context: FeatureContext, given: StatsParts): StatsFeature {
  const { runStats, executionLog, accounts: { authenticator }, steering: { sizes } } = given;
  const parts = serverParts(context, given);
  const machine = new CachedMachineStats(context);
  const tables = new CachedTableSizes(sizes);
  const gauges = new GaugeHistory({ look: gaugeSampler(given, machine), now: Date.now });
  const trend = new Trend({ runs: runStats, gauges, now: Date.now });
  const options = {
    runs: runStats,
    gauges,
    parts,
    measured: { tables: () => tables.read(), machine: () => machine.read() },
    now: Date.now,
  };
  const app = new Hono<AdminEnv>().use("*", adminGuard(verifyWith(authenticator)));
  app.get("/stats", async (c) => c.json(await serverStats(options)));
  app.get("/stats/trend", (c) => {
    const hours = Number(c.req.query("hours") ?? DAY_HOURS);
    if (!(hours >= 1)) throw new ServiceError("bad_request", "hours must be a number from 1");
    return c.json({ at: Date.now(), everyMs: statsLimits.trendMs, points: trend.points(hours * 3_600_000) });
  });
  const save = () => {
    const figures = [...runStats.advance(), ...trend.advance()];
    if (figures.length > 0) executionLog?.saveFigures(figures);
  };
  let timer: ReturnType<typeof setInterval> | undefined;
  return {
    read: () => serverStats(options),
    routes: [{ at: "/api/admin", app: new Hono().route("/", app) }],
    start() {
      timer = setInterval(() => {
        save();
        void gauges.sample();
      }, statsLimits.slotMs / 4);
      Deno.unrefTimer(timer);
      // Loaded in the background; saved figures are inserted before the new ones.
      executionLog?.loadFigures().then((saved) => {
        runStats.restore(saved);
        trend.restore(saved);
      }, () => {});
    },
    stop() {
      // It was never started, so the saved figures belong to another process.
      if (timer === undefined) return;
      clearInterval(timer);
      executionLog?.saveFigures(runStats.flush());
    },
  };
}

function serverParts(
  { host, config: { publicUrl } }: FeatureContext,
  { sync: { load }, executionLog, logs }: StatsParts,
): ServerParts {
  return {
    version: VERSION,
    startedAt: Date.now(),
    publicUrl,
    ts: () => host.ts,
    sync() {
      const { queriesWaiting: _, callsWaiting: __, ...shown } = load();
      return shown;
    },
    queues() {
      const { queriesWaiting: queries, callsWaiting: calls } = load();
      return { mutations: host.mutationsWaiting, queries, calls, log: executionLog?.facts.queued ?? 0 };
    },
    isolates: () => host.isolates.roles,
    log: () => executionLog === null ? null : { ...executionLog.facts, streams: logs.streamCount },
  };
}

/** Measuring tables reads every page, so the last result is returned while a new one is computed. */
class CachedTableSizes {
  readonly #sizes: TableSizes;
  #known: Awaited<ReturnType<TableSizes["read"]>> | null = null;
  #askedAt = -Infinity;

  constructor(sizes: TableSizes) {
    this.#sizes = sizes;
  }

  read(): object | null {
    const now = performance.now();
    if (now - this.#askedAt > statsLimits.sizesKnownMs) {
      this.#askedAt = now;
      this.#sizes.read().then((known) => this.#known = known, () => this.#askedAt = -Infinity);
    }
    return this.#known;
  }
}

interface Machine {
  readonly memory: {
    readonly main: number;
    readonly isolates: Readonly<Record<string, number>> | null;
  };
  readonly disk: {
    readonly database: number;
    readonly log: number;
    readonly free: number | null;
    readonly total: number | null;
  };
}

function gaugeSampler(
  { sync: { load } }: StatsParts,
  machine: CachedMachineStats,
): () => Promise<Gauges> {
  return async () => {
    const { memory: { main, isolates }, disk: { database, log, free } } = await machine.read({ fresh: true });
    const { sockets, subscriptions } = load();
    return {
      sockets,
      subscriptions,
      memory: Object.values(isolates ?? {}).reduce((sum, bytes) => sum + bytes, main),
      stored: database + log,
      diskFree: free,
    };
  };
}

/** Caches the memory of isolates, because reading it starts a shell. The last result is returned in the meantime. */
class CachedMachineStats {
  readonly #context: FeatureContext;
  #isolates: ReadonlyMap<string, number> | null = null;
  #askedAt = -Infinity;

  constructor(context: FeatureContext) {
    this.#context = context;
  }

  /** @param fresh Whether to wait for the memory of the isolates. */
  async read({ fresh = false } = {}): Promise<Machine> {
    const { host, config: { dataDir } } = this.#context;
    const now = performance.now();
    if (fresh || now - this.#askedAt > statsLimits.machineKnownMs) {
      this.#askedAt = now;
      const reading = host.isolates.memory(residentBytes).then(
        (sizes) => void (this.#isolates = sizes),
        () => {},
      );
      if (fresh) await reading;
    }
    const [database, log, free] = await Promise.all([
      filesBytes(join(dataDir, archiveNames.database)),
      filesBytes(join(dataDir, archiveNames.log)),
      diskOf(dataDir),
    ]);
    const isolates = this.#isolates === null ? null : Object.fromEntries(this.#isolates);
    return {
      memory: { main: Deno.memoryUsage().rss, isolates },
      disk: { database, log, ...free },
    };
  }
}

/** Size of a database and its write-ahead log in bytes. */
async function filesBytes(path: string): Promise<number> {
  const sizes = await Promise.all(
    [path, `${path}-wal`].map(async (file) => (await statIfThere(file))?.size ?? 0),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Returns the size and the free bytes of a folder's disk; `null` where permission is missing. */
export async function diskOf(
  folder: string,
): Promise<{ readonly free: number | null; readonly total: number | null }> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder);
    return { free: bavail * bsize, total: blocks * bsize };
  } catch {
    return { free: null, total: null };
  }
}
