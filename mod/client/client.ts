/** The client an app holds: subscriptions, calls, sign-in and the state of the connection, over one WebSocket. */
import { functionPath } from "../protocol/function_reference.ts";
import type { ArgsOf, CallArgs, FunctionName, ResultOf } from "../protocol/client_function_names.ts";
import { type AccountOptions, Accounts, type TokenHolder, type TokenPlace } from "./accounts/accounts.ts";
import { syncAddress } from "./connection/addresses.ts";
import type { AuthState, FetchToken, OnAuthChange } from "./accounts/auth.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { ConnectionPhase } from "./connection/connection.ts";
import { ClientClosedError, type FunctionError, reportUnhandled } from "./errors.ts";
import { jsonArgs, type JsonObject } from "./json_args.ts";
import type { OptimisticStore } from "./queries/optimistic.ts";
import { queryKey, type QueryResult } from "./queries/query_set.ts";
import { randomUuid } from "./random_uuid.ts";
import type { WebSocketFactory } from "./connection/socket_driver.ts";
import { SyncCore } from "./sync_core.ts";
import { onWake } from "./connection/wake_events.ts";
import { Watches } from "./queries/watches.ts";

export interface SynclineClientOptions {
  /** Makes the sockets; the platform's `WebSocket` unless given. */
  readonly webSocket?: WebSocketFactory;
  readonly clock?: Clock;
  /** Numbers from 0 to below 1, for jitter. */
  readonly random?: () => number;
  /** Called with the log lines of functions; only servers with `--dev` send them. */
  readonly onLogLines?: (udfPath: string, lines: readonly string[]) => void;
  /**
   * Whether to poll over HTTP where sockets are blocked; `true` unless given. Polled results are never older than what was
   * shown, but those of several queries are not of one moment, and {@linkcode SynclineClient.query} may give what was asked
   * a moment before; a mutation that gets no answer is rejected with
   * {@linkcode ConnectionLostError} instead of being sent again.
   */
  readonly polling?: boolean;
  /** The platform's `fetch` unless given; for polling and for `client.auth`. */
  readonly fetch?: typeof fetch;
  /** How `client.auth` keeps tokens and reaches the server. */
  readonly accounts?: AccountOptions;
}

/** The connection as an app shows it. */
export interface ConnectionState {
  readonly phase: ConnectionPhase;
  /**
   * What carries results and calls: a WebSocket; HTTP in their place (`polling`) while the client goes on trying to open a
   * WebSocket; `null` when nothing does.
   */
  readonly transport: "webSocket" | "polling" | null;
  /** Whether results and calls flow, over either. */
  readonly isConnected: boolean;
  readonly hasEverConnected: boolean;
  /** Attempts to connect so far, but for the first. */
  readonly connectionCount: number;
  /** Failed attempts in a row. */
  readonly retries: number;
  /** When the next attempt begins, in milliseconds since the epoch; `null` unless one is being waited for. */
  readonly reconnectsAt: number | null;
  /** Mutations without an answer, sent or waiting. */
  readonly inflightMutations: number;
  /** Actions without an answer, sent or waiting. */
  readonly inflightActions: number;
  /** Age of the oldest call without an answer, in milliseconds; `null` when there is none. */
  readonly oldestCallAgeMs: number | null;
  /** Why the last socket ended; `null` before the first end. */
  readonly lastCloseReason: string | null;
}

export interface MutationOptions<Args = JsonObject> {
  /** Changes local results as the mutation is expected to, until the real ones are there. */
  readonly optimisticUpdate?: (store: OptimisticStore, args: Args) => void;
}

/** A query held live, for code that reads results when it wants to (UI frameworks). */
export interface QueryWatch<Result> {
  /** Calls `listener` whenever the result changes. Returns what ends it. The query is live while a listener is there. */
  onUpdate(listener: () => void): () => void;
  /** The result to show now, `undefined` while there is none. Throws the query's {@linkcode FunctionError}. */
  localResult(): Result | undefined;
}

/**
 * A live connection to a Syncline server.
 *
 * @example
 * ```ts
 * const client = new SynclineClient("http://localhost:3210");
 * const unsubscribe = client.subscribe("messages:list", { channel: "general" }, (messages) => show(messages));
 * await client.mutation("messages:send", { channel: "general", body: "Hello" });
 * ```
 */
export class SynclineClient {
  readonly #core: SyncCore;
  readonly #clock: Clock;
  readonly #watches: Watches;
  readonly #stateListeners = new Set<(state: ConnectionState) => void>();
  readonly #endWake: () => void;
  readonly #makeAccounts: () => Accounts;
  #accounts: Accounts | null = null;
  /** Whose tokens the connection uses; `null` until somebody has given any. */
  #holder: TokenHolder | null = null;
  #authState: AuthState = { status: "signedOut" };
  readonly #authListeners = new Set<(state: AuthState) => void>();
  #stateQueued = false;
  #closed = false;

