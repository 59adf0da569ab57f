/** Advances one socket: starts its steps, finds the ts it can move to and sends the differences. */
import type { Outcome } from "../../functions/outcome.ts";
import { socketLimits } from "../../limits.ts";
import type { StateVersion } from "../../protocol/state_version.ts";
import type { SharedQueries } from "../queries/shared_queries.ts";
import { sameOutcome, SharedQuery, type Version } from "../queries/shared_query.ts";
import type { LiveQuery, SocketState, Step } from "./socket_state.ts";
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
  readonly state: SocketState;
  readonly shared: SharedQueries;
  readonly memo: FrameMemo;
  readonly dev: boolean;
  readonly send: (frame: string) => void;
  /** Called instead of `send` when the results exceed the size limit of a Transition. */
  readonly tooLarge: (chars: number) => void;
  /** Whether the client reads too slowly to be sent more. */
  readonly slow: () => boolean;
  /** Whether the outbound quota allows a Transition of this length. */
  readonly canSend: (chars: number) => boolean;
}

/** A result to send and the client's previous one. */
interface Update {
  readonly query: LiveQuery;
  readonly base: Outcome | null;
  readonly outcome: Outcome;
}

export class Transitions {
  readonly #options: TransitionsOptions;
  /** Newest ts at which all results are known, as of the last `advance`, or `null`. */
  reachableTs: number | null = null;
  /** Characters of the Transition that waits for the outbound quota, or 0. */
  waitingChars = 0;

  constructor(options: TransitionsOptions) {
    this.#options = options;
  }

  /** Sends every Transition that is ready. */
  advance(): void {
    const { state, slow } = this.#options;
    this.waitingChars = 0;
    while (!slow()) {
      this.#startSteps();
      const step = state.steps[0];
      if (step === undefined) return this.#sendChanges();
      if (this.#finishStep(step)) continue;
      if (this.waitingChars > 0) return;
      // Until all queries have switched identity, no result may be sent.
      if (step.kind === "querySet" && !state.holdForStep) this.#sendChanges();
      return;
    }
  }

  /** Removes all queries. */
  end(): void {
    const { state } = this.#options;
    for (const query of state.queries) this.#unsubscribe(query);
    state.queries.clear();
    state.steps.length = 0;
    state.begunSteps = 0;
  }

  /** Subscribes added queries, or switches all queries to a new identity. */
  #startSteps(): void {
    const { state } = this.#options;
    for (let step = state.steps[state.begunSteps]; step !== undefined; step = state.steps[state.begunSteps]) {
      if (step.kind === "querySet") {
        for (const query of step.added) {
          state.queries.add(query);
          this.#subscribe(query);
        }
      } else {
        // Earlier steps belong to the old identity.
        if (state.begunSteps > 0) return;
        state.queryIdentity = step.identity;
        for (const query of state.queries) {
          if (query.refusal === null) this.#options.shared.identityChanged(query);
        }
      }
      state.begunSteps++;
    }
  }

  #finishStep(step: Step): boolean {
    const { state } = this.#options;
    const end = state.versionAfter(step, 0);
    const live = this.#liveAt(end.querySet);
    const ts = this.#commonTs(live);
    this.reachableTs = ts;
    if (ts === null) return false;
    if (ts < state.version.ts) {
      state.holdForStep = true;
      return false;
    }
    if (ts < state.minTs) return false;
    return this.#send(this.#updates(live, ts), { step, end: { ...end, ts } });
  }

  /** Sends changed results, or an advanced ts that the client waits for. */
  #sendChanges(): void {
    const { state } = this.#options;
    const { version, owedTs } = state;
    const live = this.#liveAt(version.querySet);
    const ts = this.#commonTs(live);
    if (state.steps.length === 0) this.reachableTs = ts;
    if (ts !== null && ts >= Math.max(version.ts, state.minTs)) {
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
    const { state, memo, canSend: hasRoom } = this.#options;
    // An upper bound: diffs may be shorter. Building them is deferred until they can be sent.
    const most = charsOf(updates);
    if (!hasRoom(most)) {
      this.waitingChars = most;
      return false;
    }
    const start = state.version;
    const { errorIds } = state;
    const removed = step?.kind === "querySet"
      ? [...state.queries].filter((query) => query.deadFrom <= end.querySet && query.lastSent !== null)
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
    for (const query of this.#options.state.moved(end, step)) this.#unsubscribe(query);
    this.#options.send(frame);
  }

  /** Returns the results at `ts` that differ from the client's. */
  #updates(live: readonly LiveQuery[], ts: number): Update[] {
    const { state, dev } = this.#options;
    const updates: Update[] = [];
    for (const query of live) {
      const outcome = query.shared?.versionUpTo(ts)?.outcome;
      if (outcome === undefined || outcome === query.lastSent) continue;
      if (query.lastSent !== null && sameOutcome(query.lastSent, outcome, { dev })) continue;
      updates.push({ query, base: state.diffs ? query.lastSent : null, outcome });
    }
    return updates;
  }

  #liveAt(querySet: number): LiveQuery[] {
    const live: LiveQuery[] = [];
    for (const query of this.#options.state.queries) if (query.liveAt(querySet)) live.push(query);
    return live;
  }

  #commonTs(live: readonly LiveQuery[]): number | null {
    return newestCommonTs(live, this.#options.shared);
  }

  #subscribe(query: LiveQuery): void {
    if (query.refusal === null) this.#options.shared.subscribe(query, query.spec);
    else query.shared = fixedQuery(query, query.refusal);
  }

  #unsubscribe(query: LiveQuery): void {
    if (query.refusal === null) this.#options.shared.unsubscribe(query);
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
