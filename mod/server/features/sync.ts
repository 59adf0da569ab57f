/** Sockets, shared queries and function calls over HTTP, and the load of all hubs of this server. */
import type { FollowerFigures } from "../../cluster/mod.ts";
import type { RequestSpans } from "../../functions/call_trace.ts";
import type { RunStats } from "../../ops/stats/mod.ts";
import { type HttpCalls, httpCalls, Hub, type HubLoad } from "../../sync/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import { apiHeaders } from "../http/app_routes.ts";
import { addressOfRequests } from "../http/requests.ts";
import type { AccountsFeature } from "./accounts.ts";
import type { PresenceFeature } from "./presence.ts";

export interface SyncFeature extends Feature {
  readonly hub: Hub;
  /** Load of all processes of the server. A query counts once for each process that runs it. */
  readonly load: () => HubLoad;
  readonly calls: HttpCalls;
}

export function startSync(
  { config, host, log }: FeatureContext,
  { accounts: { authenticator }, presence: { rooms }, runStats, telemetry, socketsMax, workerFigures }: {
    readonly accounts: AccountsFeature;
    readonly presence: Pick<PresenceFeature, "rooms">;
    readonly runStats: RunStats;
    readonly telemetry: RequestSpans | null;
    readonly socketsMax: number;
    /** Load of each worker process; absent without workers. */
    readonly workerFigures?: () => readonly Partial<FollowerFigures>[];
  },
): SyncFeature {
  const { dev, memoryBytes, workers, trustedProxies } = config;
  const traced = telemetry === null ? {} : { spans: telemetry };
  const hub: Hub = new Hub({
    host,
    authenticator,
    rooms,
    dev,
    log,
    // Each process gets its share.
    memoryBytes: Math.floor(memoryBytes / workers),
    socketsMax,
    ...traced,
    onCacheHit: (path) => runStats.cacheHit(path),
  });
  host.serveQueries((call) => hub.query(call));
  const addressOf = addressOfRequests(trustedProxies);
  return {
    hub,
    load: () => (workerFigures?.() ?? []).reduce<HubLoad>(sum, hub.load),
    calls: httpCalls({ hub, host, authenticator, dev, headers: apiHeaders, addressOf, ...traced, log }),
  };
}

function sum(a: HubLoad, b: Partial<HubLoad>): HubLoad {
  const keys = Object.keys(a) as (keyof HubLoad)[];
  return Object.fromEntries(keys.map((key) => [key, a[key] + (b[key] ?? 0)])) as Record<
    keyof HubLoad,
    number
  >;
}
