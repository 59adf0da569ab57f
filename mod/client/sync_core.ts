/**
 * The core of the client: combines connection, versions, queries, calls, optimistic updates and token into the protocol
 * (CL1). It does not know the subscribers.
 */
import type { ClientMessage } from "../protocol/client_messages.ts";
import type { AuthError, MutationResponse, ServerMessage, Transition } from "../protocol/server_messages.ts";
import { TokenKeeper, type TokenOwner } from "./accounts/auth.ts";
import { ClientClosedError } from "./errors.ts";
import type { HttpServer } from "./http/http_call.ts";
import type { JsonObject } from "./json_args.ts";
import * as clientLimits from "./limits.ts";
import { OptimisticResults, type OptimisticUpdate } from "./queries/optimistic.ts";
import { type CallEnd, type PolledResults, Polling } from "./connection/polling.ts";
import { QuerySet, type StagedResults } from "./queries/query_set.ts";
import { type Call, Requests, type VisibleMutation } from "./requests.ts";
import { SocketDriver, type SocketEnvironment, type SocketOwner } from "./connection/socket_driver.ts";
import { CLIENT_VERSION } from "./version.ts";
import { WireSession } from "./connection/wire_session.ts";

/** Receives notifications of the core. */
export interface CoreObserver {
  /** The shown results of these queries changed. */
  resultsChanged(keys: ReadonlySet<string>): void;
  /** These queries have a new result from the server, changed or not. */
  resultsArrived(keys: ReadonlySet<string>): void;
  /** The connection state changed. */
  stateChanged(): void;
  /** The server has accepted a token, or there is none. */
  authChanged(isAuthenticated: boolean): void;
  /** Log lines of a function; only sent by servers with `--dev`. */
  logLines(udfPath: string, lines: readonly string[]): void;
}

/** Dependencies of the core. */
export interface CoreEnvironment extends SocketEnvironment {
  readonly sessionId: string;
  /** HTTP endpoints for polling; `null` disables it. */
  readonly http: HttpServer | null;
}

export class SyncCore implements SocketOwner, TokenOwner {
  readonly queries: QuerySet = new QuerySet();
  readonly requests: Requests = new Requests();
  readonly results: OptimisticResults = new OptimisticResults(this.queries);
  readonly tokens: TokenKeeper;
  readonly driver: SocketDriver;
  /** Receivers of messages that the core does not handle. */
  readonly extensions: ((message: object) => void)[] = [];
  readonly #polling: Polling | null;
  readonly #environment: CoreEnvironment;
  readonly #observer: CoreObserver;
  /** Versions of the open socket; `null` without one. */
  #session: WireSession | null = null;
  /** Whether the handshake of the open socket is complete; nothing else is sent before. */
  #handshakeDone = false;
  #flushQueued = false;
  /** Highest ts of applied Transitions and answered mutations, which a new socket must reach (CL14). */
  #observedTs = 0;

  constructor(environment: CoreEnvironment, observer: CoreObserver) {
    this.#environment = environment;
    this.#observer = observer;
    this.tokens = new TokenKeeper(environment.clock, this);
    this.driver = new SocketDriver(environment, this);
    const { queries, requests, tokens } = this;
    this.#polling = environment.http &&
      new Polling({ ...environment.http, ...environment, queries, requests, tokens }, this);
  }

  /** The current transport: a socket after its handshake, HTTP, or none. */
  get transport(): "webSocket" | "polling" | null {
    return this.#handshakeDone ? "webSocket" : this.#polling?.active ? "polling" : null;
  }

  /** Retries immediately: the page is visible again, or the user requests it. */
  wake(): void {
    this.driver.wake();
    this.#polling?.refresh();
  }

  /** A caller waits for the next result of a query. */
  resultWanted(): void {
    this.#polling?.refresh();
  }

