/**
 * The heart of the client: joins connection, versions, queries, calls, optimistic updates and token into the
 * conversation of the contract ("Client reconnect sequence"). It knows nothing of who watches the results.
 */
import type { ClientMessage } from "../protocol/client_messages.ts";
import type { AuthError, MutationResponse, ServerMessage, Transition } from "../protocol/server_messages.ts";
import { TokenKeeper, type TokenOwner } from "./auth.ts";
import { ClientClosedError } from "./errors.ts";
import type { JsonObject } from "./json_args.ts";
import { clientLimits } from "./limits.ts";
import { OptimisticResults, type OptimisticUpdate } from "./optimistic.ts";
import { QuerySet, type StagedResults } from "./query_set.ts";
import { Requests } from "./requests.ts";
import { SocketDriver, type SocketEnvironment, type SocketOwner } from "./socket_driver.ts";
import { CLIENT_VERSION } from "./version.ts";
import { WireSession } from "./wire_session.ts";

/** Who is told of what changes. */
export interface CoreObserver {
  /** The shown results of these queries changed. */
  resultsChanged(keys: ReadonlySet<string>): void;
  /** These queries have a result from the current socket, changed or not. */
  resultsArrived(keys: ReadonlySet<string>): void;
  /** Something in the connection's state changed. */
  stateChanged(): void;
  /** A function wrote log lines; only servers with `--dev` send them. */
  logLines(udfPath: string, lines: readonly string[]): void;
}

export class SyncCore implements SocketOwner, TokenOwner {
  readonly queries: QuerySet = new QuerySet();
  readonly requests: Requests = new Requests();
  readonly results: OptimisticResults = new OptimisticResults(this.queries);
  readonly tokens: TokenKeeper;
  readonly driver: SocketDriver;
  readonly #environment: SocketEnvironment;
  readonly #observer: CoreObserver;
  readonly #sessionId: string;
  /** The versions of the open socket; made when it opens, `null` while there is none. */
  #session: WireSession | null = null;
  /** Whether the handshake of the open socket is complete: until then nothing else is sent. */
  #greeted = false;
  #flushQueued = false;

  constructor(environment: SocketEnvironment & { readonly sessionId: string }, observer: CoreObserver) {
    this.#environment = environment;
    this.#sessionId = environment.sessionId;
    this.#observer = observer;
    this.tokens = new TokenKeeper(environment.clock, this);
    this.driver = new SocketDriver(environment, this);
  }

  /** Whether a socket is open and its handshake is complete. */
  get connected(): boolean {
    return this.#greeted;
  }

