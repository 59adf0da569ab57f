/** A shared query: a function, arguments and callers. Its versions are outcomes with the ts interval of validity. */
import type { ReadSet } from "../../engine/types.ts";
import type { CallTrace } from "../../functions/call_trace.ts";
import type { Caller, CallOrigin } from "../../functions/host_port.ts";
import type { AuthScope, Identity } from "../../functions/identity.ts";
import { type Outcome, publicError } from "../../functions/outcome.ts";
import { commonPrefixLength, commonSuffixLength } from "../../kit/common_ends.ts";
import { canonicalJson } from "../../protocol/canonical_json.ts";
import { deepEqual } from "../../protocol/deep_equal.ts";
import { sharedQueryLimits } from "../limits.ts";

/** Memoizes a value for each pair of outcomes, for as long as both are alive. Shared by all sockets. */
export class PairMemo<Found extends string | boolean | null> {
  readonly #found = new WeakMap<Outcome, WeakMap<Outcome, Found>>();

  /** Returns the value for the pair, computing it on first use. */
  get(a: Outcome, b: Outcome, find: () => Found): Found {
    let others = this.#found.get(a);
    if (others === undefined) this.#found.set(a, others = new WeakMap());
    let found = others.get(b);
    if (found === undefined) others.set(b, found = find());
    return found;
  }
}

type Success = Extract<Outcome, { readonly ok: true }>;

/** Whether a client would see the same value or error. Ignores log lines. */
export function sameOutcome(a: Outcome, b: Outcome, options: { readonly dev: boolean }): boolean {
  if (a === b) return true;
  if (a.ok || b.ok) return a.ok && b.ok && sameValue(a, b);
  const left = publicError(a.error, options);
  const right = publicError(b.error, options);
  return left.errorMessage === right.errorMessage &&
    canonicalJson(left.errorData) === canonicalJson(right.errorData);
}

/** Cached comparisons of texts that may differ only in key order. */
const verdicts = new PairMemo<boolean>();

function sameValue(a: Success, b: Success): boolean {
  if (a.value === b.value) return true;
  if (a.value.length !== b.value.length || a.value.length > sharedQueryLimits.diffedCharsMax) return false;
  return verdicts.get(a, b, () => sameButForOrder(a.value, b.value));
}

/** Whether two texts of equal length encode equal values. */
function sameButForOrder(a: string, b: string): boolean {
  const { length } = a;
  const head = commonPrefixLength(a, { other: b, most: length });
  const end = length - commonSuffixLength(a, { other: b, most: length - head });
  return charSum(a.slice(head, end)) === charSum(b.slice(head, end)) &&
    deepEqual(JSON.parse(a), JSON.parse(b));
}

/** Checksum that ignores character order. Distinguishes most texts without parsing. */
function charSum(text: string): number {
  let sum = 0;
  for (let i = 0; i < text.length; i++) sum += text.charCodeAt(i);
  return sum;
}

/** Scopes, widest first. */
export const scopes = ["nothing", "principal", "session"] as const satisfies readonly AuthScope[];

/** The part of the identity that a scope depends on. Callers with equal keys share results. */
export function scopeKey(scope: AuthScope, identity: Identity): string {
  switch (scope) {
    case "nothing":
      return "";
    case "principal":
      return identity.principal ?? "";
    case "session":
      return sessionKey(identity);
    default:
      return scope satisfies never;
  }
}

/** External tokens have no session, so their claims identify the caller. */
function sessionKey(identity: Identity): string {
  const principal = identity.principal ?? "";
  if (identity.sessionId !== null) return `${principal}\n${identity.sessionId}`;
  return identity.claims === undefined ? principal : `${principal}\n\n${canonicalJson(identity.claims)}`;
}

/** Blocked callers that are skipped when choosing the identity of a run. */
const BLOCKED_CALLERS_MAX = 64;
/** Subscribers and waiting calls checked for that. Many may belong to the same blocked caller. */
const CANDIDATES_MAX = 16_384;

