/** The state that a client shows, and the Transitions that move it: each shows all queries at one ts, after all earlier steps. */
import { anonymous, type Identity } from "../../functions/identity.ts";
import type { Outcome } from "../../functions/outcome.ts";
import { socketLimits } from "../../limits.ts";
import { initialVersion, type StateVersion } from "../../protocol/state_version.ts";
import type { SharedQueries } from "../queries/shared_queries.ts";
import { sameOutcome, SharedQuery, type Version } from "../queries/shared_query.ts";
import type { SocketOutput } from "./outbound_quota.ts";
import type { LiveQuery, RequestedState, Step } from "./requested_state.ts";
import { type FrameMemo, removedItem, transitionFrame } from "./transition_frame.ts";

/** Known commits and validity of versions. */
export interface VersionBounds {
  /** Newest commit known. */
  readonly ts: number;
  /** Last ts at which a version is known to be valid. */
  upper(version: Version): number;
}

/** Returns the newest ts at which every query has a version, or `null`. Without queries, the newest commit. */
function newestCommonTs(
  queries: readonly { readonly shared: SharedQuery | null }[],
  knowledge: VersionBounds,
): number | null {
  let common = knowledge.ts;
  for (const { shared } of queries) {
    const newest = shared?.newest;
    if (newest === undefined) return null;
    // A snapshot may be newer than the newest commit main has received.
    if (newest.from > common) common = newest.from;
  }
  for (let lowered = true; lowered;) {
    lowered = false;
    for (const { shared } of queries) {
      const version = shared?.versionUpTo(common);
      if (version === undefined) return null;
      const last = knowledge.upper(version);
      if (last < common) {
        common = last;
        lowered = true;
      }
    }
  }
  return common;
}

export interface TransitionsOptions {
  readonly shared: SharedQueries;
  readonly memo: FrameMemo;
  readonly dev: boolean;
  readonly requested: RequestedState;
  readonly output: SocketOutput;
  /** Newest commit at the time of connecting. */
  readonly ts: number;
  /** Called after each Transition. */
  readonly transitionSent: () => void;
  /** Called instead when the results exceed the size limit of a Transition. */
  readonly tooLarge: (chars: number) => void;
}

/** A result to send and the client's previous one. */
interface Update {
  readonly query: LiveQuery;
  readonly base: Outcome | null;
  readonly outcome: Outcome;
}

export class Transitions {
  readonly #options: TransitionsOptions;
  /** The client's version, as of the last Transition. */
  #version: StateVersion = initialVersion;
  /** No Transition ends below this ts: the newest commit at connect, or the newest the client has seen (SG12). */
  #minTs: number;
  /** The last MutationResponse must be followed by a Transition with at least this ts. `null` if none is due. */
  #owedTs: number | null = null;
  /** Identity of results. Follows the requested one when the Authenticate step starts. */
  identity: Identity = anonymous;
  /** Queries that are or will be displayed, in the order of their Adds. Removed ones stay until that was sent. */
  readonly queries = new Set<LiveQuery>();
  /** Steps in the order received. The queries of the first `#begunSteps` are subscribed. */
  readonly #steps: Step[] = [];
  #begunSteps = 0;
  /** Set when the first step's result was older than the socket's ts: nothing else advances the socket before it. */
  #holdForStep = false;
  /** Newest ts at which all results are known, as of the last `advance`, or `null`. */
  reachableTs: number | null = null;
  /** Characters of the Transition that waits for the outbound quota, or 0. */
  #waitingChars = 0;

  constructor(options: TransitionsOptions) {
    this.#options = options;
    this.#minTs = options.ts;
  }

  /** The ts required for the next Transition, or `null`. */
  get awaitedTs(): number | null {
    const floor = this.#version.ts < this.#minTs ? this.#minTs : null;
    return this.#owedTs === null ? floor : Math.max(this.#owedTs, floor ?? 0);
  }

