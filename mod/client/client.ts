/** The client an app holds: subscriptions, calls, sign-in and the state of the connection, over one WebSocket. */
import { functionPath } from "../protocol/function_reference.ts";
import type {
  ArgsOf,
  CallArgs,
  FunctionName,
  PassedArgs,
  ResultOf,
} from "../protocol/client_function_names.ts";
import { type AccountOptions, Accounts, type TokenHolder, type TokenPlace } from "./accounts/accounts.ts";
import { httpAddress, syncAddress, withParameters } from "./connection/addresses.ts";
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
import { type StorageId, type Upload, type UploadOptions, uploadWith } from "./http/upload.ts";
import { Watches } from "./queries/watches.ts";

export interface SynclineClientOptions {
  /** Creates sockets. Default: the platform's `WebSocket`. */
  readonly webSocket?: WebSocketFactory;
  readonly clock?: Clock;
  /** Random numbers from 0 (inclusive) to 1 (exclusive), for jitter. */
  readonly random?: () => number;
  /** Called with the log lines of functions; only servers with `--dev` send them. */
  readonly onLogLines?: (udfPath: string, lines: readonly string[]) => void;
  /**
   * Whether to poll over HTTP where sockets are blocked. Default: `true`. Polled results are never older than those shown before,
   * but the results of several queries may have different timestamps, and {@linkcode SynclineClient.query} may return a result
   * requested shortly before. A mutation without a response is rejected with {@linkcode ConnectionLostError} instead of being
   * resent.
   */
  readonly polling?: boolean;
  /** Used for polling and `client.auth`. Default: the platform's `fetch`. */
  readonly fetch?: typeof fetch;
  /** How `client.auth` stores tokens and reaches the server. */
  readonly accounts?: AccountOptions;
}

/** The connection state as shown by an app. */
export interface ConnectionState {
  readonly phase: ConnectionPhase;
  /**
   * The current transport: a WebSocket; HTTP (`polling`) while the client keeps trying to open a WebSocket; `null` if there is
   * none.
   */
  readonly transport: "webSocket" | "polling" | null;
  /** Whether results and calls are transferred, over either transport. */
  readonly isConnected: boolean;
  readonly hasEverConnected: boolean;
  /** Number of connection attempts, not counting the first. */
  readonly connectionCount: number;
  /** Consecutive failed attempts. */
  readonly retries: number;
  /** When the next attempt starts, in milliseconds since the epoch; `null` if none is scheduled. */
  readonly reconnectsAt: number | null;
  /** Mutations without a response, sent or queued. */
  readonly inflightMutations: number;
  /** Actions without a response, sent or queued. */
  readonly inflightActions: number;
  /** Different queries that {@linkcode SynclineClient.query} waits for. Changes of this number alone are not reported. */
  readonly inflightQueries: number;
  /** Age of the oldest call without a response in milliseconds; `null` if there is none. */
  readonly oldestCallAgeMs: number | null;
  /** Why the last socket closed; `null` if none has closed yet. */
  readonly lastCloseReason: string | null;
}

export interface FileUrlOptions {
  /** Size of a thumbnail in pixels: `"200x100"`, or `"200"` for a square. The file must be an image. */
  readonly thumb?: string;
  /** Whether a thumbnail contains the whole image (the default) or covers the whole size. */
  readonly fit?: "contain" | "cover";
  /** `"1"`: browsers save the file instead of showing it. */
  readonly download?: "1";
}

export interface MutationOptions<Args = JsonObject> {
  /** Changes local results to the expected outcome of a mutation until the real results arrive. */
  readonly optimisticUpdate?: (store: OptimisticStore, args: Args) => void;
}

/** A live query for code that reads results on demand (UI frameworks). */
export interface QueryWatch<Result> {
  /** Calls `listener` whenever the result changes. Returns a function that removes it. The query is live while it has listeners. */
  onUpdate(listener: () => void): () => void;
  /** Returns the current result; `undefined` while it loads. Throws the query's {@linkcode FunctionError}. */
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
  readonly #upload: Upload;
  readonly #files: string;
  readonly #makeAccounts: () => Accounts;
  readonly #start: () => void;
  #accounts: Accounts | null = null;
  /** The current token source; `null` initially. */
  #holder: TokenHolder | null = null;
  #authState: AuthState = { status: "signedOut" };
  readonly #authListeners = new Set<(state: AuthState) => void>();
  #stateQueued = false;
  #closed = false;
  /** Opens the connection; `null` once that is done, until it is paused. */
  #connect: (() => void) | null;
  /** Whether `pause` was called. From then on the connection is only closed during a pause. */
  #wasPaused = false;