  /** Sends changes of the query set as one message at the end of the current microtask queue. */
  queriesChanged(): void {
    if (this.#flushQueued) return;
    this.#flushQueued = true;
    queueMicrotask(() => {
      this.#flushQueued = false;
      if (this.#session === null) this.queries.forgetReleased();
      this.#sendModifications();
      this.#polling?.queriesChanged();
    });
  }

  /** Calls a mutation or action. Throws for too many calls and for an optimistic update that throws. */
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
    this.#polling?.close();
    this.requests.closeAll(new ClientClosedError());
  }

  up(): void {
    const maxObservedTs = this.#observedTs;
    this.#session = new WireSession(maxObservedTs);
    const { connectionCount, lastCloseReason } = this.driver.machine;
    this.#send({
      type: "Connect",
      sessionId: this.#environment.sessionId,
      connectionCount,
      lastCloseReason,
      // This client understands request ids in errors.
      clientVersion: `syncline/${CLIENT_VERSION}`,
      features: ["diffs", "presence"],
      ...maxObservedTs > 0 && { maxObservedTs },
    });
    // The server no longer recognises these mutations, so resending could run them twice.
    this.#dropUpdates(this.requests.rejectSent(this.#environment.clock.now() - clientLimits.resendMs));
    this.tokens.prepare();
    this.#completeHandshake();
  }

  down(): void {
    this.#session = null;
    this.#handshakeDone = false;
    this.queries.connectionLost();
    this.requests.connectionLost();
  }

  phaseChanged(): void {
    this.#polling?.connectionChanged(this.driver.machine);
    this.#observer.stateChanged();
  }

  trySocket(): void {
    this.driver.wake();
  }

  pollingChanged(givenUp: readonly number[]): void {
    this.#dropUpdates(givenUp);
    this.#observer.stateChanged();
  }

  polled(results: PolledResults, visibleTs: number): void {
    const changed = this.queries.applyPolled(results);
    this.#complete(visibleTs, changed);
    this.#observer.resultsArrived(new Set(Array.from(results.keys(), ({ key }) => key)));
  }

  callEnded(call: Call, end: CallEnd): void {
    this.#observe(end.ts);
    this.#showLogLines(call.udfPath, end.logLines);
    if (end.dropUpdate) this.#dropUpdates([call.requestId]);
    // A socket may have opened in the meantime and shown the writes.
    else if (this.#session !== null) this.#complete(this.#session.visibleTs);
    this.#sendCalls();
    this.#observer.stateChanged();
  }

  writesOverdue(): void {
    const session = this.#session;
    // A socket whose queries are not restored yet shows less than polling did.
    if (session !== null && (!this.#handshakeDone || session.visibleTs < 0)) this.#polling?.awaitWrites();
    else if (this.transport !== null) this.#resolve(this.requests.takeAnsweredOverHttp(), new Set());
  }

  tokenDecided(): void {
    const session = this.#session;
    if (session === null) {
      this.#polling?.tokenDecided();
      return;
    }
    if (!this.#handshakeDone) return this.#completeHandshake();
    const { token } = this.tokens;
    if (session.token !== token) this.#send(session.authenticate(token));
    else if (session.unconfirmedTokens.length === 0) this.tokens.confirmed(token);
    this.#sendModifications();
    this.#sendCalls();
  }

  authChanged(isAuthenticated: boolean): void {
    this.#observer.authChanged(isAuthenticated);
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
        return this.#apply(message);
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
        this.driver.useful();
        for (const receive of this.extensions) receive(message);
    }
  }

  /** Completes the handshake of a new socket once the token is decided. */
  #completeHandshake(): void {
    const session = this.#session;
    if (session === null || this.#handshakeDone || !this.tokens.decided) return;
    this.#handshakeDone = true;
    if (this.tokens.token === null) this.tokens.confirmed(null);
    else this.#send(session.authenticate(this.tokens.token));
    const modifications = this.queries.takeModifications();
    if (modifications.length > 0) this.#send(session.readd(modifications));
    // Without queries, committed mutations are visible immediately and no Transition is expected.
    else this.#complete(Infinity);
    this.#sendCalls();
    this.#observer.stateChanged();
  }

  /** Applies a Transition and shows its results. Applies nothing after a fault. */
  #apply(transition: Transition): void {
    const session = this.#session;
    if (session === null) return;
    const staged = this.#stage(session, transition);
    if (staged === null) return;
    const { endVersion, modifications } = transition;
    const changed = this.queries.apply(staged);
    const confirmed = session.advance(endVersion);
    // Older than Connect requested: the server was restored to an earlier state that never reaches the requested ts.
    if (endVersion.ts < session.observedTs) this.#observedTs = endVersion.ts;
    else this.#observe(endVersion.ts);
    this.driver.useful();
    for (const modification of modifications) {
      if (modification.type === "QueryRemoved") continue;
      this.#showLogLines(this.queries.pathOf(modification.queryId), modification.logLines);
    }
    this.#complete(session.visibleTs, changed);
    this.#observer.resultsArrived(new Set(Array.from(staged.keys(), ({ key }) => key)));
    if (confirmed && session.unconfirmedTokens.length === 0) this.tokens.confirmed(session.confirmedToken);
    this.#sendModifications();
  }

  /** Computes the results of a Transition; `null` after a fault. */
  #stage(session: WireSession, transition: Transition): StagedResults | null {
    const misfit = session.misfit(transition);
    try {
      if (misfit === null) return this.queries.stage(transition);
      this.driver.fault(misfit);
    } catch (error) {
      this.driver.fault(`cannot apply a Transition: ${error}`);
    }
    return null;
  }

  /** Resolves the mutations visible at `visibleTs`, together with the changed results. */
  #complete(visibleTs: number, changed = new Set<string>()): void {
    this.#resolve(this.requests.takeVisible(visibleTs), changed);
  }

  /** Removes the layers of mutations, shows the results, then resolves the mutations. */
  #resolve(visible: readonly VisibleMutation[], changed: Set<string>): void {
    for (const key of this.results.replay(visible.map(({ requestId }) => requestId))) changed.add(key);
    if (changed.size > 0) this.#observer.resultsChanged(changed);
    for (const { resolve } of visible) resolve();
  }

  #dropUpdates(requestIds: readonly number[]): void {
    const changed = this.results.replay(requestIds);
    if (changed.size > 0) this.#observer.resultsChanged(changed);
  }

  #observe(ts: number): void {
    this.#observedTs = Math.max(this.#observedTs, ts);
  }

  #mutationAnswered(response: MutationResponse): void {
    this.driver.useful();
    if (response.success) this.#observe(response.ts);
    this.#showLogLines(this.requests.pathOf(response.requestId), response.logLines);
    switch (this.requests.mutationAnswered(response)) {
      case "committed":
        this.#complete(this.#session?.visibleTs ?? -1);
        break;
      case "failed":
        this.#dropUpdates([response.requestId]);
        break;
      case "unknown":
        break;
    }
    this.#sendCalls();
    this.#observer.stateChanged();
  }

  /**
   * The server refused a token or ended its session. The token is unambiguous if it was confirmed on this socket, or is the only
   * one sent on a socket without a confirmed token.
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

  /** Whether queries and calls may be sent: not before the handshake, and not while setAuth waits for its token. */
  get #flowing(): boolean {
    return this.#handshakeDone && this.tokens.decided;
  }

  #sendModifications(): void {
    const session = this.#session;
    if (session === null || !this.#flowing) return;
    if (session.unanswered >= clientLimits.unansweredTransitionsMax) return;
    const modifications = this.queries.takeModifications();
    if (modifications.length > 0) this.#send(session.modify(modifications));
  }

  #sendCalls(): void {
    if (!this.#flowing) return this.#polling?.sendCalls();
    for (
      const { kind, requestId, udfPath, args } of this.requests.takeSendable(this.#environment.clock.now())
    ) {
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
