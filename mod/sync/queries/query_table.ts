/**
 * All shared queries by key. Those nobody wants at the moment but whose result still holds are kept, the longest unused
 * leaving first, to answer one-shot calls and new subscriptions without a run.
 */
import type { AuthScope, Identity } from "../../functions/identity.ts";
import { sharedQueryLimits } from "../limits.ts";
import { readsUnknown } from "./invalidation.ts";
import { scopeKey, scopes } from "./scope.ts";
import { type QuerySpec, SharedQuery } from "./shared_query.ts";

/** What an interval of a kept read set counts, in characters. */
const INTERVAL_CHARS = 64;

export class QueryTable {
  readonly #byKey = new Map<string, SharedQuery>();
  /** Kept queries, the longest unused first. */
  readonly #cached = new Set<SharedQuery>();
  /** Scope of the last run of each function: the best guess for arguments that never ran. Only real functions enter. */
  readonly #lastScopes = new Map<string, AuthScope>();
  /** How many queries each scope has: most apps do without some, which then need not be looked for. */
  readonly #counts = new Map<AuthScope, number>();
  readonly #onDrop: (query: SharedQuery) => void;
  readonly #firstScope: (udfPath: string) => AuthScope;
  #cachedChars = 0;

  /** `onDrop` is told of each query that leaves the table; `firstScope` is the scope of functions that never ran. */
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

  /** The shared query whose results a caller may see, made if there is none. */
  homeOf(spec: QuerySpec, identity: Identity): SharedQuery {
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
    return this.at(spec, { scope, identity }).query;
  }

  /** The shared query of one scope for a caller, made if there is none. */
  at(
    spec: QuerySpec,
    home: { readonly scope: AuthScope; readonly identity: Identity },
  ): { readonly query: SharedQuery; readonly created: boolean } {
    const key = keyOf(specKeyOf(spec), home);
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      this.#uncache(known);
      return { query: known, created: false };
    }
    const query = new SharedQuery(key, { spec, ...home });
    this.#byKey.set(key, query);
    this.#counts.set(home.scope, (this.#counts.get(home.scope) ?? 0) + 1);
    return { query, created: true };
  }

  /** Remembers what the last run of a function read of the auth context. */
  learnScope(udfPath: string, scope: AuthScope): void {
    this.#lastScopes.set(udfPath, scope);
  }

  forgetScopes(): void {
    this.#lastScopes.clear();
  }

  /** Keeps a query nobody wants when its result can answer a call, or drops it. */
  release(query: SharedQuery): void {
    if (query.wanted || query.run !== null) return;
    const outcome = query.newest?.outcome;
    // What the service asks for itself (a session, a file) it remembers itself: here it would only push the app's out.
    const keepable = query.current && !query.nondeterministic && query.spec.origin !== "system" &&
      query.readSet !== null && !readsUnknown(query.readSet);
    if (outcome === undefined || !keepable) {
      this.drop(query);
      return;
    }
    this.#uncache(query);
    let intervals = 0;
    for (const list of Object.values(query.readSet ?? {})) intervals += list.length;
    query.cacheChars = query.key.length + INTERVAL_CHARS * (1 + intervals) +
      (outcome.ok ? outcome.value.length : outcome.error.message.length);
    this.#cachedChars += query.cacheChars;
    this.#cached.add(query);
    for (const oldest of this.#cached) {
      if (
        this.#cached.size <= sharedQueryLimits.cachedQueriesMax &&
        this.#cachedChars <= sharedQueryLimits.cachedCharsMax
      ) break;
      this.drop(oldest);
    }
  }

  drop(query: SharedQuery): void {
    this.#uncache(query);
    if (this.#byKey.get(query.key) !== query) return;
    this.#byKey.delete(query.key);
    this.#counts.set(query.scope, (this.#counts.get(query.scope) ?? 0) - 1);
    this.#onDrop(query);
  }

  #uncache(query: SharedQuery): void {
    if (!this.#cached.delete(query)) return;
    this.#cachedChars -= query.cacheChars;
    query.cacheChars = 0;
  }
}

function specKeyOf({ origin, udfPath, canonicalArgs }: QuerySpec): string {
  // The path is a client's text: written as JSON it cannot run into what follows.
  return `${origin}\n${JSON.stringify(udfPath)}\n${canonicalArgs}`;
}

function keyOf(
  specKey: string,
  { scope, identity }: { readonly scope: AuthScope; readonly identity: Identity },
): string {
  return `${specKey}\n${scope}\n${scopeKey(scope, identity)}`;
}
