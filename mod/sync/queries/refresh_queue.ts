/** Queries that need a run, and the choice of those that the next refresh batches run: quick ones together, slow ones alone. */
import type { FunctionHost, QueryBatchOptions } from "../../functions/host_port.ts";
import { CallerRoundRobin } from "./caller_round_robin.ts";
import { planRefresh } from "./refresh_plan.ts";
import type { RefreshBatch, Run, SharedQuery, View } from "./shared_query.ts";

export interface RefreshQueueOptions {
  readonly host: FunctionHost;
  /** Batches in flight. */
  readonly batches: ReadonlySet<RefreshBatch>;
  /** Returns the views that have been stuck for `sharedQueryLimits.stuckSocketMs`. */
  readonly stuck: () => Iterable<View>;
  /** Starts a batch and removes its queries from the queue. */
  readonly startBatch: (queries: readonly SharedQuery[], options: QueryBatchOptions) => void;
}

export class RefreshQueue {
  readonly #options: RefreshQueueOptions;
  readonly #dirty = new Set<SharedQuery>();
  /** Those that may be slow: queries found to be quick while all readers are busy are removed. */
  readonly #maybeSlow = new Set<SharedQuery>();
  readonly #slowCallers = new CallerRoundRobin();

  constructor(options: RefreshQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#dirty.size;
  }

  has(query: SharedQuery): boolean {
    return this.#dirty.has(query);
  }

  add(query: SharedQuery): void {
    this.#dirty.add(query);
    this.#maybeSlow.add(query);
  }

  delete(query: SharedQuery): void {
    this.#dirty.delete(query);
    this.#maybeSlow.delete(query);
  }

  /** Starts at most one quick batch, and slow ones while readers accept them. */
  startBatches(): void {
    const { host: { readers }, startBatch } = this.#options;
    if (this.#dirty.size === 0) return;
    const hasSlow = readers.hasSlowQueries === true;
    if (!readers.free) {
      if (!hasSlow) return;
      // Only slow queries can have another reader started. A plan for all, after each answer, would take longer than the answers.
      for (const query of this.#maybeSlow) {
        if (this.#isSlow(query)) return this.#startSlowBatches();
        this.#maybeSlow.delete(query);
      }
      return;
    }
    const { queries, together } = this.#plan();
    if (!hasSlow) return startBatch(queries, {});
    const slow = new Set(queries.filter((query) => this.#isSlow(query)));
    // Queries that must run together count as slow if one of them is.
    const heavy = [...together].some((query) => slow.has(query)) ? together : new Set<SharedQuery>();
    const quick = queries.filter((query) => !slow.has(query) && !heavy.has(query));
    if (quick.length > 0) startBatch(quick, {});
    if (slow.size > 0) this.#startSlowBatches();
  }

  /** Returns the caller that a run of a query would have now. */
  runIdentity(query: SharedQuery): Pick<Run, "identity" | "caller"> {
    const { host } = this.#options;
    return query.runIdentity((caller) => host.isBlocked?.(query.spec.udfPath, caller) === true);
  }

  #plan(): ReturnType<typeof planRefresh> {
    const { batches, stuck } = this.#options;
    return planRefresh({ dirty: this.#dirty, batches, stuck: stuck() });
  }

  /** Starts slow queries one at a time, round robin by caller, while readers are available. */
  #startSlowBatches(): void {
    const { host, startBatch } = this.#options;
    while (host.readers.slowFree?.() === true) {
      const { queries, together } = this.#plan();
      const slow = queries.filter((query) => this.#isSlow(query));
      const next = this.#slowCallers.next(slow, (query) => this.runIdentity(query).caller?.queueKey ?? "");
      if (next === null) return;
      const group = together.has(next) ? queries.filter((query) => together.has(query)) : [next];
      startBatch(group, { slow: true });
    }
  }

  #isSlow(query: SharedQuery): boolean {
    const call = { udfPath: query.spec.udfPath, ...this.runIdentity(query) };
    return this.#options.host.readers.isSlow?.(call) ?? false;
  }
}