  /** Connects at once. `server` is the address of the server; on a page it may be relative. Throws `TypeError`. */
  constructor(server: string | URL, options: SynclineClientOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    const fetch = options.fetch ?? ((...request) => globalThis.fetch(...request));
    const environment = {
      url: syncAddress(server),
      WebSocket: options.webSocket ?? platformWebSocket(),
      clock: this.#clock,
      random: options.random ?? Math.random,
      sessionId: randomUuid(),
      http: options.polling === false ? null : { server, fetch },
    };
    this.#core = new SyncCore(environment, {
      resultsChanged: (keys) => this.#watches.deliver(keys),
      resultsArrived: (keys) => this.#watches.arrived(keys, (key) => this.#core.queries.result(key)),
      stateChanged: () => this.#announceState(),
      authTold: (isAuthenticated) => this.#showAuth(isAuthenticated ? "signedIn" : "signedOut"),
      logLines: (udfPath, lines) => options.onLogLines?.(udfPath, lines),
    });
    this.#watches = new Watches((key) => this.#core.results.result(key));
    this.#endWake = onWake(this.#clock, () => this.reconnectNow());
    const place: TokenPlace = {
      holder: () => this.#holder,
      use: (holder, fetchToken) => this.#useTokens(holder, fetchToken),
    };
    const { clock } = environment;
    this.#makeAccounts = () =>
      new Accounts(server, { fetch, ...options.accounts, connection: this, place, clock });
    this.#core.driver.start();
  }

  /**
   * The server's own accounts: sign-up, sign-in, sign-out. From its first use on it keeps the connection signed in with
   * the tokens that are stored; where the app has called `setAuth` or `clearAuth` it waits until somebody signs in with it.
   */
  get auth(): Accounts {
    this.#assertOpen();
    return this.#accounts ??= this.#makeAccounts();
  }

  /**
   * Calls `onResult` with the query's result and again whenever it changes. Results are read-only: all subscribers of
   * equal queries share them, and parts that did not change stay the same objects. A query that fails stays live and
   * may recover; without `onError` its failures are unhandled rejections. Returns what ends the subscription.
   * Throws `TypeError` for arguments that are not JSON, `RangeError` for too many different queries.
   */
  subscribe<Name extends FunctionName<"query">>(
    query: Name,
    args: ArgsOf<Name>,
    onResult: (value: ResultOf<Name>) => void,
    onError?: (error: FunctionError) => void,
  ): () => void {
    const { key, release } = this.#use(query, args);
    const watch = this.#watches.add(key, { onResult: onResult as (value: unknown) => void, onError });
    return once(() => {
      watch.end();
      release();
    });
  }

  /** A query for UI frameworks; it is live while it has listeners. */
  watchQuery<Name extends FunctionName<"query">>(
    query: Name,
    ...[args]: CallArgs<Name>
  ): QueryWatch<ResultOf<Name>> {
    const key = queryKey(functionPath(query), jsonArgs(args));
    return {
      onUpdate: (listener) => this.subscribe(query, args as ArgsOf<Name>, listener, listener),
      localResult: () => valueOf(this.#core.results.result(key)) as ResultOf<Name> | undefined,
    };
  }

  /** The query's result once, as of now or later. Rejects with {@linkcode FunctionError} when the query fails. */
  async query<Name extends FunctionName<"query">>(
    query: Name,
    ...[args]: CallArgs<Name>
  ): Promise<ResultOf<Name>> {
    const { key, release } = this.#use(query, args);
    try {
      const fresh = this.#core.transport === "webSocket" ? this.#core.queries.freshResult(key) : undefined;
      if (fresh !== undefined) return valueOf(fresh) as ResultOf<Name>;
      this.#core.resultWanted();
      return await this.#watches.wait(key) as ResultOf<Name>;
    } finally {
      release();
    }
  }

  /**
   * Runs a mutation exactly once, over reconnections too. Resolves with its result when its writes are visible in all
   * subscribed results. Mutations run in the order they are called. Rejects with {@linkcode FunctionError} when the
   * mutation fails, {@linkcode ClientClosedError} when the client is closed first. Where sockets are blocked and the
   * client polls, and after nine minutes without a connection, {@linkcode ConnectionLostError} when no answer came: whether
   * it ran is then unknown.
   */
  async mutation<Name extends FunctionName<"mutation">>(
    mutation: Name,
    ...[args, { optimisticUpdate } = {}]: CallArgs<Name, [options?: MutationOptions<ArgsOf<Name>>]>
  ): Promise<ResultOf<Name>> {
    const copy = this.#callArgs(args);
    const update = optimisticUpdate &&
      ((store: OptimisticStore) => optimisticUpdate(store, copy as JsonObject & ArgsOf<Name>));
    const call = { udfPath: functionPath(mutation), args: copy, update };
    return await this.#core.call("mutation", call) as ResultOf<Name>;
  }

  /**
   * Runs an action. Rejects with {@linkcode FunctionError} when it fails, {@linkcode ConnectionLostError} when the
   * connection breaks while it runs: whether it did its work is then unknown.
   */
  async action<Name extends FunctionName<"action">>(
    action: Name,
    ...[args]: CallArgs<Name>
  ): Promise<ResultOf<Name>> {
    const call = { udfPath: functionPath(action), args: this.#callArgs(args) };
    return await this.#core.call("action", call) as ResultOf<Name>;
  }

  /**
   * Signs the connection in with the tokens `fetchToken` gives: now, before a token expires, and when the server refuses
   * one. While it gives none (`null`, an error, no answer) the connection is anonymous. `onChange` is told each time the
   * server has accepted a token or it has become clear that there is none.
   */
  setAuth(fetchToken: FetchToken, onChange?: OnAuthChange): void {
    this.#useTokens(theApp, fetchToken, onChange);
  }

  /** Makes the connection anonymous. */
  clearAuth(): void {
    this.#assertOpen();
    // Nobody, from whom the next tokens make it `loading` again.
    this.#holder = { userId: null };
    this.#core.tokens.clearAuth();
    this.#showAuth("signedOut");
  }

  /**
   * Who is signed in: with the app's own tokens when it has given some, else with those of `client.auth`, whose first use
   * this may be. The same object until it changes.
   */
  authState(): AuthState {
    if (this.#holder === null && !this.#closed) void this.auth;
    return this.#authState;
  }

  /** Calls `listener` whenever {@linkcode authState} changes. Returns what ends it. */
  onAuthState(listener: (state: AuthState) => void): () => void {
    this.#authListeners.add(listener);
    return () => this.#authListeners.delete(listener);
  }

  connectionState(): ConnectionState {
    const { machine, reconnectsAt } = this.#core.driver;
    const { mutations, actions, oldestCalledAt } = this.#core.requests.summary();
    return {
      phase: machine.phase,
      transport: this.#core.transport,
      isConnected: this.#core.transport !== null,
      hasEverConnected: machine.everOpened,
      connectionCount: machine.connectionCount,
      retries: machine.retries,
      reconnectsAt,
      inflightMutations: mutations,
      inflightActions: actions,
      oldestCallAgeMs: oldestCalledAt === null ? null : this.#clock.now() - oldestCalledAt,
      lastCloseReason: machine.lastCloseReason,
    };
  }

  /** Calls `listener` after changes of the connection's state, once a turn. Returns what ends it. */
  onConnectionState(listener: (state: ConnectionState) => void): () => void {
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  /** Ends the wait before the next attempt, and gives up a socket that has been silent for long. */
  reconnectNow(): void {
    this.#core.wake();
  }

  /** Closes the connection for good. Calls without an answer are rejected with {@linkcode ClientClosedError}. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#endWake();
    this.#accounts?.close();
    this.#core.close();
    this.#watches.closeAll(new ClientClosedError());
  }

  #use(query: FunctionName<"query">, args: unknown): { key: string; release: () => void } {
    const { key } = this.#core.queries.use(functionPath(query), this.#callArgs(args));
    this.#core.queriesChanged();
    const release = () => {
      this.#core.queries.release(key);
      this.#core.queriesChanged();
    };
    return { key, release };
  }

  #callArgs(args: unknown): JsonObject {
    this.#assertOpen();
    return jsonArgs(args);
  }

  #assertOpen(): void {
    if (this.#closed) throw new ClientClosedError();
  }

  #announceState(): void {
    if (this.#stateQueued || this.#stateListeners.size === 0) return;
    this.#stateQueued = true;
    queueMicrotask(() => {
      this.#stateQueued = false;
      const state = this.connectionState();
      tellAll(this.#stateListeners, () => state);
    });
  }

  #useTokens(holder: TokenHolder, fetchToken: FetchToken, onChange?: OnAuthChange): void {
    this.#assertOpen();
    // Tokens of the same holder leave things as they are shown until the server has accepted one.
    if (this.#holder !== holder) {
      this.#holder = holder;
      this.#showAuth("loading");
    }
    this.#core.tokens.setAuth(fetchToken, onChange ?? null);
  }

  #showAuth(status: AuthState["status"]): void {
    const state = status === "signedIn" ? { status, userId: this.#holder?.userId ?? null } : { status };
    if (JSON.stringify(state) === JSON.stringify(this.#authState)) return;
    this.#authState = state;
    // A listener may sign out: those behind it hear of what is then.
    tellAll(this.#authListeners, () => this.#authState);
  }
}

/** The app, which gives tokens with `setAuth`. */
const theApp: TokenHolder = { userId: null };

function tellAll<State>(listeners: ReadonlySet<(state: State) => void>, read: () => State): void {
  for (const listener of [...listeners]) {
    try {
      listener(read());
    } catch (error) {
      reportUnhandled(error);
    }
  }
}

function valueOf(result: QueryResult | undefined): unknown {
  if (result?.ok === false) throw result.error;
  return result?.value;
}

function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
}

function platformWebSocket(): WebSocketFactory {
  const platform = (globalThis as { WebSocket?: WebSocketFactory }).WebSocket;
  if (platform === undefined) {
    throw new TypeError("Cannot connect: pass a WebSocket as the option webSocket");
  }
  return platform;
}
