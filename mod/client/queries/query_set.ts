/**
 * The client's subscribed queries and their newest results. Equal queries (same path and canonical arguments) share one
 * queryId; ids are never reused. Pure: changes are returned as modifications to send.
 */
import { applyDiff } from "../../protocol/apply_diff.ts";
import { canonicalJson } from "../../protocol/canonical_json.ts";
import type { QuerySetModification } from "../../protocol/client_messages.ts";
import type { QueryFailed, QueryUpdated, Transition } from "../../protocol/server_messages.ts";
import { FunctionError } from "../errors.ts";
import { freezeDeep } from "./freeze_deep.ts";
import type { JsonObject } from "../json_args.ts";
import * as clientLimits from "../limits.ts";
import { shareStructure } from "./share_structure.ts";

/** Result of a query. The object is only replaced if something in it changed. */
export type QueryResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: FunctionError };

export interface LiveQuery {
  readonly queryId: number;
  /** Query key: path and canonical arguments. */
  readonly key: string;
  readonly udfPath: string;
  readonly args: JsonObject;
}

interface QueryState extends LiveQuery {
  /** Number of users. At 0 the query is removed with the next modifications, unless it is used again before. */
  users: number;
  /** Whether it was added on the current socket. */
  sent: boolean;
  /** Newest result without optimistic updates; kept across reconnects. */
  result: QueryResult | undefined;
  /** Whether `result` came over the current socket and can be the base of a diff. */
  fresh: boolean;
}

/** Results of a Transition that are not applied yet. */
export type StagedResults = ReadonlyMap<LiveQuery, QueryResult>;

/** Identity of a query. */
export function queryKey(udfPath: string, args: JsonObject): string {
  return `${udfPath} ${canonicalJson(args)}`;
}

export class QuerySet {
  readonly #byKey = new Map<string, QueryState>();
  readonly #byId = new Map<number, QueryState>();
  /** Queries to add or remove on the server. */
  readonly #unsettled = new Set<QueryState>();
  #nextId = 0;
  #usedCount = 0;

