/** All shared queries by key; unused ones with a valid result stay in an LRU cache. */
import { LRUCache } from "lru-cache";
import type { QueryAnswer } from "../../functions/host_port.ts";
import type { AuthScope, Identity } from "../../functions/identity.ts";
import { sharedQueryLimits } from "../limits.ts";
import { readsUnknown } from "./invalidation.ts";
import { type QuerySpec, scopeKey, scopes, SharedQuery } from "./shared_query.ts";

/** Cache cost of one interval of a read set, in characters. */
const INTERVAL_CHARS = 64;
/** Characters of the keys of dropped results that are remembered. */
const DROPPED_CHARS_MAX = 1024 * 1024;

export class QueryTable {
  readonly #byKey = new Map<string, SharedQuery>();
  readonly #cached: LRUCache<SharedQuery, true>;
  /** Keys of results that did not enter the full cache. Bounded by `DROPPED_CHARS_MAX`. */
  readonly #dropped = new Set<string>();
  #droppedChars = 0;
  /** Scope of each function's last run: the initial scope for new arguments. Registered functions only. */
  readonly #lastScopes = new Map<string, AuthScope>();
  /** Number of queries per scope. Lookups skip scopes without queries. */
  readonly #counts = new Map<AuthScope, number>();
  readonly #onDrop: (query: SharedQuery) => void;
  readonly #firstScope: (udfPath: string) => AuthScope;

  /** `onDrop` is called when a query leaves the table. `firstScope` returns the scope for functions that never ran. */
  constructor(
    { cachedCharsMax, onDrop, firstScope }: {
      readonly cachedCharsMax: number;
      readonly onDrop: (query: SharedQuery) => void;
      readonly firstScope: (udfPath: string) => AuthScope;
    },
  ) {
    this.#cached = new LRUCache({
      max: sharedQueryLimits.cachedQueriesMax,
      maxSize: cachedCharsMax,
      disposeAfter: (_, query, reason) => reason === "evict" && this.drop(query),
    });
    this.#onDrop = onDrop;
    this.#firstScope = firstScope;
  }

  get size(): number {
    return this.#byKey.size;
  }

  values(): Iterable<SharedQuery> {
    return this.#byKey.values();
  }

  /**
   * Returns the shared query whose results the caller may see. Creates it if necessary. It may be a cached one: the caller
   * calls `use` before it adds a subscriber or a waiting call.
   */
  findOrCreate(spec: QuerySpec, identity: Identity): SharedQuery {
    let known: SharedQuery | undefined;
    const specKey = specKeyOf(spec);
    for (const scope of scopes) {
      if (!this.#counts.get(scope)) continue;
      const query = this.#byKey.get(keyOf(specKey, { scope, identity }));
      if (query !== undefined && (known === undefined || (query.current && !known.current))) known = query;
    }
    if (known !== undefined) return known;
    const scope = this.#lastScopes.get(spec.udfPath) ?? this.#firstScope(spec.udfPath);
    return this.findOrCreateInScope(spec, { scope, identity }).query;
  }

  /** Returns the shared query of a scope for a caller. Creates it if necessary. */
  findOrCreateInScope(
    spec: QuerySpec,
    owner: { readonly scope: AuthScope; readonly identity: Identity },
  ): { readonly query: SharedQuery; readonly created: boolean } {
    const key = keyOf(specKeyOf(spec), owner);
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      this.use(known);
      return { query: known, created: false };
    }
    const query = new SharedQuery(key, { spec, ...owner });
    this.#byKey.set(key, query);
    this.#counts.set(owner.scope, (this.#counts.get(owner.scope) ?? 0) + 1);
    return { query, created: true };
  }

  /** Records the scope of a function's last run. */
  learnScope(udfPath: string, scope: AuthScope): void {
    this.#lastScopes.set(udfPath, scope);
  }

  forgetScopes(): void {
    this.#lastScopes.clear();
  }

  /** Caches an unused query if its result can answer calls. Drops it otherwise. */
  release(query: SharedQuery): void {
    if (query.inUse || query.run !== null) return;
    this.use(query);
    const { newest, readSet, nondeterministic } = query;
    if (
      newest === undefined || readSet === null || !query.current ||
      !isReusable(query, { readSet, nondeterministic })
    ) return this.drop(query);
    query.cacheChars = cacheCost(query, { outcome: newest.outcome, readSet });
    this.#cached.set(query, true, { size: query.cacheChars });
    // It is larger than the whole cache.
    if (!this.#cached.has(query)) this.drop(query);
  }

  /**
   * Whether the result of a one-shot call is worth caching. While the cache is full, it replaces another result only when the
   * call is repeated: most calls are not, and caching each would cost more than it saves.
   */
  isWorthCaching(
    query: SharedQuery,
    answer: Pick<QueryAnswer, "outcome" | "readSet" | "nondeterministic">,
  ): boolean {
    if (!isReusable(query, answer)) return false;
    const chars = this.#cached.calculatedSize + cacheCost(query, answer);
    const { cachedQueriesMax } = sharedQueryLimits;
    if (this.#cached.size < cachedQueriesMax && chars <= this.#cached.maxSize) return true;
    if (this.#dropped.has(query.key)) return true;
    if (this.#droppedChars > DROPPED_CHARS_MAX) {
      this.#dropped.clear();
      this.#droppedChars = 0;
    }
    this.#dropped.add(query.key);
    this.#droppedChars += query.key.length;
    return false;
  }

  drop(query: SharedQuery): void {
    this.use(query);
    if (this.#byKey.get(query.key) !== query) return;
    this.#byKey.delete(query.key);
    this.#counts.set(query.scope, (this.#counts.get(query.scope) ?? 0) - 1);
    this.#onDrop(query);
  }

  /** Takes a query out of the cache, so that it cannot be evicted. */
  use(query: SharedQuery): void {
    if (query.cacheChars === 0) return;
    this.#cached.delete(query);
    query.cacheChars = 0;
  }

  /** Records that a cached result was used. */
  touch(query: SharedQuery): void {
    if (query.cacheChars > 0) this.#cached.get(query);
  }
}

/** Whether a result can answer later calls. System code caches its own results: here they would only evict the app's. */
function isReusable(
  { spec: { origin } }: SharedQuery,
  { readSet, nondeterministic }: Pick<QueryAnswer, "readSet" | "nondeterministic">,
): boolean {
  return !nondeterministic && origin !== "system" && !readsUnknown(readSet);
}

/** Size of a cached result in characters. */
function cacheCost(
  { key }: SharedQuery,
  { outcome, readSet }: Pick<QueryAnswer, "outcome" | "readSet">,
): number {
  let intervals = 0;
  for (const list of Object.values(readSet)) intervals += list.length;
  return key.length + INTERVAL_CHARS * (1 + intervals) +
    (outcome.ok ? outcome.value.length : outcome.error.message.length);
}

function specKeyOf({ origin, udfPath, canonicalArgs }: QuerySpec): string {
  // The path comes from a client. JSON encoding keeps it separate from what follows.
  return `${origin}\n${JSON.stringify(udfPath)}\n${canonicalArgs}`;
}

function keyOf(
  specKey: string,
  { scope, identity }: { readonly scope: AuthScope; readonly identity: Identity },
): string {
  return `${specKey}\n${scope}\n${scopeKey(scope, identity)}`;
}