/** An outcome and the commits at which it is valid, both ends included. */
export interface Version {
  readonly from: number;
  /** `Infinity` until a commit invalidates it. Then it is valid up to the newest commit known here. */
  through: number;
  readonly outcome: Outcome;
}

export interface Subscriber {
  /** The identity that results are filtered for. Changing it reassigns `shared`. */
  readonly identity: Identity;
  /** The subscribed query. Reassigned when the query's scope changes. */
  shared: SharedQuery | null;
  /** The socket that displays this subscription. */
  readonly view: View;
}

/** A socket: displays several queries at one ts. */
export interface View {
  /** Called when a result arrived or a subscription was reassigned. */
  needsAdvance(): void;
  /** Identity of its results, and the caller that queries are attributed to. */
  readonly identity: Identity;
  readonly caller: Caller;
  readonly subscribers: Iterable<Subscriber>;
}

/** A one-shot call that waits for a result. */
export interface Waiter {
  readonly identity: Identity;
  /** Absent for system calls. */
  readonly caller?: Caller;
  /** The newest commit at the time of the call. Older results do not answer it. */
  readonly ts: number;
  /** Runs with a higher number started after the call. */
  readonly arrival: number;
  /** Request id of the call. */
  readonly request: number | undefined;
  readonly trace?: CallTrace;
  readonly resolve: (outcome: Outcome) => void;
}

export interface Run {
  readonly identity: Identity;
  readonly caller?: Caller;
  /** Id of the request that started it. A run for subscribers has its own. */
  readonly request: number | undefined;
  /** Trace of that request. */
  readonly trace?: CallTrace;
  /** Increases with each run of the server. */
  readonly number: number;
  readonly batch: RefreshBatch;
  /** Whether a commit after the snapshot touched the previous read set. The answer is then likely short-lived. */
  touched: boolean;
  /** Whether the code was replaced in the meantime. The answer is then discarded. */
  obsolete: boolean;
}

export interface RefreshBatch {
  /** `null` until every reader has opened the snapshot. */
  snapshot: number | null;
  /** The newest commit when the batch started. The snapshot is at least this new. */
  readonly startedAt: number;
}

/** A query without the callers it is shared by. */
export interface QuerySpec {
  readonly udfPath: string;
  readonly args: Record<string, unknown>;
  readonly canonicalArgs: string;
  readonly origin: CallOrigin;
}

export class SharedQuery {
  readonly key: string;
  readonly spec: QuerySpec;
  readonly scope: AuthScope;
  readonly identity: Identity;
  readonly subscribers = new Set<Subscriber>();
  waiters: Waiter[] = [];
  /** Ascending, not overlapping. The last one is the newest. */
  readonly versions: Version[] = [];
  /** Read set of the newest version, as registered in the index. `null` before the first answer. */
  readSet: ReadSet | null = null;
  run: Run | null = null;
  /** Duration of the last run. */
  durationMs = 0;
  /** Whether the last run read the clock or the random generator. */
  nondeterministic = false;
  /** Its cost in the cache of unused queries. 0 when not cached. */
  cacheChars = 0;

  constructor(key: string, { spec, scope, identity }: {
    readonly spec: QuerySpec;
    readonly scope: AuthScope;
    readonly identity: Identity;
  }) {
    this.key = key;
    this.spec = spec;
    this.scope = scope;
    this.identity = identity;
  }

  get newest(): Version | undefined {
    return this.versions[this.versions.length - 1];
  }

  /** Whether the newest result is valid at the newest commit. */
  get current(): boolean {
    return this.newest?.through === Infinity;
  }

  /** Whether it has subscribers or waiting calls. */
  get inUse(): boolean {
    return this.subscribers.size > 0 || this.waiters.length > 0;
  }