  /** All queries in use. */
  *live(): Iterable<LiveQuery> {
    for (const query of this.#byKey.values()) if (query.users > 0) yield query;
  }

  find(key: string): LiveQuery | undefined {
    return this.#byKey.get(key);
  }

  /** Returns the function path of a queryId. */
  pathOf(queryId: number): string | undefined {
    return this.#byId.get(queryId)?.udfPath;
  }

  /** Returns the newest result without optimistic updates. */
  result(key: string): QueryResult | undefined {
    return this.#byKey.get(key)?.result;
  }

  /** Returns the result of a query if it came over the current socket. */
  freshResult(key: string): QueryResult | undefined {
    const query = this.#byKey.get(key);
    return query?.fresh ? query.result : undefined;
  }

  /** Adds a user of a query. Throws `RangeError` for too many different queries. */
  use(udfPath: string, args: JsonObject): LiveQuery {
    const key = queryKey(udfPath, args);
    const known = this.#byKey.get(key);
    if (known === undefined || known.users === 0) {
      if (this.#usedCount === clientLimits.liveQueriesMax) {
        throw new RangeError(
          `Cannot subscribe to more than ${clientLimits.liveQueriesMax} different queries`,
        );
      }
      this.#usedCount++;
    }
    const query = known ?? this.#create(key, { udfPath, args });
    query.users++;
    return query;
  }

  /** Removes a user of a query. */
  release(key: string): void {
    const query = this.#byKey.get(key);
    if (query === undefined || query.users === 0) return;
    query.users--;
    if (query.users > 0) return;
    this.#usedCount--;
    this.#unsettled.add(query);
  }

  /** Returns the modifications since the last call; removals first, to make room. */
  takeModifications(): QuerySetModification[] {
    const removals: QuerySetModification[] = [];
    const additions: QuerySetModification[] = [];
    for (const query of this.#unsettled) {
      const { queryId, udfPath, args } = query;
      if (query.users === 0) {
        this.#byKey.delete(query.key);
        this.#byId.delete(queryId);
        if (query.sent) removals.push({ type: "Remove", queryId });
      } else if (!query.sent) {
        query.sent = true;
        additions.push({ type: "Add", queryId, udfPath, args });
      }
    }
    this.#unsettled.clear();
    return [...removals, ...additions];
  }

  /** Drops unused queries while there is no socket. */
  forgetReleased(): void {
    for (const query of this.#unsettled) {
      if (query.users > 0 || query.sent) continue;
      this.#unsettled.delete(query);
      this.#byKey.delete(query.key);
      this.#byId.delete(query.queryId);
    }
  }

  /** The socket is gone: no query is added on the server any more. */
  connectionLost(): void {
    for (const query of this.#byKey.values()) {
      query.sent = false;
      query.fresh = false;
      this.#unsettled.add(query);
    }
  }

  /**
   * Computes the results of a Transition without applying them. Throws if a diff does not apply. Ignores queries that are not
   * live.
   */
  stage(transition: Transition): StagedResults {
    const staged = new Map<LiveQuery, QueryResult>();
    for (const modification of transition.modifications) {
      switch (modification.type) {
        case "QueryUpdated":
        case "QueryFailed": {
          const query = this.#byId.get(modification.queryId);
          if (query === undefined) break;
          const base = staged.get(query) ?? (query.fresh ? query.result : undefined);
          staged.set(query, nextResult(query, { base, modification }));
          break;
        }
        case "QueryRemoved":
          break;
        default:
          modification satisfies never;
      }
    }
    return staged;
  }

  /** Applies staged results. Returns the keys of queries whose result changed. */
  apply(staged: StagedResults): Set<string> {
    const changed = new Set<string>();
    for (const [{ queryId }, result] of staged) {
      const query = this.#byId.get(queryId);
      if (query === undefined) continue;
      query.fresh = true;
      if (query.result === result) continue;
      query.result = result;
      changed.add(query.key);
    }
    return changed;
  }

  /**
   * Applies results from HTTP, which cannot be the base of diffs. Ignores queries with a newer result from a socket. Returns the
   * keys of queries whose result changed.
   */
  applyPolled(results: ReadonlyMap<LiveQuery, QueryResult>): Set<string> {
    const changed = new Set<string>();
    for (const [{ queryId }, result] of results) {
      const query = this.#byId.get(queryId);
      if (query === undefined || query.fresh) continue;
      const next = result.ok ? sharedResult(query.result, result.value) : result;
      if (query.result === next || sameFailure(query.result, next)) continue;
      query.result = next;
      changed.add(query.key);
    }
    return changed;
  }

  #create(key: string, { udfPath, args }: { udfPath: string; args: JsonObject }): QueryState {
    const query: QueryState = {
      queryId: this.#nextId++,
      key,
      udfPath,
      args,
      users: 0,
      sent: false,
      result: undefined,
      fresh: false,
    };
    this.#byKey.set(key, query);
    this.#byId.set(query.queryId, query);
    this.#unsettled.add(query);
    return query;
  }
}

interface Change {
  /** The result that the server assumes the client has; `undefined` if none. */
  readonly base: QueryResult | undefined;
  readonly modification: QueryUpdated | QueryFailed;
}

function nextResult(query: QueryState, { base, modification }: Change): QueryResult {
  if (modification.type === "QueryFailed") {
    const { udfPath } = query;
    return { ok: false, error: new FunctionError(modification.errorMessage, { ...modification, udfPath }) };
  }
  const shown = base ?? query.result;
  if (modification.diff === undefined) {
    if (!Object.hasOwn(modification, "value")) throw new TypeError("QueryUpdated has neither value nor diff");
    return sharedResult(shown, modification.value);
  }
  if (base === undefined || !base.ok) throw new TypeError("Diff of a query that has no result");
  return resultOf(shown, applyDiff(base.value, modification.diff));
}

/** Returns a new value that shares unchanged parts. */
function sharedResult(shown: QueryResult | undefined, value: unknown): QueryResult {
  return resultOf(shown, shareStructure(shown?.ok ? shown.value : undefined, value));
}

/** Returns a read-only result; the existing one if the value is equal. */
function resultOf(shown: QueryResult | undefined, value: unknown): QueryResult {
  freezeDeep(value);
  return shown?.ok && Object.is(shown.value, value) ? shown : { ok: true, value };
}

/** Whether a query fails with the same error as before. */
function sameFailure(before: QueryResult | undefined, next: QueryResult): boolean {
  if (before === undefined || before.ok || next.ok) return false;
  const [{ message, code, data }, error] = [before.error, next.error];
  return message === error.message && code === error.code && shareStructure(data, error.data) === data;
}
