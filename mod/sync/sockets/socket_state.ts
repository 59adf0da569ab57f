/**
 * What the server knows of one socket, without the socket: versions, live queries and what was last sent of them, the
 * changes that await their Transition, calls under way. Pure: nothing here sends, waits or looks at a clock.
 */
import { anonymous, type Identity } from "../../functions/identity.ts";
import { type CallError, foundNoRoom, isOutcomeUnknown, type Outcome } from "../../functions/outcome.ts";
import { socketLimits } from "../../limits.ts";
import { canonicalJson } from "../../protocol/canonical_json.ts";
import type { AddQuery, Connect, ModifyQuerySet } from "../../protocol/client_messages.ts";
import { initialVersion, type StateVersion } from "../../protocol/state_version.ts";
import { refuseCall } from "../refuse_call.ts";
import type { QuerySpec, SharedQuery, Subscriber, View } from "../queries/shared_query.ts";

/** A query of the socket's set, from the Add that was accepted until its removal was sent. */
export class LiveQuery implements Subscriber {
  readonly queryId: number;
  readonly spec: QuerySpec;
  /** The only result of a query that cannot be run, `null` for others. */
  readonly refusal: Outcome | null;
  readonly view: View;
  /** First querySet version it is part of. */
  readonly liveFrom: number;
  /** First querySet version it is no longer part of. Set when a Remove is accepted. */
  deadFrom = Infinity;
  shared: SharedQuery | null = null;
  /** What the client has of it: set by each Transition that carries a result, `null` before the first. */
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

/** An accepted ModifyQuerySet or Authenticate that awaits its own Transition. */
export type Step =
  | { readonly kind: "querySet"; readonly newVersion: number; readonly added: readonly LiveQuery[] }
  | { readonly kind: "identity"; readonly newVersion: number; readonly identity: Identity };

/** Why a message was refused, as the text of a FatalError. */
export type Refusal = { readonly refused: string };

export class SocketState {
  /** What the client has: moved by each Transition. */
  version: StateVersion = initialVersion;
  /** No Transition ends below this ts: the newest commit when the socket connected, or what its client has seen (SG12). */
  floorTs: number;
  /** Set by Connect. Without it mutations are not de-duplicated. */
  sessionId: string | null = null;
  connected = false;
  /** Whether a mutation of this socket may have been sent on an earlier one. */
  mayResend = false;
  /** Whether Connect asked for result diffs. */
  diffs = false;
  /** Whether the client takes the ids of errors: one of ours, which says so as its version. */
  errorIds = false;
  /** Who makes calls: set when an Authenticate is accepted. */
  identity: Identity = anonymous;
  /** Who the results are for: follows `identity` when the step of the Authenticate is begun. */
  queryIdentity: Identity = anonymous;
  /** Every query that is or will be shown, in the order of the Adds; those removed stay until that was sent. */
  readonly queries = new Set<LiveQuery>();
  /** Steps in the order received. The first `begunSteps` have their queries subscribed. */
  readonly steps: Step[] = [];
  begunSteps = 0;
  /**
   * Set when a result the first step waited for could not be used because the socket had moved on: until that step is
   * sent, nothing else moves the socket.
   */
  holdForStep = false;
  /** Characters of the arguments of accepted queries. */
  argsChars = 0;
  /** Mutations and actions under way. */
  callsInFlight = 0;
  /** A Transition with at least this ts has to follow the last MutationResponse; `null` when none is owed. */
  owedTs: number | null = null;
  /** Accepted queries by id: the client's view of its set. */
  readonly #accepted = new Map<number, LiveQuery>();
  #acceptedQuerySet = 0;
  #acceptedIdentity = 0;

  /** `ts`: of the newest commit when the socket connected. */
  constructor(ts: number) {
    this.floorTs = ts;
  }

  /** The ts that has to be reached before the next Transition or for it, `null` when none is waited for. */
  get awaitedTs(): number | null {
    const floor = this.version.ts < this.floorTs ? this.floorTs : null;
    return this.owedTs === null ? floor : Math.max(this.owedTs, floor ?? 0);
  }

  /**
   * Whether a mutation with this failure may be committed all the same: it was sent and its outcome is unknown, or it was
   * refused without a look at its record and an earlier copy may have been sent. A client takes a failure for a rollback.
   */
  isUnsettled(error: CallError): boolean {
    return isOutcomeUnknown(error) || (this.mayResend && error.retryable === true && !foundNoRoom(error));
  }

  connect(message: Connect): Refusal | null {
    if (this.connected) return { refused: "Connect: the socket is already connected" };
    this.connected = true;
    this.sessionId = message.sessionId;
    this.mayResend = message.connectionCount > 0;
    this.diffs = message.features?.includes("diffs") ?? false;
    this.errorIds = message.clientVersion.startsWith("syncline/");
    this.floorTs = Math.max(this.floorTs, message.maxObservedTs ?? 0);
    return null;
  }

  /** Accepts a ModifyQuerySet as the next step. After a refusal the state is of no more use. */
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
          // Added by this very message: it never was.
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

  /** Queries kept for the socket: live, waiting for their first Transition, or for the one that removes them. */
  get queriesKept(): number {
    let count = this.queries.size;
    for (let i = this.begunSteps; i < this.steps.length; i++) {
      const step = this.steps[i];
      if (step?.kind === "querySet") count += step.added.length;
    }
    return count;
  }

  /** Whether an Authenticate may be verified. */
  mayAuthenticate(baseVersion: number): Refusal | null {
    if (baseVersion !== this.#acceptedIdentity) {
      return { refused: `Authenticate: baseVersion is ${baseVersion}, expected ${this.#acceptedIdentity}` };
    }
    return this.steps.length >= socketLimits.unansweredTransitionsMax ? tooManySteps() : null;
  }

  /** Accepts a verified Authenticate as the next step; calls are made in the new name from now on. */
  authenticate(identity: Identity): void {
    this.#acceptedIdentity++;
    this.identity = identity;
    this.steps.push({ kind: "identity", newVersion: this.#acceptedIdentity, identity });
  }

  /** The version after the first step, or the present one when `step` is undefined; `ts` comes from the results. */
  versionAfter(step: Step | undefined, ts: number): StateVersion {
    return {
      querySet: step?.kind === "querySet" ? step.newVersion : this.version.querySet,
      identity: step?.kind === "identity" ? step.newVersion : this.version.identity,
      ts,
    };
  }

  /** A Transition was sent. Returns the queries it removed. */
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

  /** Throws when the state contradicts itself. For tests. */
  validate(): void {
    const fail = (what: string) => {
      throw new Error(`The socket's state is broken: ${what}`);
    };
    if (this.begunSteps > this.steps.length || this.begunSteps < 0) fail("more steps begun than there are");
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
      if (query.shared === null) fail(`query ${query.queryId} shows nothing`);
      if (query.refusal === null && query.shared?.subscribers.has(query) === false) {
        fail(`query ${query.queryId} is not subscribed`);
      }
      if (query.deadFrom <= this.version.querySet) fail(`query ${query.queryId} outlived its removal`);
      if (query.lastSent === null && query.liveFrom <= this.version.querySet) {
        fail(`query ${query.queryId} has no result`);
      }
      if (query.lastSent !== null && query.liveFrom > this.version.querySet) {
        fail(`query ${query.queryId} was shown too early`);
      }
    }
  }
}

/** A query whose arguments cannot be run has one result, whatever happens: their error. */
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
