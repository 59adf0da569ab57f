/** `createTestServer`: runs an app's functions on the real engine, in the test's own process. */
import { setImmediate } from "node:timers";
import { SynclineClient, type WebSocketFactory, type WebSocketLike } from "../client/mod.ts";
import type { AnyDataModel, DataModel, Id, MutationCtx, Schema } from "../functions/api/service.ts";
import type { FunctionCall } from "../functions/host_port.ts";
import { anonymous, type Identity } from "../functions/identity.ts";
import type { LoadedApp } from "../functions/isolate/mod.ts";
import type { Outcome } from "../functions/outcome.ts";
import type { CallArgs, FunctionName, ResultOf } from "../protocol/client_function_names.ts";
import { presenceActions, RoomHub } from "../presence/mod.ts";
import type { FunctionKind } from "../protocol/function_reference.ts";
import { Scheduler } from "../scheduler/mod.ts";
import type { RequestGate } from "../server/http/request_gate.ts";
import { Streams } from "../streams/mod.ts";
import {
  type Authenticator,
  type Channel,
  Hub,
  refuseCall,
  type SessionEnd,
  type SocketHandle,
  type Verification,
} from "../sync/mod.ts";
import { TestClock } from "./clock.ts";
import { InProcessHost } from "./in_process_host.ts";
import { loadTestApp } from "./load_test_app.ts";
import { type CallerPort, resultOf, TestCaller } from "./test_caller.ts";
import { testGate, testHttp } from "./test_http.ts";
import { TestStorage } from "./test_storage.ts";
import type { TestSubscription } from "./test_subscription.ts";
import { registerWork, testPaths } from "./test_system.ts";
import type { ModelOf, SignedInUser, TestServerOptions, TestUser, UploadOptions } from "./test_types.ts";

/** Returns a `WebSocket` class whose sockets connect to a hub. */
function memorySockets(hub: Hub): WebSocketFactory {
  return class MemorySocket implements WebSocketLike {
    onopen: ((event: never) => void) | null = null;
    onmessage: ((event: never) => void) | null = null;
    onclose: ((event: never) => void) | null = null;
    onerror: ((event: never) => void) | null = null;
    /** The hub's end of an open socket. */
    #handle: SocketHandle | null = null;
    #closed = false;

    constructor(_url: string) {
      queueMicrotask(() => {
        if (this.#closed) return;
        this.#handle = hub.connect({
          bufferedAmount: 0,
          acknowledgedBytes: null,
          setReceiveWindow: () => {},
          cut: () => this.#later(() => this.#end(1006, "")),
          send: (text) => this.#later(() => this.onmessage?.({ data: text } as never)),
          close: (code, reason) => this.#later(() => this.#end(code, reason)),
        });
        if (this.#handle !== null) this.onopen?.({} as never);
      });
    }

    send(text: string): void {
      this.#later(() => this.#handle?.receive(text));
    }

    close(code = 1000, reason = ""): void {
      this.#end(code, reason);
    }

    #later(run: () => void): void {
      queueMicrotask(() => {
        if (!this.#closed) run();
      });
    }

    #end(code: number, reason: string): void {
      if (this.#closed) return;
      this.#closed = true;
      this.#handle?.closed(code);
      queueMicrotask(() => this.onclose?.({ code, reason } as never));
    }
  };
}

/** Authenticator of a test server: tokens that name an identity, without passwords or signatures. */
class TestTokens implements Authenticator {
  readonly #identities = new Map<string, Identity>();
  readonly #listeners: ((ended: SessionEnd) => void)[] = [];

  /** Returns a token for an identity, valid until its session ends. */
  issue(identity: Identity): string {
    const token = `test.${identity.sessionId}.token`;
    this.#identities.set(token, identity);
    return token;
  }

