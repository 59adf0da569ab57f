/** Sockets, shared queries and function calls over HTTP. */
import { type HttpCalls, httpCalls, Hub } from "../../sync/mod.ts";
import type { FollowerFigures } from "../../cluster/mod.ts";
import type { RunStats } from "../../ops/stats/mod.ts";
import { addressOfRequests } from "../http/client_address.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import { apiHeaders } from "../http/api_headers.ts";
import { type HubLoad, TotalHubLoad } from "./total_hub_load.ts";
import type { AccountsFeature } from "./accounts.ts";

export interface SyncFeature extends Feature {
  readonly hub: Hub;
  /** Load of the hubs of all processes. */
  readonly work: HubLoad;
  readonly calls: HttpCalls;
}

export function startSync(
  { config, host, log }: FeatureContext,
  { accounts: { authenticator }, runStats, socketsMax, workerFigures }: {
    readonly accounts: AccountsFeature;
    readonly runStats: RunStats;
    /** Maximum number of sockets. */
    readonly socketsMax: number;
    /** Load of each worker process; absent without workers. */
    readonly workerFigures?: () => readonly FollowerFigures[];
  },
): SyncFeature {
  const { dev, memoryBytes, workers, trustedProxies } = config;
  const hub: Hub = new Hub({
    host,
    authenticator,
    dev,
    log,
    // Each process gets its share.
    memoryBytes: Math.floor(memoryBytes / workers),
    socketsMax,
    onCacheHit: (path) => runStats.cacheHit(path),
  });
  host.serveQueries((call) => hub.query(call));
  const addressOf = addressOfRequests(trustedProxies);
  return {
    hub,
    work: workerFigures === undefined ? hub : new TotalHubLoad(hub, workerFigures),
    calls: httpCalls({ hub, host, authenticator, dev, headers: apiHeaders, addressOf, log }),
  };
}