  /** Subscribers, then waiting calls: identities that a run may use. */
  *callers(): Generator<Pick<Run, "identity" | "caller">> {
    for (const { identity, view: { caller } } of this.subscribers) yield { identity, caller };
    for (const { identity, caller } of this.waiters) yield { identity, ...(caller && { caller }) };
  }

  /** Returns a caller that is not blocked from the function, if one is found early enough. */
  runIdentity(isBlocked: (caller: Caller) => boolean): Pick<Run, "identity" | "caller"> {
    let first: Pick<Run, "identity" | "caller"> | null = null;
    const refused = new Set<string>();
    let left = CANDIDATES_MAX;
    for (const candidate of this.callers()) {
      first ??= candidate;
      if (left-- === 0 || refused.size === BLOCKED_CALLERS_MAX) break;
      const { caller } = candidate;
      if (caller === undefined) return candidate;
      if (refused.has(caller.blame)) continue;
      if (!isBlocked(caller)) return candidate;
      refused.add(caller.blame);
    }
    return first ?? { identity: this.identity };
  }

  /** Requests an advance of every subscribed socket. */
  notifyViews(): void {
    for (const { view } of this.subscribers) view.needsAdvance();
  }

  /** Returns the version with the highest `from` up to `ts`. It may end before `ts`. */
  versionUpTo(ts: number): Version | undefined {
    for (let i = this.versions.length - 1; i >= 0; i--) {
      const version = this.versions[i];
      if (version !== undefined && version.from <= ts) return version;
    }
    return undefined;
  }

  holdsAt(ts: number): boolean {
    return (this.versionUpTo(ts)?.through ?? -1) >= ts;
  }

  /** Ends the newest version before `ts`, because that commit changed something it read. */
  close(ts: number): void {
    const newest = this.newest;
    if (newest !== undefined && newest.through === Infinity && newest.from < ts) newest.through = ts - 1;
    if (this.run !== null && ts > (this.run.batch.snapshot ?? ts)) this.run.touched = true;
  }

  /** Adds a version, truncated before the next newer one. Returns whether it is now the newest. */
  insert(version: Version): boolean {
    const newest = this.newest;
    if (newest === undefined || version.from > newest.from) {
      if (newest !== undefined && newest.through >= version.from) newest.through = version.from - 1;
      this.versions.push(version);
      return true;
    }
    const index = this.versions.findIndex((other) => other.from >= version.from);
    const next = this.versions[index];
    const previous = this.versions[index - 1];
    if (next === undefined || next.from === version.from || (previous?.through ?? -1) >= version.from) {
      return false;
    }
    version.through = Math.min(version.through, next.from - 1);
    this.versions.splice(index, 0, version);
    return false;
  }

  /** Drops versions that are neither the newest nor valid at the snapshot of a batch in flight. */
  prune(batches: Iterable<RefreshBatch>): void {
    if (this.versions.length <= 1) return;
    const needed = [...batches];
    const newest = this.newest;
    const remaining = this.versions.filter((version) =>
      version === newest ||
      needed.some((batch) =>
        batch.snapshot === null
          ? version.through >= batch.startedAt
          : version.from <= batch.snapshot && version.through >= batch.snapshot
      )
    );
    if (remaining.length < this.versions.length) this.versions.splice(0, this.versions.length, ...remaining);
  }

  /** Throws if the state is inconsistent. For tests. */
  validate(): void {
    for (const subscriber of this.subscribers) {
      if (subscriber.shared !== this) throw new Error(`A subscriber of ${this.key} shows another query`);
      if (scopeKey(this.scope, subscriber.identity) !== scopeKey(this.scope, this.identity)) {
        throw new Error(`A subscriber of ${this.key} may not see its results`);
      }
    }
    for (const [i, { from, through }] of this.versions.entries()) {
      const next = this.versions[i + 1];
      if (through < from || (next !== undefined && through >= next.from)) {
        throw new Error(`The versions of ${this.key} overlap`);
      }
    }
  }
}
