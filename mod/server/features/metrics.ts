/** Metrics of this server, collected from its parts. */
import { join } from "node:path";
import { authOperations } from "../../auth/mod.ts";
import { type IsolateHost, residentBytes } from "../../functions/host/mod.ts";
import { statIfThere } from "../../kit/durable_files.ts";
import { opsLimits } from "../../ops/limits.ts";
import { archiveNames } from "../../ops/backups/archive/entry_names.ts";
import type { Metrics, ServerFigures } from "../../ops/metrics/mod.ts";
import type { RunStats } from "../../ops/stats/mod.ts";
import type { Telemetry } from "../../ops/telemetry/mod.ts";
import type { SyncFeature } from "./sync.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import type { AdminFeature } from "./admin.ts";
import type { ClusterFeature } from "./cluster.ts";
import type { FollowingFeature } from "./following.ts";
import type { PresenceFeature } from "./presence.ts";
import type { ReplicationFeature } from "./replication.ts";
import type { StorageFeature } from "./storage.ts";
import type { StreamsFeature } from "./streams.ts";
import type { ServeConfig } from "../../config/config.ts";
import { VERSION } from "../../config/version.ts";

/** `null` without `--metrics` and `--otlp-endpoint`; then the module is not loaded. */
export async function openMetrics(
  { metrics, telemetry }: ServeConfig,
  { totals }: RunStats,
): Promise<Metrics | null> {
  if (metrics === null && telemetry === null) return null;
  const { Metrics } = await import("../../ops/metrics/mod.ts");
  return new Metrics({ token: metrics?.token ?? null, authOperations, runs: totals });
}

export interface MetricsSources {
  /** `null` without `--metrics` and `--otlp-endpoint`. */
  readonly metrics: Metrics | null;
  readonly telemetry: Telemetry | null;
  readonly sync: Pick<SyncFeature, "load">;
  readonly presence: Pick<PresenceFeature, "hub">;
  readonly streaming: Pick<StreamsFeature, "streams">;
  readonly storage: StorageFeature;
  readonly admin: AdminFeature;
  readonly replication: ReplicationFeature;
  readonly following: FollowingFeature;
  readonly clustering: Pick<ClusterFeature, "figures">;
}

export function startMetrics(
  { config: { dataDir }, host }: FeatureContext,
  { metrics, telemetry, sync: { load }, storage: { traffic }, admin, ...others }: MetricsSources,
): Feature {
  if (metrics === null) return {};
  const { replication: { replication }, following, clustering, presence: { hub }, streaming: { streams } } =
    others;
  const startedAt = Date.now();
  const memory = new CachedMemory(host);
  metrics.define({
    version: VERSION,
    runtime: Deno.version.deno,
    startedAt,
    ts: () => host.ts,
    commits: () => host.commits.count,
    mutationsWaiting: () => host.mutationsWaiting,
    sockets: () => load().sockets,
    subscriptions: () => load().subscriptions,
    sharedQueries: () => load().sharedQueries,
    transitions: () => load().transitions,
    rooms: () => hub?.totals ?? null,
    streams: () => streams?.summary ?? null,
    isolates: () => host.isolates.roles,
    files: () => traffic,
    async backups() {
      const { made, failed, last } = await admin.knownBackups();
      return { made, failed, lastAt: last?.at ?? null, lastMs: last?.ms ?? null };
    },
    ...(replication !== null && {
      replication: () => {
        const { lagCommits, lagMs, journalBytes, counts, takenBy } = replication.figures();
        const { segments = null, failures = null, overflows = null } = counts ?? {};
        return { lagCommits, lagMs, journalBytes, segments, failures, overflows, taken: takenBy !== null };
      },
    }),
    ...(following.figures !== null && { follower: following.figures }),
    ...(clustering.figures !== null && { cluster: clustering.figures }),
    ...(telemetry !== null && { telemetry: () => telemetry.dropped }),
    async databaseBytes() {
      const path = join(dataDir, archiveNames.database);
      return { data: await bytesOf(path), wal: await bytesOf(`${path}-wal`) };
    },
    memory: () => memory.read(),
  });
  return {};
}

type MemoryFigures = Awaited<ReturnType<ServerFigures["memory"]>>;

/** Caches the memory of isolates, because reading it starts a shell. */
class CachedMemory {
  readonly #host: IsolateHost;
  #isolates: Promise<MemoryFigures["isolates"]> = Promise.resolve(null);
  #askedAt = -Infinity;

  constructor(host: IsolateHost) {
    this.#host = host;
  }

  async read(): Promise<MemoryFigures> {
    const now = performance.now();
    if (now - this.#askedAt > opsLimits.memoryKnownMs) {
      this.#askedAt = now;
      // A failure must not affect the other metrics.
      this.#isolates = this.#host.isolates.memory(residentBytes).catch(() => null);
    }
    return { main: Deno.memoryUsage().rss, isolates: await this.#isolates };
  }
}

async function bytesOf(path: string): Promise<number> {
  return (await statIfThere(path))?.size ?? 0;
}
