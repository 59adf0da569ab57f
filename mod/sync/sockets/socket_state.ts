/** Protocol state of one socket, pure: versions, live queries with the results last sent, steps and calls in flight. */
import { anonymous, type Identity } from "../../functions/identity.ts";
import {
  type CallError,
  isDiskFullFailure,
  isOutcomeUnknown,
  type Outcome,
} from "../../functions/outcome.ts";
import { socketLimits } from "../../limits.ts";
import { canonicalJson } from "../../protocol/canonical_json.ts";
import type { AddQuery, Connect, ModifyQuerySet } from "../../protocol/client_messages.ts";
import { initialVersion, type StateVersion } from "../../protocol/state_version.ts";
import { refuseCall } from "../refuse_call.ts";
import type { QuerySpec, SharedQuery, Subscriber, View } from "../queries/shared_query.ts";

/** A query of the socket's set, from the accepted Add until its removal was sent. */
export class LiveQuery implements Subscriber {
  readonly queryId: number;
  readonly spec: QuerySpec;
  /** The fixed outcome of an invalid call, otherwise `null`. */
  readonly refusal: Outcome | null;
  readonly view: View;
  /** First querySet version that includes it. */
  readonly liveFrom: number;
  /** First querySet version without it. Set when a Remove is accepted. */
  deadFrom = Infinity;
  shared: SharedQuery | null = null;
  /** Result last sent to the client, `null` before the first. */
  lastSent: Outcome | null = null;
  readonly #state: SocketState;

  constructor(state: SocketState, query: {
    readonly queryId: number;
    readonly spec: QuerySpec;
    readonly refusal: Outcome | null;
    readonly view: View;
    readonly liveFrom: number;
  }) {
    this.#state = state;
    this.queryId = query.queryId;
    this.spec = query.spec;
    this.refusal = query.refusal;
    this.view = query.view;
    this.liveFrom = query.liveFrom;
  }

  get identity(): Identity {
    return this.#state.queryIdentity;
  }

  liveAt(querySet: number): boolean {
    return this.liveFrom <= querySet && querySet < this.deadFrom;
  }
}

/** An accepted ModifyQuerySet or Authenticate that awaits its Transition. */
export type Step =
  | { readonly kind: "querySet"; readonly newVersion: number; readonly added: readonly LiveQuery[] }
  | { readonly kind: "identity"; readonly newVersion: number; readonly identity: Identity };

/** A rejected message, with the text of the FatalError. */
export type Refusal = { readonly refused: string };

export class SocketState {
  /** The client's version, as of the last Transition. */
  version: StateVersion = initialVersion;
  /** No Transition ends below this ts: the newest commit at connect, or the newest the client has seen (SG12). */
  minTs: number;
  /** Set by Connect. Without it mutations are not deduplicated. */
  sessionId: string | null = null;
  connected = false;
  /** Whether mutations of this socket may be retries from an earlier one. */
  mayResend = false;
  /** Whether Connect requested result diffs. */
  diffs = false;
  /** Whether the client accepts error ids, according to its version. */
  errorIds = false;
  /** Identity of new calls. Set when an Authenticate is accepted. */
  identity: Identity = anonymous;
  /** Identity of results. Follows `identity` when the Authenticate step starts. */
  queryIdentity: Identity = anonymous;
  /** Queries that are or will be displayed, in the order of their Adds. Removed ones stay until that was sent. */
  readonly queries = new Set<LiveQuery>();
  /** Steps in the order received. The queries of the first `begunSteps` are subscribed. */
  readonly steps: Step[] = [];
  begunSteps = 0;
  /** Set when the first step's result was older than the socket's ts: nothing else advances the socket before it. */
  holdForStep = false;
  /** Characters of the arguments of accepted queries. */
  argsChars = 0;
  /** Mutations and actions in flight. */
  callsInFlight = 0;
  /** The last MutationResponse must be followed by a Transition with at least this ts. `null` if none is due. */
  owedTs: number | null = null;
  /** Accepted queries by id, as the client sees them. */
  readonly #accepted = new Map<number, LiveQuery>();
  #acceptedQuerySet = 0;
  #acceptedIdentity = 0;

  /** @param ts Newest commit at the time of connecting. */
  constructor(ts: number) {
    this.minTs = ts;
  }

  /** The ts required for the next Transition, or `null`. */
  get awaitedTs(): number | null {
    const floor = this.version.ts < this.minTs ? this.minTs : null;
    return this.owedTs === null ? floor : Math.max(this.owedTs, floor ?? 0);
  }

  /** Whether a failed mutation may still be committed, directly or by an earlier copy. Clients take failures as rollbacks. */
  isUnsettled(error: CallError): boolean {
    return isOutcomeUnknown(error) ||
      (this.mayResend && error.retryable === true && !isDiskFullFailure(error));
  }

  connect(message: Connect): Refusal | null {
    if (this.connected) return { refused: "Connect: the socket is already connected" };
    this.connected = true;
    this.sessionId = message.sessionId;
    this.mayResend = message.connectionCount > 0;
    this.diffs = message.features?.includes("diffs") ?? false;
    this.errorIds = message.clientVersion.startsWith("syncline/");
    this.minTs = Math.max(this.minTs, message.maxObservedTs ?? 0);
    return null;
  }