  /** Sends what has changed in the set of queries at the end of the current turn, as one message. */
  queriesChanged(): void {
    if (this.#flushQueued) return;
    this.#flushQueued = true;
    queueMicrotask(() => {
      this.#flushQueued = false;
      this.#sendModifications();
    });
  }

  /** Calls a mutation or an action. Throws for too many calls and for an optimistic update that throws. */
  call(kind: "mutation" | "action", { udfPath, args, update }: NewCall): Promise<unknown> {
    const calledAt = this.#environment.clock.now();
    const { requestId, result } = this.requests.add({ kind, udfPath, args, calledAt });
    if (update !== undefined) {
      let changed: Set<string>;
      try {
        changed = this.results.add(requestId, update);
      } catch (error) {
        this.requests.withdraw(requestId);
        throw error;
      }
      this.#observer.resultsChanged(changed);
    }
    this.#sendCalls();
    this.#observer.stateChanged();
    return result;
  }

  close(): void {
    this.tokens.stop();
    this.driver.stop();
    this.requests.closeAll(new ClientClosedError());
  }

  up(): void {
    this.#session = new WireSession();
    const { connectionCount, lastCloseReason } = this.driver.machine;
    this.#send({
      type: "Connect",
      sessionId: this.#sessionId,
      connectionCount,
      lastCloseReason,
      clientVersion: CLIENT_VERSION,
      features: ["diffs"],
    });
    this.tokens.prepare();
    this.#greet();
  }

  down(): void {
    this.#session = null;
    this.#greeted = false;
    this.queries.connectionLost();
    this.requests.connectionLost();
  }

  phaseChanged(): void {
    this.#observer.stateChanged();
  }

  tokenDecided(): void {
    const session = this.#session;
    if (session === null) return;
    if (!this.#greeted) return this.#greet();
    const { token } = this.tokens;
    if (session.token !== token) this.#send(session.authenticate(token));
    else if (session.unconfirmedTokens.length === 0) this.tokens.confirmed(token);
    this.#sendModifications();
    this.#sendCalls();
  }

  received(text: string | null): void {
    try {
      if (text === null) throw new TypeError("a frame that is not text");
      this.#handle(JSON.parse(text) as ServerMessage);
    } catch (error) {
      this.driver.fault(`cannot read the server's message: ${error}`);
    }
  }

  #handle(message: ServerMessage): void {
    switch (message.type) {
      case "Transition":
        return this.#transition(message);
      case "MutationResponse":
        return this.#mutationAnswered(message);
      case "ActionResponse":
        this.driver.useful();
        this.#showLogLines(this.requests.pathOf(message.requestId), message.logLines);
        this.requests.actionAnswered(message);
        this.#sendCalls();
        return this.#observer.stateChanged();
      case "FatalError":
        return this.driver.fault(`FatalError: ${message.error}`);
      case "AuthError":
        return this.#authError(message);
      case "Ping":
        return this.#send({ type: "Pong" });
      default:
        // A message of a later protocol: nothing this client asked for.
        message satisfies never;
    }
  }

  /** Completes the handshake of a new socket once it is known which token to use. */
  #greet(): void {
    const session = this.#session;
    if (session === null || this.#greeted || !this.tokens.decided) return;
    this.#greeted = true;
    if (this.tokens.token === null) this.tokens.confirmed(null);
    else this.#send(session.authenticate(this.tokens.token));
    const modifications = this.queries.takeModifications();
    if (modifications.length > 0) this.#send(session.readd(modifications));
    // Without queries there is nothing a committed mutation could become visible in, and no Transition to wait for.
    else this.#complete(Infinity);
    this.#sendCalls();
    this.#observer.stateChanged();
  }

  #transition(transition: Transition): void {
    const session = this.#session;
    if (session === null) return;
    const misfit = session.misfit(transition);
    if (misfit !== null) return this.driver.fault(misfit);
    let staged: StagedResults;
    try {
      staged = this.queries.stage(transition);
    } catch (error) {
      return this.driver.fault(`cannot apply a Transition: ${error}`);
    }
    const changed = this.queries.apply(staged);
    const confirmed = session.advance(transition.endVersion);
    this.driver.useful();
    for (const modification of transition.modifications) {
      if (modification.type === "QueryRemoved") continue;
      this.#showLogLines(this.queries.pathOf(modification.queryId), modification.logLines);
    }
    const arrived = new Set(Array.from(staged.keys(), (query) => query.key));
    this.#complete(session.visibleTs, changed);
    this.#observer.resultsArrived(arrived);
    if (confirmed && session.unconfirmedTokens.length === 0) this.tokens.confirmed(session.confirmedToken);
    this.#sendModifications();
  }

  /** Drops the layers of mutations visible at `visibleTs`, shows the results, then resolves the mutations. */
  #complete(visibleTs: number, changed = new Set<string>()): void {
    const visible = this.requests.takeVisible(visibleTs);
    for (const key of this.results.replay(visible.map(({ requestId }) => requestId))) changed.add(key);
    if (changed.size > 0) this.#observer.resultsChanged(changed);
    for (const { resolve } of visible) resolve();
  }

  #mutationAnswered(response: MutationResponse): void {
    this.driver.useful();
    this.#showLogLines(this.requests.pathOf(response.requestId), response.logLines);
    switch (this.requests.mutationAnswered(response)) {
      case "committed":
        this.#complete(this.#session?.visibleTs ?? -1);
        break;
      case "failed": {
        const changed = this.results.replay([response.requestId]);
        if (changed.size > 0) this.#observer.resultsChanged(changed);
        break;
      }
      case "unknown":
        break;
    }
    this.#sendCalls();
    this.#observer.stateChanged();
  }

  /**
   * The server refused a token or ended its session. Which one is meant is clear when only one can be: the token the
   * socket was confirmed with, or the only one sent on a socket that was never confirmed.
   */
  #authError({ error }: AuthError): void {
    const session = this.#session;
    this.driver.fault(`AuthError: ${error}`);
    if (session === null) return;
    const { confirmedToken, unconfirmedTokens } = session;
    if (unconfirmedTokens.length === 0 && confirmedToken !== null) {
      this.tokens.refused(confirmedToken, { wasConfirmed: true });
    } else if (confirmedToken === null && unconfirmedTokens.length === 1 && unconfirmedTokens[0]) {
      this.tokens.refused(unconfirmedTokens[0], { wasConfirmed: false });
    }
  }

  /** Whether queries and calls may be sent: not before the handshake, and not while a setAuth waits for its token. */
  get #flowing(): boolean {
    return this.#greeted && this.tokens.decided;
  }

  #sendModifications(): void {
    const session = this.#session;
    if (session === null || !this.#flowing) return;
    if (session.unanswered >= clientLimits.unansweredTransitionsMax) return;
    const modifications = this.queries.takeModifications();
    if (modifications.length > 0) this.#send(session.modify(modifications));
  }

  #sendCalls(): void {
    if (!this.#flowing) return;
    for (const { kind, requestId, udfPath, args } of this.requests.takeSendable()) {
      const type = kind === "mutation" ? "Mutation" : "Action";
      this.#send({ type, requestId, udfPath, args });
    }
  }

  #showLogLines(udfPath: string | undefined, lines: readonly string[]): void {
    if (udfPath !== undefined && lines.length > 0) this.#observer.logLines(udfPath, lines);
  }

  #send(message: ClientMessage): void {
    this.driver.send(message);
  }
}

interface NewCall {
  readonly udfPath: string;
  readonly args: JsonObject;
  readonly update?: OptimisticUpdate | undefined;
}
