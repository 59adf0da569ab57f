/**
 * One shared query: a function, its arguments, and the callers its result is the same for. Its results are versions: an
 * outcome and the ts over which it is known to hold.
 */
import type { ReadSet } from "../../engine/types.ts";
import type { Caller, CallOrigin } from "../../functions/host_port.ts";
import type { AuthScope, Identity } from "../../functions/identity.ts";
import type { Outcome } from "../../functions/outcome.ts";
import { scopeKey } from "./scope.ts";

/** An outcome and the commits over which it holds, both ends included. */
export interface Version {
  readonly from: number;
  /** `Infinity` while no commit is known to have touched it: then it holds up to the newest commit main knows. */
  through: number;
  readonly outcome: Outcome;
}

/** Whoever shows the results of a shared query to a client. */
export interface Subscriber {
  /** Whose results it may see. Changes with the socket's identity; `shared` changes with it. */
  readonly identity: Identity;
  /** The shared query it subscribes to. Changed by the registry when the scope of the query changes. */
  shared: SharedQuery | null;
  /** The socket: what shows several queries at one ts. */
  readonly view: View;
}

/** What shows several queries at one ts. */
export interface View {
  /** A result came, or a query has moved to another shared query. */
  touch(): void;
  /** Who stands in line for the queries it shows. */
  readonly caller: Caller;
  readonly subscribers: Iterable<Subscriber>;
}

/** A one-shot caller that waits for a result. */
export interface Waiter {
  readonly identity: Identity;
  /** Absent for the service itself. */
  readonly caller?: Caller;
  /** The newest commit when the call came: an older result is no answer. */
  readonly ts: number;
  /** Runs with a higher number were started after the call came. */
  readonly arrival: number;
  /** Number of the request that asks. */
  readonly request: number | undefined;
  readonly resolve: (outcome: Outcome) => void;
}

/** A run under way. */
export interface Run {
  readonly identity: Identity;
  readonly caller?: Caller;
  /** Number of the request that asked for it; of its own when it is made for subscribers. */
  readonly request: number | undefined;
  /** Rises with every run of the server. */
  readonly number: number;
  readonly wave: WaveRecord;
  /** Whether a commit above the snapshot touched what the query read the last time: the answer will not hold for long. */
  touched: boolean;
  /** Whether the code was replaced since: then the answer is thrown away. */
  obsolete: boolean;
}

/** A wave under way, as far as versions have to know of it. */
export interface WaveRecord {
  /** `null` until every reader has the snapshot open. */
  snapshot: number | null;
  /** The newest commit when the wave was started; the snapshot is not older. */
  readonly startedAt: number;
}

/** What a shared query is, apart from whom it is for. */
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
  /** One of the callers this is for; runs are made in its name. */
  readonly identity: Identity;
  readonly subscribers = new Set<Subscriber>();
  waiters: Waiter[] = [];
  /** In rising order, without overlap. The last one is the newest. */
  readonly versions: Version[] = [];
  /** What the newest version read: registered in the index. `null` before the first answer. */
  readSet: ReadSet | null = null;
  run: Run | null = null;
  /** How long the last run took. */
  durationMs = 0;
  /** Whether the last run read the clock or the generator. */
  nondeterministic = false;
  /** What it counts in the cache of queries nobody subscribes to; 0 outside. */
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

  /** Whether the newest result holds up to the newest commit. */
  get current(): boolean {
    return this.newest?.through === Infinity;
  }

  /** Whether anybody wants results. */
  get wanted(): boolean {
    return this.subscribers.size > 0 || this.waiters.length > 0;
  }

  /** The version with the highest `from` that is not above `ts`. It may end before `ts`. */
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

  /** A commit touched what the newest version read. */
  close(ts: number): void {
    const newest = this.newest;
    if (newest !== undefined && newest.through === Infinity && newest.from < ts) newest.through = ts - 1;
    if (this.run !== null && ts > (this.run.wave.snapshot ?? ts)) this.run.touched = true;
  }

  /**
   * Adds a version. One that overlaps a newer one is cut short before it, and dropped when nothing is left.
   * Returns whether it is the newest now.
   */
  insert(version: Version): boolean {
    const newest = this.newest;
    if (newest === undefined || version.from > newest.from) {
      if (newest !== undefined && newest.through >= version.from) newest.through = version.from - 1;
      this.versions.push(version);
      return true;
    }
    const place = this.versions.findIndex((other) => other.from >= version.from);
    const next = this.versions[place];
    const previous = this.versions[place - 1];
    if (next === undefined || next.from === version.from || (previous?.through ?? -1) >= version.from) {
      return false;
    }
    version.through = Math.min(version.through, next.from - 1);
    this.versions.splice(place, 0, version);
    return false;
  }

  /** Forgets versions that are neither the newest nor needed beside a run under way. */
  prune(waves: Iterable<WaveRecord>): void {
    if (this.versions.length <= 1) return;
    const needed = [...waves];
    const newest = this.newest;
    const kept = this.versions.filter((version) =>
      version === newest ||
      needed.some((wave) =>
        wave.snapshot === null
          ? version.through >= wave.startedAt
          : version.from <= wave.snapshot && version.through >= wave.snapshot
      )
    );
    if (kept.length < this.versions.length) this.versions.splice(0, this.versions.length, ...kept);
  }

  /** Throws when the state contradicts itself. For tests. */
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