  /** Accepts a ModifyQuerySet as the next step. The state is unusable after a refusal. */
  modifyQuerySet(message: ModifyQuerySet, view: View): Refusal | null {
    const { baseVersion, newVersion } = message;
    if (baseVersion !== this.#acceptedQuerySet) {
      return { refused: `ModifyQuerySet: baseVersion is ${baseVersion}, expected ${this.#acceptedQuerySet}` };
    }
    if (newVersion !== baseVersion + 1) {
      return { refused: `ModifyQuerySet: newVersion is ${newVersion}, expected ${baseVersion + 1}` };
    }
    if (this.steps.length >= socketLimits.unansweredTransitionsMax) return tooManySteps();
    const added = new Set<LiveQuery>();
    for (const modification of message.modifications) {
      const { queryId } = modification;
      const known = this.#accepted.get(queryId);
      switch (modification.type) {
        case "Add": {
          if (known !== undefined) {
            return { refused: `ModifyQuerySet: the query ${queryId} is already live` };
          }
          const query = new LiveQuery(this, {
            queryId,
            ...readCall(modification),
            view,
            liveFrom: newVersion,
          });
          this.#accepted.set(queryId, query);
          this.argsChars += query.spec.canonicalArgs.length;
          added.add(query);
          break;
        }
        case "Remove":
          if (known === undefined) break;
          this.#accepted.delete(queryId);
          this.argsChars -= known.spec.canonicalArgs.length;
          // Added and removed by the same message.
          if (!added.delete(known)) known.deadFrom = newVersion;
          break;
        default:
          modification satisfies never;
      }
    }
    if (this.#accepted.size > socketLimits.liveQueriesMax) {
      return { refused: `ModifyQuerySet: more than ${socketLimits.liveQueriesMax} live queries` };
    }
    this.#acceptedQuerySet = newVersion;
    this.steps.push({ kind: "querySet", newVersion, added: [...added] });
    return null;
  }

  /** Queries held for the socket: live, or waiting for the Transition that adds or removes them. */
  get trackedQueries(): number {
    let count = this.queries.size;
    for (let i = this.begunSteps; i < this.steps.length; i++) {
      const step = this.steps[i];
      if (step?.kind === "querySet") count += step.added.length;
    }
    return count;
  }

  mayAuthenticate(baseVersion: number): Refusal | null {
    if (baseVersion !== this.#acceptedIdentity) {
      return { refused: `Authenticate: baseVersion is ${baseVersion}, expected ${this.#acceptedIdentity}` };
    }
    return this.steps.length >= socketLimits.unansweredTransitionsMax ? tooManySteps() : null;
  }

  /** Accepts a verified Authenticate as the next step. New calls use its identity. */
  authenticate(identity: Identity): void {
    this.#acceptedIdentity++;
    this.identity = identity;
    this.steps.push({ kind: "identity", newVersion: this.#acceptedIdentity, identity });
  }

  /** Returns the version after the first step, or the current one without a step, at `ts`. */
  versionAfter(step: Step | undefined, ts: number): StateVersion {
    return {
      querySet: step?.kind === "querySet" ? step.newVersion : this.version.querySet,
      identity: step?.kind === "identity" ? step.newVersion : this.version.identity,
      ts,
    };
  }

  /** Records a sent Transition. Returns the queries it removed. */
  moved(version: StateVersion, step: Step | undefined): LiveQuery[] {
    this.version = version;
    if (this.owedTs !== null && version.ts >= this.owedTs) this.owedTs = null;
    if (step === undefined) return [];
    this.steps.shift();
    this.begunSteps--;
    this.holdForStep = false;
    if (step.kind === "identity") return [];
    const removed = [...this.queries].filter((query) => query.deadFrom <= version.querySet);
    for (const query of removed) this.queries.delete(query);
    return removed;
  }

  /** Throws if the state is inconsistent. For tests. */
  validate(): void {
    const fail = (what: string) => {
      throw new Error(`Inconsistent socket state: ${what}`);
    };
    if (this.begunSteps > this.steps.length || this.begunSteps < 0) fail("more steps started than exist");
    if (this.steps.length > socketLimits.unansweredTransitionsMax) fail("too many steps");
    if (this.#accepted.size > socketLimits.liveQueriesMax) fail("too many live queries");
    if (this.callsInFlight < 0 || this.callsInFlight > socketLimits.callsInFlightMax) fail("calls in flight");
    let { querySet, identity } = this.version;
    for (const step of this.steps) {
      if (step.kind === "querySet" ? step.newVersion !== ++querySet : step.newVersion !== ++identity) {
        fail("steps out of order");
      }
    }
    if (querySet !== this.#acceptedQuerySet || identity !== this.#acceptedIdentity) fail("versions lost");
    for (const query of this.queries) {
      if (query.shared === null) fail(`query ${query.queryId} has no shared query`);
      if (query.refusal === null && query.shared?.subscribers.has(query) === false) {
        fail(`query ${query.queryId} is not subscribed`);
      }
      if (query.deadFrom <= this.version.querySet) {
        fail(`query ${query.queryId} is still present after its removal`);
      }
      if (query.lastSent === null && query.liveFrom <= this.version.querySet) {
        fail(`query ${query.queryId} has no result`);
      }
      if (query.lastSent !== null && query.liveFrom > this.version.querySet) {
        fail(`query ${query.queryId} was sent too early`);
      }
    }
  }
}

/** An invalid call has a fixed result: its error. */
function readCall(
  { udfPath, args }: AddQuery,
): { readonly spec: QuerySpec; readonly refusal: Outcome | null } {
  const refusal = refuseCall({ udfPath, args });
  return refusal === null
    ? { spec: { udfPath, args, canonicalArgs: canonicalJson(args), origin: "client" }, refusal }
    : { spec: { udfPath: "", args: {}, canonicalArgs: "{}", origin: "client" }, refusal };
}

function tooManySteps(): Refusal {
  return {
    refused:
      `more than ${socketLimits.unansweredTransitionsMax} ModifyQuerySet and Authenticate messages await their Transition`,
  };
}
