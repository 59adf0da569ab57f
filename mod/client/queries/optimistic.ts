/**
 * Optimistic updates: one layer for each mutation on top of the server's results, in call order. Layers are replayed whenever
 * results or layers change. A layer is removed when its mutation is visible or has failed.
 */
import { functionPath } from "../../protocol/function_reference.ts";
import type { ArgsOf, FunctionName, PassedArgs, ResultOf } from "../../protocol/client_function_names.ts";
import { reportUnhandled } from "../errors.ts";
import { freezeDeep } from "./freeze_deep.ts";
import { jsonArgs, type JsonObject } from "../json_args.ts";
import { type LiveQuery, queryKey, type QueryResult, type QuerySet } from "./query_set.ts";
import { shareStructure } from "./share_structure.ts";

/** Access of an optimistic update to the results of live queries. Values read from it are read-only. */
export interface OptimisticStore {
  /** Returns the result of a query; `undefined` while it loads. */
  getQuery<Name extends FunctionName<"query">>(
    name: Name,
    args: ArgsOf<Name> | PassedArgs<Name>,
  ): ResultOf<Name> | undefined;
  /** Replaces the shown result of a query. Has no effect until the query has a result. */
  setQuery<Name extends FunctionName<"query">>(
    name: Name,
    args: ArgsOf<Name> | PassedArgs<Name>,
    value: ResultOf<Name>,
  ): void;
  /** Returns all live queries of a function that have a result. */
  getAllQueries<Name extends FunctionName<"query">>(
    name: Name,
  ): { readonly args: ArgsOf<Name>; readonly value: ResultOf<Name> }[];
}

/** Changes local results to the expected outcome of a mutation. Runs again for every new result, so it must be pure. */
export type OptimisticUpdate = (store: OptimisticStore) => void;

type Overlay = Map<LiveQuery, QueryResult>;

export class OptimisticResults {
  readonly #base: QuerySet;
  readonly #layers = new Map<number, OptimisticUpdate>();
  /**
   * The results written by layers, rebuilt by each replay. Keyed by query object, not by query key: a query that is unsubscribed
   * and subscribed again starts without them.
   */
  #overlay: Overlay = new Map();

  constructor(base: QuerySet) {
    this.#base = base;
  }

  /** The shown result. */
  result(key: string): QueryResult | undefined {
    const query = this.#base.find(key);
    return query && (this.#overlay.get(query) ?? this.#base.result(key));
  }

  /** Adds a layer. Returns the keys of queries whose shown result changed. Rethrows errors of the update. */
  add(requestId: number, update: OptimisticUpdate): Set<string> {
    // Try it on a copy first, so that an update that throws has no effect.
    const overlay = new Map(this.#overlay);
    update(this.#store(overlay));
    this.#layers.set(requestId, update);
    return this.#show(overlay);
  }

  /**
   * Removes layers and replays the rest over the server's newest results. Returns the keys of queries whose layer result changed.
   */
  replay(dropped: Iterable<number>): Set<string> {
    for (const requestId of dropped) this.#layers.delete(requestId);
    if (this.#layers.size === 0 && this.#overlay.size === 0) return new Set();
    let overlay: Overlay = new Map();
    for (const [requestId, update] of this.#layers) {
      const next = new Map(overlay);
      try {
        update(this.#store(next));
        overlay = next;
      } catch (error) {
        this.#layers.delete(requestId);
        reportUnhandled(error);
      }
    }
    return this.#show(overlay);
  }

  #show(overlay: Overlay): Set<string> {
    const before = this.#overlay;
    this.#overlay = overlay;
    const changed = new Set<string>();
    for (const query of new Set([...before.keys(), ...overlay.keys()])) {
      const old = before.get(query);
      const shown = overlay.get(query);
      if (old?.ok && shown?.ok) {
        const value = shareStructure(old.value, shown.value);
        freezeDeep(value);
        if (Object.is(value, old.value)) {
          overlay.set(query, old);
          continue;
        }
        overlay.set(query, { ok: true, value });
      }
      changed.add(query.key);
    }
    return changed;
  }

  #store(overlay: Overlay): OptimisticStore {
    const base = this.#base;
    const value = (query: LiveQuery | undefined): unknown => {
      const result = query && (overlay.get(query) ?? base.result(query.key));
      return result?.ok ? result.value : undefined;
    };
    const find = (name: FunctionName, args: unknown) =>
      base.find(queryKey(functionPath(name), jsonArgs(args)));
    return {
      getQuery: <Name extends FunctionName>(name: Name, args: ArgsOf<Name> | PassedArgs<Name>) =>
        value(find(name, args)) as ResultOf<Name> | undefined,
      setQuery: (name, args, next) => {
        const query = find(name, args);
        // Ignore queries that are not live or still loading, which have nothing to restore if the mutation fails.
        if (query === undefined || base.result(query.key) === undefined) return;
        freezeDeep(next);
        overlay.set(query, { ok: true, value: next });
      },
      getAllQueries: <Name extends FunctionName>(name: Name) => {
        const udfPath = functionPath(name);
        const queries: { args: ArgsOf<Name>; value: ResultOf<Name> }[] = [];
        for (const query of base.live()) {
          const shown = query.udfPath === udfPath ? value(query) : undefined;
          if (shown !== undefined) {
            queries.push({ args: query.args as JsonObject & ArgsOf<Name>, value: shown as ResultOf<Name> });
          }
        }
        return queries;
      },
    };
  }
}