  /** Whether none can be sent: the client reads too slowly, or the outbound quota is exhausted. */
  get blocked(): boolean {
    const { output } = this.#options;
    return output.isSlow || (this.#waitingChars > 0 && !output.canSend(this.#waitingChars));
  }

  /** Whether too many steps await their Transition. */
  get isFull(): boolean {
    return this.#steps.length >= socketLimits.unansweredTransitionsMax;
  }

  /** Whether this many queries may be added or removed now. Counts those that are displayed or wait for their step. */
  hasRoomFor(modifications: number): boolean {
    if (this.#steps.length === 0) return true;
    let count = this.queries.size + modifications;
    for (let i = this.#begunSteps; i < this.#steps.length; i++) {
      const step = this.#steps[i];
      if (step?.kind === "querySet") count += step.added.length;
    }
    return count <= socketLimits.queriesTrackedMax;
  }

  /** Adds a step, which ends in a Transition of its own. */
  add(step: Step): void {
    this.#steps.push(step);
  }

  /** The client has observed `ts` elsewhere. */
  observed(ts: number): void {
    this.#minTs = Math.max(this.#minTs, ts);
  }

  /** Lowers the minimum to `ts`, because what its client has observed was not reached in time. Returns whether it was higher. */
  lowerMinTs(ts: number): boolean {
    if (this.#minTs <= ts) return false;
    this.#minTs = ts;
    return true;
  }

  /** Requires a Transition of at least `ts`, after the response that reported it. */
  owe(ts: number): void {
    this.#owedTs = Math.max(this.#owedTs ?? 0, ts);
  }

  /** Sends every Transition that is ready. */
  advance(): void {
    const { output } = this.#options;
    this.#waitingChars = 0;
    while (output.isOpen && !output.isSlow) {
      this.#startSteps();
      const step = this.#steps[0];
      if (step === undefined) return this.#sendChanges();
      if (this.#finishStep(step)) continue;
      if (this.#waitingChars > 0) return;
      // Until all queries have switched identity, no result may be sent.
      if (step.kind === "querySet" && !this.#holdForStep) this.#sendChanges();
      return;
    }
  }

  /** Removes all queries. */
  end(): void {
    for (const query of this.queries) this.#unsubscribe(query);
    this.queries.clear();
    this.#steps.length = 0;
    this.#begunSteps = 0;
  }

  /** Subscribes added queries, or switches all queries to a new identity. */
  #startSteps(): void {
    for (let step = this.#steps[this.#begunSteps]; step !== undefined; step = this.#steps[this.#begunSteps]) {
      if (step.kind === "querySet") {
        for (const query of step.added) {
          this.queries.add(query);
          this.#subscribe(query);
        }
      } else {
        // Earlier steps belong to the old identity.
        if (this.#begunSteps > 0) return;
        this.identity = step.identity;
        for (const query of this.queries) this.#identityChanged(query);
      }
      this.#begunSteps++;
    }
  }

  #finishStep(step: Step): boolean {
    const end = {
      ...this.#version,
      ...(step.kind === "querySet" ? { querySet: step.newVersion } : { identity: step.newVersion }),
    };
    const live = this.#liveAt(end.querySet);
    const ts = newestCommonTs(live, this.#options.shared);
    this.reachableTs = ts;
    if (ts === null) return false;
    if (ts < this.#version.ts) {
      this.#holdForStep = true;
      return false;
    }
    if (ts < this.#minTs) return false;
    return this.#send(this.#updates(live, ts), { step, end: { ...end, ts } });
  }

  /** Sends changed results, or an advanced ts that the client waits for. */
  #sendChanges(): void {
    const version = this.#version;
    const owedTs = this.#owedTs;
    const live = this.#liveAt(version.querySet);
    const ts = newestCommonTs(live, this.#options.shared);
    if (this.#steps.length === 0) this.reachableTs = ts;
    if (ts !== null && ts >= Math.max(version.ts, this.#minTs)) {
      const owed = owedTs !== null && ts >= owedTs;
      const updates = this.#updates(live, ts);
      if (owed || updates.length > 0) this.#send(updates, { end: { ...version, ts } });
    } else if (owedTs !== null && version.ts >= owedTs) {
      // The client already has that commit: an empty Transition confirms it.
      this.#deliver(transitionFrame(version, { end: version, items: [] }), { end: version });
    }
  }

  /** Returns whether the Transition was sent or the socket ended. */
  #send(
    updates: readonly Update[],
    { step, end }: { readonly step?: Step; readonly end: StateVersion },
  ): boolean {
    const { memo, output, requested: { client: { errorIds } } } = this.#options;
    // An upper bound: diffs may be shorter. Building them is deferred until they can be sent.
    const most = charsOf(updates);
    if (!output.canSend(most)) {
      this.#waitingChars = most;
      return false;
    }
    const start = this.#version;
    const removed = step?.kind === "querySet"
      ? [...this.queries].filter((query) => query.deadFrom <= end.querySet && query.lastSent !== null)
      : [];
    const [first] = updates;
    let frame: string;
    if (first !== undefined && updates.length === 1 && removed.length === 0) {
      const { query: { queryId }, base, outcome } = first;
      frame = memo.frame({ start, end, queryId, base, outcome, errorIds });
    } else {
      const items = removed.map((query) => removedItem(query.queryId));
      for (const { query, base, outcome } of updates) {
        items.push(memo.item(query.queryId, { base, outcome, errorIds }));
      }
      const chars = items.reduce((sum, item) => sum + item.length, 0);
      if (chars > socketLimits.transitionCharsMax) {
        this.#options.tooLarge(chars);
        return true;
      }
      frame = transitionFrame(start, { end, items });
    }
    for (const { query, outcome } of updates) query.lastSent = outcome;
    this.#deliver(frame, step === undefined ? { end } : { end, step });
    return true;
  }

  #deliver(frame: string, { step, end }: { readonly step?: Step; readonly end: StateVersion }): void {
    this.#version = end;
    if (this.#owedTs !== null && end.ts >= this.#owedTs) this.#owedTs = null;
    if (step !== undefined) this.#stepDone(step);
    const { output, transitionSent } = this.#options;
    output.sendTransition(frame);
    transitionSent();
  }

  #stepDone(step: Step): void {
    this.#steps.shift();
    this.#begunSteps--;
    this.#holdForStep = false;
    if (step.kind === "identity") return;
    for (const query of this.queries) {
      if (query.deadFrom > step.newVersion) continue;
      this.queries.delete(query);
      this.#unsubscribe(query);
    }
  }

  /** Returns the results at `ts` that differ from the client's. */
  #updates(live: readonly LiveQuery[], ts: number): Update[] {
    const { dev, requested: { client: { diffs } } } = this.#options;
    const updates: Update[] = [];
    for (const query of live) {
      const outcome = query.shared?.versionUpTo(ts)?.outcome;
      if (outcome === undefined || outcome === query.lastSent) continue;
      if (query.lastSent !== null && sameOutcome(query.lastSent, outcome, { dev })) continue;
      updates.push({ query, base: diffs ? query.lastSent : null, outcome });
    }
    return updates;
  }

  #liveAt(querySet: number): LiveQuery[] {
    const live: LiveQuery[] = [];
    for (const query of this.queries) if (query.liveAt(querySet)) live.push(query);
    return live;
  }

  #identityChanged(query: LiveQuery): void {
    const refusal = query.refusalNow();
    if (query.refusal === null && refusal === null) return this.#options.shared.identityChanged(query);
    // The scope of an API key includes the query or excludes it.
    this.#unsubscribe(query);
    this.#subscribe(query);
  }

  #subscribe(query: LiveQuery): void {
    query.refusal = query.refusalNow();
    if (query.refusal === null) this.#options.shared.subscribe(query, query.spec);
    else query.shared = fixedQuery(query, query.refusal);
  }

  #unsubscribe(query: LiveQuery): void {
    if (query.refusal === null) this.#options.shared.unsubscribe(query);
  }

  /** Returns the number of subscriptions. Throws if the state is inconsistent. For tests. */
  validate(): number {
    const fail = (what: string) => {
      throw new Error(`Inconsistent socket state: ${what}`);
    };
    if (this.#begunSteps > this.#steps.length || this.#begunSteps < 0) fail("more steps started than exist");
    if (this.#steps.length > socketLimits.unansweredTransitionsMax) fail("too many steps");
    const { querySet: shown } = this.#version;
    let { querySet, identity } = this.#version;
    for (const step of this.#steps) {
      if (step.kind === "querySet" ? step.newVersion !== ++querySet : step.newVersion !== ++identity) {
        fail("steps out of order");
      }
    }
    const { requested } = this.#options;
    if (querySet !== requested.version.querySet || identity !== requested.version.identity) {
      fail("versions lost");
    }
    for (const query of this.queries) {
      const { queryId, shared } = query;
      if (shared === null) fail(`query ${queryId} has no shared query`);
      if (query.refusal === null && shared?.subscribers.has(query) === false) {
        fail(`query ${queryId} is not subscribed`);
      }
      if (query.deadFrom <= shown) fail(`query ${queryId} is still present after its removal`);
      if (query.lastSent === null && query.liveFrom <= shown) fail(`query ${queryId} has no result`);
      if (query.lastSent !== null && query.liveFrom > shown) fail(`query ${queryId} was sent too early`);
    }
    return [...this.queries].filter(({ refusal }) => refusal === null).length;
  }
}

function charsOf(updates: readonly Update[]): number {
  let chars = 0;
  for (const { outcome } of updates) chars += outcome.ok ? outcome.value.length : 0;
  return chars;
}

/** A pseudo query for an invalid call: one outcome at every ts. */
function fixedQuery(query: LiveQuery, outcome: Outcome): SharedQuery {
  const fixed = new SharedQuery("", { spec: query.spec, scope: "nothing", identity: query.identity });
  fixed.insert({ from: 0, through: Infinity, outcome });
  return fixed;
}
