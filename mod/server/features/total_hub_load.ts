/** Sums sockets and queries of all processes of the server. */
import type { FollowerFigures } from "../../cluster/mod.ts";
import type { Hub, QueryWork } from "../../sync/mod.ts";

export type HubLoad = Pick<
  Hub,
  "socketCount" | "subscriptionCount" | "queryCount" | "transitionCount" | "work"
>;

export class TotalHubLoad implements HubLoad {
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
      waves: this.#sum(own.waves, ({ waves }) => waves),
      wavesUnderWay: this.#sum(own.wavesUnderWay, ({ wavesUnderWay }) => wavesUnderWay),
      queriesWaiting: this.#sum(own.queriesWaiting, ({ queriesWaiting }) => queriesWaiting),
      callsWaiting: this.#sum(own.callsWaiting, ({ callsWaiting }) => callsWaiting),
    };
  }

  #sum(own: number, of: (figures: FollowerFigures) => number): number {
    return this.#others().reduce((sum, figures) => sum + of(figures), own);
  }
}
