/** The state that a client has requested with its messages: its Connect, query set and identity. Pure. */
import type { Caller } from "../../functions/host_port.ts";
import { anonymous, type Identity } from "../../functions/identity.ts";
import type { Outcome } from "../../functions/outcome.ts";
import { socketLimits } from "../../limits.ts";
import { canonicalJson } from "../../protocol/canonical_json.ts";
import type { AddQuery, Connect, ModifyQuerySet } from "../../protocol/client_messages.ts";
import type { StateVersion } from "../../protocol/state_version.ts";
import { callerOf, guestInSession } from "../authenticator.ts";
import type { QuerySpec, SharedQuery, Subscriber, View } from "../queries/shared_query.ts";
import { refuseKey } from "../../functions/key_scope.ts";
import { refuseCall } from "../refuse_call.ts";

/** A query of the socket's set, from the accepted Add until its removal was sent. */
export class LiveQuery implements Subscriber {
  readonly queryId: number;
  readonly spec: QuerySpec;
  /** The outcome of an invalid call, otherwise `null`. */
  readonly #invalid: Outcome | null;
  /** The fixed outcome of a call that is invalid or not in the scope of the caller's API key, otherwise `null`. */
  refusal: Outcome | null;
  readonly view: View;
  /** First querySet version that includes it. */
  readonly liveFrom: number;
  /** First querySet version without it. Set when a Remove is accepted. */
  deadFrom = Infinity;
  shared: SharedQuery | null = null;
  /** Result last sent to the client, `null` before the first. */
  lastSent: Outcome | null = null;

  constructor({ queryId, udfPath, args }: AddQuery, view: View, liveFrom: number) {
    this.queryId = queryId;
    this.refusal = this.#invalid = refuseCall({ udfPath, args });
    this.spec = this.#invalid === null
      ? { udfPath, args, canonicalArgs: canonicalJson(args), origin: "client" }
      : { udfPath: "", args: {}, canonicalArgs: "{}", origin: "client" };
    this.view = view;
    this.liveFrom = liveFrom;
  }

  get identity(): Identity {
    return this.view.identity;
  }

  /** Returns the fixed outcome for the view's current identity, otherwise `null`. */
  refusalNow(): Outcome | null {
    return this.#invalid ?? refuseKey(this.identity, "query", this.spec.udfPath);
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
export interface Refusal {
  readonly refused: string;
}

/** Declarations of Connect. */
export interface ConnectedClient {
  /** `null` before Connect: mutations are then not deduplicated. */
  readonly sessionId: string | null;
  readonly connectionCount: number;
  /** Whether mutations of this socket may be retries from an earlier one. */
  readonly mayResend: boolean;
  /** Whether it requested result diffs. */
  readonly diffs: boolean;
  /** Whether it may join rooms. */
  readonly presence: boolean;
  /** Whether it accepts error ids, according to its version. */
  readonly errorIds: boolean;
}

const notConnected: ConnectedClient = {
  sessionId: null,
  connectionCount: 0,
  mayResend: false,
  diffs: false,
  presence: false,
  errorIds: false,
};

/** Accepts messages whose versions continue the last accepted ones. Refuses others; the state is unusable afterwards. */
export class RequestedState {
  client: ConnectedClient = notConnected;
  /** Identity of new calls. */
  identity: Identity = anonymous;
  /** Characters of the arguments of the queries. */
  argsChars = 0;
  /** Caller while no user is signed in. */
  #guest: Caller;
  readonly #queries = new Map<number, LiveQuery>();
  #querySet = 0;
  #identityVersion = 0;

  constructor(guest: Caller) {
    this.#guest = guest;
  }

  get version(): Pick<StateVersion, "querySet" | "identity"> {
    return { querySet: this.#querySet, identity: this.#identityVersion };
  }

  /** Caller to which calls with this identity are attributed. */
  callerOf(identity: Identity): Caller {
    return callerOf(identity, this.#guest);
  }

  connect({ sessionId, connectionCount, features, clientVersion }: Connect): Refusal | null {
    if (this.client !== notConnected) return { refused: "Connect: the socket is already connected" };
    this.client = {
      sessionId,
      connectionCount,
      mayResend: connectionCount > 0,
      diffs: features?.includes("diffs") ?? false,
      presence: features?.includes("presence") ?? false,
      errorIds: clientVersion.startsWith("syncline/"),
    };
    this.#guest = guestInSession(this.#guest, sessionId);
    return null;
  }

  modifyQuerySet({ baseVersion, newVersion, modifications }: ModifyQuerySet, view: View): Step | Refusal {
    if (baseVersion !== this.#querySet) {
      return { refused: `ModifyQuerySet: baseVersion is ${baseVersion}, expected ${this.#querySet}` };
    }
    if (newVersion !== baseVersion + 1) {
      return { refused: `ModifyQuerySet: newVersion is ${newVersion}, expected ${baseVersion + 1}` };
    }
    const added = new Set<LiveQuery>();
    for (const modification of modifications) {
      const { queryId } = modification;
      const known = this.#queries.get(queryId);
      switch (modification.type) {
        case "Add": {
          if (known !== undefined) {
            return { refused: `ModifyQuerySet: the query ${queryId} is already live` };
          }
          const query = new LiveQuery(modification, view, newVersion);
          this.#queries.set(queryId, query);
          this.argsChars += query.spec.canonicalArgs.length;
          added.add(query);
          break;
        }
        case "Remove":
          if (known === undefined) break;
          this.#queries.delete(queryId);
          this.argsChars -= known.spec.canonicalArgs.length;
          // Added and removed by the same message.
          if (!added.delete(known)) known.deadFrom = newVersion;
          break;
        default:
          modification satisfies never;
      }
    }
    if (this.#queries.size > socketLimits.liveQueriesMax) {
      return { refused: `ModifyQuerySet: more than ${socketLimits.liveQueriesMax} live queries` };
    }
    this.#querySet = newVersion;
    return { kind: "querySet", newVersion, added: [...added] };
  }

  /** Checks an Authenticate before its token is verified. */
  mayAuthenticate(baseVersion: number): Refusal | null {
    return baseVersion === this.#identityVersion
      ? null
      : { refused: `Authenticate: baseVersion is ${baseVersion}, expected ${this.#identityVersion}` };
  }

  /** Accepts a verified Authenticate. */
  authenticate(identity: Identity): Step {
    this.identity = identity;
    return { kind: "identity", newVersion: ++this.#identityVersion, identity };
  }
}
