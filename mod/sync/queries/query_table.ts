/** All shared queries by key; unused ones with a valid result stay in an LRU cache. */
import { LRUCache } from "lru-cache";
import type { AuthScope, Identity } from "../../functions/identity.ts";
import { sharedQueryLimits } from "../limits.ts";
import { readsUnknown } from "./invalidation.ts";
import { type QuerySpec, scopeKey, scopes, SharedQuery } from "./shared_query.ts";

/** Cache cost of one interval of a read set, in characters. */
const INTERVAL_CHARS = 64;

export class QueryTable {
  readonly #byKey = new Map<string, SharedQuery>();
  readonly #cached = new LRUCache<SharedQuery, true>({
    max: sharedQueryLimits.cachedQueriesMax,
    maxSize: sharedQueryLimits.cachedCharsMax,
    disposeAfter: (_, query, reason) => reason === "evict" && this.drop(query),
  });
  /** Scope of each function's last run: the initial scope for new arguments. Registered functions only. */
  readonly #lastScopes = new Map<string, AuthScope>();
  /** Number of queries per scope. Lookups skip scopes without queries. */
  readonly #counts = new Map<AuthScope, number>();
  readonly #onDrop: (query: SharedQuery) => void;
  readonly #firstScope: (udfPath: string) => AuthScope;

  /** `onDrop` is called when a query leaves the table. `firstScope` returns the scope for functions that never ran. */
  constructor(
    { onDrop, firstScope }: {
      readonly onDrop: (query: SharedQuery) => void;
      readonly firstScope: (udfPath: string) => AuthScope;
    },
  ) {
    this.#onDrop = onDrop;
    this.#firstScope = firstScope;
  }

  get size(): number {
    return this.#byKey.size;
  }

  values(): Iterable<SharedQuery> {
    return this.#byKey.values();
  }

  /** Returns the shared query whose results the caller may see. Creates it if necessary. */
  findOrCreate(spec: QuerySpec, identity: Identity): SharedQuery {
    let known: SharedQuery | undefined;
    const specKey = specKeyOf(spec);
    for (const scope of scopes) {
      if (!this.#counts.get(scope)) continue;
      const query = this.#byKey.get(keyOf(specKey, { scope, identity }));
      if (query !== undefined && (known === undefined || (query.current && !known.current))) known = query;
    }
    if (known !== undefined) {
      this.#uncache(known);
      return known;
    }
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
      this.#uncache(known);
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
    const outcome = query.newest?.outcome;
    // System code caches its own results. Caching them here would only evict the app's.
    const cacheable = query.current && !query.nondeterministic && query.spec.origin !== "system" &&
      query.readSet !== null && !readsUnknown(query.readSet);
    if (outcome === undefined || !cacheable) {
      this.drop(query);
      return;
    }
    this.#uncache(query);
    let intervals = 0;
    for (const list of Object.values(query.readSet ?? {})) intervals += list.length;
    query.cacheChars = query.key.length + INTERVAL_CHARS * (1 + intervals) +
      (outcome.ok ? outcome.value.length : outcome.error.message.length);
    this.#cached.set(query, true, { size: query.cacheChars });
    // It is larger than the whole cache.
    if (!this.#cached.has(query)) this.drop(query);
  }

  drop(query: SharedQuery): void {
    this.#uncache(query);
    if (this.#byKey.get(query.key) !== query) return;
    this.#byKey.delete(query.key);
    this.#counts.set(query.scope, (this.#counts.get(query.scope) ?? 0) - 1);
    this.#onDrop(query);
  }

  #uncache(query: SharedQuery): void {
    this.#cached.delete(query);
    query.cacheChars = 0;
  }
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