  /**
   * Connects immediately in a page or with the option `webSocket`, elsewhere with the first call, subscription, listener or
   * sign-in: a server that only renders pages opens no connection. Where there is no WebSocket, such as in Node 20, these throw.
   * `server` is the URL of the server; in a page it may be relative. Throws `TypeError`, and `Error` without
   * `crypto.getRandomValues`, for which React Native needs a polyfill.
   */
  constructor(server: string | URL, options: SynclineClientOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    const fetch = options.fetch ?? ((...request) => globalThis.fetch(...request));
    this.#upload = uploadWith(options.fetch);
    this.#files = httpAddress(server, "api/storage/");
    const WebSocket = options.webSocket ?? globalThis.WebSocket as WebSocketFactory | undefined;
    const environment = {
      url: syncAddress(server),
      WebSocket: WebSocket as WebSocketFactory,
      clock: this.#clock,
      random: options.random ?? Math.random,
      sessionId: randomUuid(),
      http: options.polling === false ? null : { server, fetch },
    };
    this.#core = new SyncCore(environment, {
      resultsChanged: (keys) => this.#watches.deliver(keys),
      resultsArrived: (keys) => this.#watches.arrived(keys, (key) => this.#core.queries.result(key)),
      stateChanged: () => this.#announceState(),
      authChanged: (isAuthenticated) => this.#showAuth(isAuthenticated ? "signedIn" : "signedOut"),
      logLines: (udfPath, lines) => options.onLogLines?.(udfPath, lines),
    });
    this.#watches = new Watches((key) => this.#core.results.result(key));
    this.#endWake = onWake(this.#clock, () => this.reconnectNow());
    const place: TokenPlace = {
      holder: () => this.#holder,
      use: (holder, fetchToken) =>
        this.#useTokens(holder, async (options) => {
          const token = await fetchToken(options);
          // A refreshed token does not end a pause, but that of a sign-in does.
          if (token !== null && !(options.forceRefresh && this.#wasPaused)) this.#connect?.();
          return token;
        }),
    };
    const { clock } = environment;
    this.#makeAccounts = () =>
      new Accounts(server, { fetch, ...options.accounts, connection: this, place, clock });
    this.#connect = this.#start = () => {
      if (WebSocket === undefined) {
        throw new TypeError("Cannot connect: pass a WebSocket as the option webSocket");
      }
      this.#connect = null;
      this.#core.driver.start();
    };
    if (WebSocket !== undefined && (options.webSocket !== undefined || "document" in globalThis)) {
      this.#connect();
    }
  }

  /**
   * The server's own accounts: sign-up, sign-in, sign-out. From its first use on, keeps the connection signed in with the stored
   * tokens. If the app has called `setAuth` or `clearAuth`, it has no effect until a sign-in through it.
   */
  get auth(): Accounts {
    this.#assertOpen();
    return this.#accounts ??= this.#makeAccounts();
  }

  /**
   * Calls `onResult` with the query's result, and again whenever it changes. Results are read-only: subscribers of equal queries
   * share them, and unchanged parts remain the same objects. A failed query stays live and may recover; without `onError` its
   * failures are unhandled rejections. Returns a function that ends the subscription. Throws `TypeError` for arguments that are
   * not JSON, `RangeError` for too many different queries.
   */
  subscribe<Name extends FunctionName<"query">>(
    query: Name,
    args: ArgsOf<Name> | PassedArgs<Name>,
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

  /** Returns a query for UI frameworks; it is live while it has listeners. */
  watchQuery<Name extends FunctionName<"query">>(
    query: Name,
    ...[args]: CallArgs<Name>
  ): QueryWatch<ResultOf<Name>> {
    const key = queryKey(functionPath(query), jsonArgs(args));
    return {
      onUpdate: (listener) => this.subscribe(query, args as PassedArgs<Name>, listener, listener),
      localResult: () => valueOf(this.#core.results.result(key)) as ResultOf<Name> | undefined,
    };
  }

  /** Returns a current result of the query once. Rejects with {@linkcode FunctionError} if the query fails. */
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
   * Runs a mutation exactly once, even across reconnects. Resolves with its result when its writes are visible in all subscribed
   * results. Mutations run in the order of the calls. Rejects with {@linkcode FunctionError} if the mutation fails, and with
   * {@linkcode ClientClosedError} if the client is closed first. Rejects with {@linkcode ConnectionLostError}, which means that the
   * outcome is unknown, if there was no response while polling or within nine minutes.
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
   * Runs an action. Rejects with {@linkcode FunctionError} if it fails, and with {@linkcode ConnectionLostError} if the connection
   * is lost while it runs: its outcome is then unknown.
   */
  async action<Name extends FunctionName<"action">>(
    action: Name,
    ...[args]: CallArgs<Name>
  ): Promise<ResultOf<Name>> {
    const call = { udfPath: functionPath(action), args: this.#callArgs(args) };
    return await this.#core.call("action", call) as ResultOf<Name>;
  }

  /**
   * Uploads a file to a URL from `ctx.storage.generateUploadUrl()`. Resolves with the file's id, which a mutation then stores in a
   * document. Rejects with the server's message if it refuses the file, and with the reason of the signal if that is aborted.
   *
   * @example
   * ```ts
   * const photo = await client.upload(await client.mutation(api.photos.uploadUrl), file, {
   *   onProgress: (sent) => (bar.value = sent / file.size),
   * });
   * ```
   */
  upload(url: string, file: Blob, options: UploadOptions = {}): Promise<StorageId> {
    return this.#upload(url, file, options);
  }

  /**
   * Returns the URL of a stored file or of its thumbnail. `file` is an ID or a URL from `ctx.storage`. With `--storage-private`,
   * pass a signed URL.
   *
   * @example
   * ```tsx
   * <img src={client.fileUrl(photo, { thumb: "200x200", fit: "cover" })} />
   * ```
   */
  fileUrl(file: string, options: FileUrlOptions = {}): string {
    // Relative to the server's origin, or an ID.
    const base = file[0] === "/" ? this.#files.split("/", 3).join("/") : this.#files;
    return withParameters(/^\w+:/.test(file) ? file : base + file, options);
  }

  /**
   * Signs the connection in with tokens from `fetchToken`, which is called now, before a token expires, and when the server
   * refuses one. While it returns none (`null`, an error, no response) the connection is anonymous. `onChange` is called whenever
   * the server has accepted a token, or when there is none.
   */
  setAuth(fetchToken: FetchToken, onChange?: OnAuthChange): void {
    this.#connect?.();
    this.#useTokens(theApp, fetchToken, onChange);
  }

  /** Makes the connection anonymous. */
  clearAuth(): void {
    this.#assertOpen();
    // No source; the next tokens set the state to `loading` again.
    this.#holder = { userId: null };
    this.#core.tokens.clearAuth();
    this.#showAuth("signedOut");
  }

  /**
   * The signed-in user: with the app's own tokens if it provides some, otherwise with those of `client.auth`, which this may
   * initialize. The same object until it changes.
   */
  authState(): AuthState {
    if (this.#holder === null && !this.#closed) void this.auth;
    return this.#authState;
  }

  /** Calls `listener` whenever {@linkcode authState} changes. Returns a function that removes it. */
  onAuthState(listener: (state: AuthState) => void): () => void {
    this.#connect?.();
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
      inflightQueries: this.#watches.waiting,
      oldestCallAgeMs: oldestCalledAt === null ? null : this.#clock.now() - oldestCalledAt,
      lastCloseReason: machine.lastCloseReason,
    };
  }

  /** Calls `listener` after changes of the connection state, at most once a microtask. Returns a function that removes it. */
  onConnectionState(listener: (state: ConnectionState) => void): () => void {
    this.#connect?.();
    this.#stateListeners.add(listener);
    return () => this.#stateListeners.delete(listener);
  }

  /** Starts the next attempt immediately, replaces a socket that has been silent for long, and ends a {@linkcode pause}. */
  reconnectNow(): void {
    this.#connect?.();
    this.#core.wake();
  }

  /**
   * Closes the connection, for apps in the background. A refreshed token does not open it again. {@linkcode reconnectNow}, a call
   * or a subscription does. So do `setAuth`, a sign-in, a new listener of a state, a room of `syncline/presence`, and a page or a
   * network that is back. Live queries keep their results, and a {@linkcode query} keeps waiting. Actions in flight are rejected if
   * they were sent. Mutations are sent later, but rejected if they were sent before and that is more than nine minutes ago.
   */
  pause(): void {
    this.#connect = this.#start;
    this.#wasPaused = true;
    this.#core.driver.pause();
  }

  /**
   * For other entries of this package, such as `syncline/presence`: passes messages that this class does not handle to `receive`.
   * Returns a function that sends a message. It returns `false` while there is no socket.
   */
  extend(receive: (message: object) => void): (message: object) => boolean {
    this.#connect?.();
    this.#core.extensions.push(receive);
    return (message) => {
      const isOpen = this.#core.transport === "webSocket";
      if (isOpen) this.#core.driver.send(message);
      return isOpen;
    };
  }

  /** Closes the connection permanently. Calls without a response are rejected with {@linkcode ClientClosedError}. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#connect = null;
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
    const copy = jsonArgs(args);
    this.#connect?.();
    return copy;
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
      notifyAll(this.#stateListeners, () => state);
    });
  }

  #useTokens(holder: TokenHolder, fetchToken: FetchToken, onChange?: OnAuthChange): void {
    this.#assertOpen();
    // New tokens of the same source do not change the shown state until the server has accepted one.
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
    // A listener may sign out; the remaining listeners then receive the new state.
    notifyAll(this.#authListeners, () => this.#authState);
  }
}

/** The app as a token source, using `setAuth`. */
const theApp: TokenHolder = { userId: null };

function notifyAll<State>(listeners: ReadonlySet<(state: State) => void>, read: () => State): void {
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