  /** Ends a session, like signing out. */
  endSession(sessionId: string): void {
    this.#identities.delete(`test.${sessionId}.token`);
    for (const listener of this.#listeners) listener({ sessionId });
  }

  verify(token: string): Promise<Verification> {
    const identity = this.#identities.get(token);
    if (identity === undefined) {
      const error = token.startsWith("test.") ? "session has ended" : "malformed access token";
      return Promise.resolve({ ok: false, error });
    }
    return Promise.resolve({ ok: true, identity, expiresAt: null });
  }

  onSessionEnd(listener: (ended: SessionEnd) => void): void {
    this.#listeners.push(listener);
  }
}

/** Default start of a test server's clock: 2030-01-01T00:00:00Z. */
const START = Date.UTC(2030, 0, 1);

/** Access for a test in another process. */
export interface RemoteAccess extends Pick<CallerPort, "run"> {
  /** Opens the hub's end of a socket; returns `null` if the hub refuses it. */
  connect(channel: Channel): SocketHandle | null;
}

export const remoteAccess: unique symbol = Symbol("remoteDoor");

/**
 * An app under test. Calls on the server itself are anonymous; {@linkcode asUser} returns signed-in callers.
 */
export class TestServer<Model extends DataModel = AnyDataModel> implements AsyncDisposable {
  readonly #folder: string;
  readonly #host: InProcessHost;
  readonly #hub: Hub;
  /** Sends changes of presence when the clock advances. */
  readonly #rooms: RoomHub;
  readonly #clock: TestClock;
  readonly #tokens = new TestTokens();
  readonly #clients = new Set<SynclineClient>();
  readonly #dev: boolean;
  readonly #port: CallerPort;
  readonly #anonymous: TestCaller;
  readonly #scheduler: Scheduler;
  /** Set by {@linkcode open}, like the following fields. */
  #storage: TestStorage | null = null;
  #streams: Streams | null = null;
  #http: ((request: Request) => Promise<Response>) | null = null;
  #sessions = 0;
  #closed = false;

