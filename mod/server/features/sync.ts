/** Sockets, shared queries and function calls over HTTP, and the load of all hubs of this server. */
import type { FollowerFigures } from "../../cluster/mod.ts";
import type { RunStats } from "../../ops/stats/mod.ts";
import { type HttpCalls, httpCalls, Hub, type QueryWork } from "../../sync/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import { apiHeaders } from "../http/app_routes.ts";
import { addressOfRequests } from "../http/requests.ts";
import type { AccountsFeature } from "./accounts.ts";

export type HubLoad = Pick<
  Hub,
  "socketCount" | "subscriptionCount" | "queryCount" | "transitionCount" | "work"
>;

/** Sums sockets and queries of all processes of the server. */
class TotalHubLoad implements HubLoad {
  readonly #own: HubLoad;
  readonly #others: () => readonly FollowerFigures[];

  constructor(own: HubLoad, others: () => readonly FollowerFigures[]) {
    this.#own = own;
    this.#others = others;
  }

  get socketCount(): number {
    return this.#sum(this.#own.socketCount, ({ sockets }) => sockets);
  }

  get subscriptionCount(): number {
    return this.#sum(this.#own.subscriptionCount, ({ subscriptions }) => subscriptions);
  }

  /** A query counts once for each process that runs it. */
  get queryCount(): number {
    return this.#sum(this.#own.queryCount, ({ sharedQueries }) => sharedQueries);
  }

  get transitionCount(): number {
    return this.#sum(this.#own.transitionCount, ({ transitions }) => transitions);
  }

  get work(): QueryWork {
    const own = this.#own.work;
    return {
      refreshBatches: this.#sum(own.refreshBatches, ({ refreshBatches }) => refreshBatches),
      refreshBatchesInFlight: this.#sum(
        own.refreshBatchesInFlight,
        ({ refreshBatchesInFlight }) => refreshBatchesInFlight,
      ),
      queriesWaiting: this.#sum(own.queriesWaiting, ({ queriesWaiting }) => queriesWaiting),
      callsWaiting: this.#sum(own.callsWaiting, ({ callsWaiting }) => callsWaiting),
    };
  }

  #sum(own: number, of: (figures: FollowerFigures) => number): number {
    return this.#others().reduce((sum, figures) => sum + of(figures), own);
  }
}

export interface SyncFeature extends Feature {
  readonly hub: Hub;
  readonly work: HubLoad;
  readonly calls: HttpCalls;
}

export function startSync(
  { config, host, log }: FeatureContext,
  { accounts: { authenticator }, runStats, socketsMax, workerFigures }: {
    readonly accounts: AccountsFeature;
    readonly runStats: RunStats;
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