  private constructor(
    app: LoadedApp,
    { folder, functionsUrl, options }: {
      readonly folder: string;
      readonly functionsUrl: string;
      readonly options: TestServerOptions;
    },
  ) {
    this.#folder = folder;
    this.#clock = new TestClock(Number(options.now ?? START));
    this.#dev = options.dev ?? true;
    this.#host = new InProcessHost({
      app,
      functionsUrl,
      databasePath: `${folder}/data.db`,
      now: () => this.#clock.now(),
      env: options.env ?? {},
      callTimeoutMs: options.callTimeoutMs,
    });
    this.#rooms = new RoomHub(this.#clock);
    this.#hub = new Hub({
      host: this.#host,
      authenticator: this.#tokens,
      rooms: this.#rooms,
      dev: this.#dev,
    });
    this.#host.serveQueries((call) => this.#hub.query(call));
    this.#port = {
      dev: this.#dev,
      run: async (kind, call) => refuseCall(call) ?? await this.#run(kind, call),
      connect: (token) => this.#connect(token),
      fetch: (request) => this.#respond(request),
    };
    this.#anonymous = new TestCaller(this.#port, { identity: anonymous, token: null });
    this.#scheduler = new Scheduler({
      port: {
        mutate: (call) => this.#host.mutate(call),
        query: (call) => this.#hub.query(call),
        act: (call) => this.#host.act(call),
      },
      appCrons: () => app.crons,
      clock: this.#clock,
      clockCheckMs: Infinity,
      log: () => {},
    });
    this.#host.onCommits((entries) => this.#scheduler.applyCommits(entries));
  }

  /** See {@linkcode createTestServer}. */
  static async open<S extends Schema>(options: TestServerOptions<S>): Promise<TestServer<ModelOf<S>>> {
    const gate = testGate(options.allowOrigins);
    const { app, functionsUrl } = await loadTestApp(options);
    const folder = await Deno.makeTempDir({ prefix: "syncline-test-" });
    try {
      const server: TestServer<ModelOf<S>> = new TestServer(app, { folder, functionsUrl, options });
      await server.#openHttp({ ...options, gate });
      await server.#scheduler.start();
      // Crons with an interval first run when they are declared.
      await server.settled();
      return server;
    } catch (error) {
      await Deno.remove(folder, { recursive: true });
      throw error;
    }
  }

  /** The server's time in milliseconds since the epoch. It is frozen except for {@linkcode advance}. */
  now(): number {
    return this.#clock.now();
  }

  /**
   * Advances the clock and runs due scheduled functions and crons in order. Resolves when everything they started has
   * finished. Throws `RangeError` for a negative duration.
   */
  async advance(ms: number): Promise<void> {
    if (!(ms >= 0)) throw new RangeError(`advance() needs a duration of at least 0 ms, received ${ms}`);
    const end = this.#clock.now() + ms;
    await this.settled();
    for (let next = this.#clock.nextAt; next !== null && next <= end; next = this.#clock.nextAt) {
      this.#clock.moveTo(next);
      await turnOfEventLoop();
      if (!this.#idle) await this.settled();
    }
    this.#clock.moveTo(end);
    await this.settled();
  }

  /** Resolves when nothing is in flight and every live query shows the newest commit. */
  async settled(): Promise<void> {
    do {
      await turnOfEventLoop();
    } while (!this.#idle);
    await turnOfEventLoop();
  }

  get #idle(): boolean {
    return this.#host.callsInFlight === 0 && !this.#hub.busy;
  }

  /** An anonymous caller, equivalent to calling the server itself. */
  asAnonymous(): TestCaller {
    return new TestCaller(this.#port, { identity: anonymous, token: null });
  }

  /** Signs in a user with a new session. A string is short for the name. */
  async asUser(user: TestUser | string = {}): Promise<SignedInUser> {
    const { emailVerified = true, ...rest } = typeof user === "string" ? { name: user } : user;
    const userId = await this.#system(testPaths.createUser, { ...rest, emailVerified });
    return this.#signedIn({ principal: `user:${userId}`, userId, adminId: null }) as SignedInUser;
  }

  /** Signs in an administrator. */
  async asAdmin(email = "admin@example.com"): Promise<TestCaller> {
    const adminId = await this.#system(testPaths.createAdmin, { email });
    return this.#signedIn({ principal: `admin:${adminId}`, userId: null, adminId });
  }

  /** Ends a caller's session, as signing out elsewhere does. Its clients become anonymous. */
  endSession({ sessionId }: TestCaller): void {
    if (sessionId !== null) this.#tokens.endSession(sessionId);
  }

  /** Runs a callback as a mutation, to inspect or fill the database. The result is JSON. */
  async run<Result>(work: (ctx: MutationCtx<Model>) => Result | Promise<Result>): Promise<Result> {
    const args = { work: registerWork(work as (ctx: unknown) => unknown) };
    const call = { udfPath: testPaths.run, args, identity: anonymous, origin: "server" } as const;
    return resultOf("run()", await this.#run("mutation", call), { dev: true }) as Result;
  }

  query<Name extends FunctionName<"query">>(name: Name, ...args: CallArgs<Name>): Promise<ResultOf<Name>> {
    return this.#anonymous.query(name, ...args);
  }

  mutation<Name extends FunctionName<"mutation">>(
    name: Name,
    ...args: CallArgs<Name>
  ): Promise<ResultOf<Name>> {
    return this.#anonymous.mutation(name, ...args);
  }

  action<Name extends FunctionName<"action">>(name: Name, ...args: CallArgs<Name>): Promise<ResultOf<Name>> {
    return this.#anonymous.action(name, ...args);
  }

  subscribe<Name extends FunctionName<"query">>(
    name: Name,
    ...args: CallArgs<Name>
  ): TestSubscription<ResultOf<Name>> {
    return this.#anonymous.subscribe(name, ...args);
  }

  /**
   * Sends an anonymous request to a path or URL; `asUser(...)` has the same for a user. The server handles it like a server
   * without a frontend: function calls, files at URLs from `ctx.storage`, and the routes of the app's `http.ts`.
   */
  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    return await this.#anonymous.fetch(input, init);
  }

  /**
   * Uploads a file to a URL of `ctx.storage.generateUploadUrl()`, with the type and name of the blob by default. Resolves to
   * the file id once it is committed and visible to live queries. Rejects with a `FunctionError` with the response's code.
   */
  async upload(url: string, contents: Blob, options: UploadOptions = {}): Promise<Id<"_storage">> {
    const id = await this.#openedStorage.upload(url, contents, options);
    if (this.#hub.load.sockets > 0) await this.settled();
    return id as Id<"_storage">;
  }

  /** Closes all clients and the database, and removes the folder. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const client of this.#clients) client.close();
    await this.#scheduler[Symbol.asyncDispose]();
    await this.#hub.shutdown();
    await this.settled();
    this.#rooms[Symbol.dispose]();
    this.#streams?.[Symbol.dispose]();
    await this.#storage?.[Symbol.asyncDispose]();
    this.#host[Symbol.dispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** For a test in another process. */
  get [remoteAccess](): RemoteAccess {
    return { run: this.#port.run, connect: (channel) => this.#hub.connect(channel) };
  }

  get #openedStorage(): TestStorage {
    if (this.#storage === null) throw new TypeError("The test server is not open");
    return this.#storage;
  }

  async #openHttp(
    { gate, uploadMaxBytes }: { readonly gate: RequestGate; readonly uploadMaxBytes?: number },
  ): Promise<void> {
    const storage = this.#storage = await TestStorage.open({
      folder: this.#folder,
      port: { mutate: (call) => this.#host.mutate(call), query: (call) => this.#hub.query(call) },
      now: () => this.#clock.now(),
      uploadBytesMax: uploadMaxBytes,
    });
    const streams = this.#streams = new Streams(storage.service.store, this.#clock);
    this.#host.serveCtxActions(
      new Map([...storage.service.actions, ...presenceActions(this.#rooms), ...streams.actions]),
    );
    this.#host.onCommits((entries) => storage.service.applyCommits(entries));
    this.#http = testHttp({
      host: this.#host,
      hub: this.#hub,
      authenticator: this.#tokens,
      dev: this.#dev,
      storage,
      streams,
      gate,
    });
  }

  async #respond(request: Request): Promise<Response> {
    if (this.#http === null) throw new TypeError("The test server is not open");
    const response = await this.#http(request);
    if (this.#hub.load.sockets > 0) await this.settled();
    return response;
  }

  async #run(kind: FunctionKind, call: FunctionCall): Promise<Outcome> {
    const outcome = kind === "query"
      ? await this.#hub.query(call)
      : kind === "mutation"
      ? (await this.#host.mutate(call)).outcome
      : await this.#host.act(call);
    if (kind !== "query" && this.#hub.load.sockets > 0) await this.settled();
    return outcome;
  }

  #connect(token: string | null): SynclineClient {
    const client = new SynclineClient("http://test.invalid", {
      webSocket: memorySockets(this.#hub),
      polling: false,
    });
    this.#clients.add(client);
    if (token !== null) client.setAuth(() => Promise.resolve(token));
    return client;
  }

  async #system(udfPath: string, args: Record<string, unknown>): Promise<string> {
    const call = { udfPath, args, identity: anonymous, origin: "system" } as const;
    return resultOf(udfPath, await this.#run("mutation", call), { dev: true }) as string;
  }

  #signedIn(who: Omit<Identity, "sessionId">): TestCaller {
    const identity = { ...who, sessionId: `session-${++this.#sessions}` };
    return new TestCaller(this.#port, { identity, token: this.#tokens.issue(identity) });
  }
}

/**
 * Starts an app's functions on the real engine with a temporary folder, without ports or other processes.
 *
 * @example
 * ```ts
 * import { createTestServer } from "syncline/test";
 *
 * Deno.test("a sent message appears", async () => {
 *   await using server = await createTestServer({ functionsDir: new URL("../functions", import.meta.url) });
 *   const ada = await server.asUser("Ada");
 *   using messages = ada.subscribe("messages:list", { channel: "general" });
 *   await ada.mutation("messages:send", { channel: "general", body: "Hello" });
 *   await messages.until((list) => (list as unknown[]).length === 1);
 * });
 * ```
 */
export function createTestServer<S extends Schema = Schema>(
  options: TestServerOptions<S>,
): Promise<TestServer<ModelOf<S>>> {
  return TestServer.open(options);
}

/** Yields until all ready promises have run; nothing here waits for other events. */
function turnOfEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
