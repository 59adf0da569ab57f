/** `createTestServer` for tests that run in Node. The server runs in a separate Deno process. */
import { Buffer } from "node:buffer";
import { fileURLToPath } from "node:url";
import { SynclineClient, type WebSocketFactory, type WebSocketLike } from "../../client/mod.ts";
import type { DataModel, Id, MutationCtx, Schema } from "../../functions/api/service.ts";
import { anonymous } from "../../functions/identity.ts";
import type { CallArgs, FunctionName, ResultOf } from "../../protocol/client_function_names.ts";
import { decodeValue, encodeValue, recorder } from "../remote/chains.ts";
import type { Operations } from "../remote/messages.ts";
import { type CallerFacts, type CallerPort, TestCaller } from "../test_caller.ts";
import type { TestSubscription } from "../test_subscription.ts";
import type { ModelOf, SignedInUser, TestServerOptions, TestUser, UploadOptions } from "../test_types.ts";
import { ServersProcess } from "./servers_process.ts";

/** Returns a `WebSocket` class whose sockets connect to a server. */
function tunnelSockets(servers: ServersProcess, server: number): WebSocketFactory {
  return class TunnelSocket implements WebSocketLike {
    onopen: ((event: never) => void) | null = null;
    onmessage: ((event: never) => void) | null = null;
    onclose: ((event: never) => void) | null = null;
    onerror: ((event: never) => void) | null = null;
    readonly #number = servers.number();
    #closed = false;

    constructor(_url: string) {
      servers.addSocket(this.#number, {
        received: (text) => {
          if (!this.#closed) this.onmessage?.({ data: text } as never);
        },
        closed: (code, reason) => this.#end(code, reason),
      });
      servers.send("socketOpen", { server, socket: this.#number });
      queueMicrotask(() => {
        if (!this.#closed) this.onopen?.({} as never);
      });
    }

    send(text: string): void {
      if (!this.#closed) servers.send("socketSend", { socket: this.#number, text });
    }

    close(code = 1000, reason = ""): void {
      if (this.#closed) return;
      servers.send("socketClose", { socket: this.#number });
      this.#end(code, reason);
    }

    #end(code: number, reason: string): void {
      if (this.#closed) return;
      this.#closed = true;
      servers.removeSocket(this.#number);
      queueMicrotask(() => this.onclose?.({ code, reason } as never));
    }
  };
}

export type NodeTestServerOptions<S extends Schema = Schema> =
  & Omit<TestServerOptions<S>, "modules" | "functionsDir">
  & { readonly functionsDir: string | URL };

let servers: ServersProcess | null = null;

/**
 * An app under test. Calls on the server itself are anonymous; {@linkcode asUser} returns signed-in callers.
 */
export class TestServer<Model extends DataModel> implements AsyncDisposable {
  readonly #servers: ServersProcess;
  readonly #number: number;
  readonly #port: CallerPort;
  readonly #anonymous: TestCaller;
  readonly #clients = new Set<SynclineClient>();
  #closed = false;

  private constructor(
    servers: ServersProcess,
    { number, dev }: { readonly number: number; readonly dev: boolean },
  ) {
    this.#servers = servers;
    this.#number = number;
    this.#port = {
      dev,
      run: (kind, call) => this.#ask("run", { kind, call }),
      connect: (token) => this.#connect(token),
      fetch: (request) => this.#fetch(request),
    };
    this.#anonymous = this.asAnonymous();
  }

  /** See {@linkcode createTestServer}. */
  static async open<S extends Schema>(options: NodeTestServerOptions<S>): Promise<TestServer<ModelOf<S>>> {
    servers ??= ServersProcess.start();
    const number = servers.number();
    const { functionsDir, now, dev = true, ...rest } = options;
    await servers.ask("open", {
      server: number,
      functionsDir: folderOf(functionsDir),
      ...(now !== undefined && { now: Number(now) }),
      dev,
      ...rest,
    });
    return new TestServer(servers, { number, dev });
  }

  /** The server's time in milliseconds since the epoch. It is frozen except for {@linkcode advance}. */
  now(): number {
    return this.#servers.now(this.#number);
  }

  /**
   * Advances the clock and runs due scheduled functions and crons in order. Resolves when everything they started has
   * finished. Rejects with a `RangeError` for a negative duration.
   */
  async advance(ms: number): Promise<void> {
    await this.#ask("advance", { ms });
  }

  /** Resolves when nothing is in flight and every live query shows the newest commit. */
  async settled(): Promise<void> {
    await this.#ask("settled", {});
  }

  /** An anonymous caller, equivalent to calling the server itself. */
  asAnonymous(): TestCaller {
    return new TestCaller(this.#port, { identity: anonymous, token: null });
  }

  /** Signs in a user with a new session. A string is short for the name. */
  async asUser(user: TestUser | string = {}): Promise<SignedInUser> {
    return this.#caller(await this.#ask("asUser", { user })) as SignedInUser;
  }

  /** Signs in an administrator. */
  async asAdmin(email = "admin@example.com"): Promise<TestCaller> {
    return this.#caller(await this.#ask("asAdmin", { email }));
  }

  /** Ends a caller's session, as signing out elsewhere does. Its clients become anonymous. */
  endSession({ sessionId }: TestCaller): void {
    if (sessionId !== null) this.#servers.send("endSession", { server: this.#number, sessionId });
  }

  /**
   * Runs a callback as a mutation, to inspect or fill the database. The result is JSON. The database is in another process,
   * so every call on `ctx` must be awaited.
   */
  async run<Result>(work: (ctx: MutationCtx<Model>) => Result | Promise<Result>): Promise<Result> {
    const number = this.#servers.number();
    this.#servers.addWork(number, () => void this.#work(number, work as (ctx: unknown) => unknown));
    return await this.#ask("work", { work: number }) as Result;
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
   * the file id once it is committed. Rejects with a `FunctionError` with the code of the response.
   */
  async upload(url: string, contents: Blob, options: UploadOptions = {}): Promise<Id<"_storage">> {
    const { contentType = contents.type } = options;
    const name = options.name ?? (contents as Blob & { readonly name?: string }).name;
    const body = Buffer.from(await contents.arrayBuffer()).toString("base64");
    const upload = { url, body, type: contentType, ...(name !== undefined && { name }) };
    return await this.#ask("upload", upload) as Id<"_storage">;
  }

  /** Closes all clients and the database, and removes the folder. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const client of this.#clients) client.close();
    await this.#ask("close", {});
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #ask<Name extends keyof Operations>(
    name: Name,
    args: Omit<Operations[Name]["args"], "server">,
  ): Promise<Operations[Name]["result"]> {
    return this.#servers.ask(name, { ...args, server: this.#number } as Operations[Name]["args"]);
  }

  async #fetch(request: Request): Promise<Response> {
    const { url, method } = request;
    const bytes = request.body === null ? null : Buffer.from(await request.arrayBuffer());
    const headers = [...request.headers];
    const { status, ...answer } = await this.#ask("fetch", {
      request: { url, method, headers, body: bytes?.toString("base64") ?? null },
    });
    const body = [204, 205, 304].includes(status) ? null : Buffer.from(answer.body, "base64");
    return new Response(body, {
      status,
      headers: answer.headers.map(([name, value]): [string, string] => [name, value]),
    });
  }

  #caller(facts: CallerFacts): TestCaller {
    return new TestCaller(this.#port, facts);
  }

  #connect(token: string | null): SynclineClient {
    const client = new SynclineClient("http://test.invalid", {
      webSocket: tunnelSockets(this.#servers, this.#number),
      polling: false,
    });
    this.#clients.add(client);
    if (token !== null) client.setAuth(() => Promise.resolve(token));
    return client;
  }

  async #work(number: number, work: (ctx: unknown) => unknown): Promise<void> {
    const ctx = recorder(
      [],
      async (chain, list) => decodeValue(await this.#servers.ask("step", { work: number, chain, list })),
    );
    try {
      this.#servers.send("workEnds", { work: number, value: encodeValue(await work(ctx)) });
    } catch (error) {
      const { name, message } = error instanceof Error ? error : new Error(String(error));
      this.#servers.send("workEnds", { work: number, error: { name, message } });
    }
  }
}

function folderOf(given: string | URL): string {
  const text = String(given);
  return text.startsWith("file:") ? fileURLToPath(text) : text;
}

/**
 * Starts an app's functions on the real engine with a temporary folder, for Node's test runner, Vitest or any other:
 * `import { createTestServer } from "syncline/test"`.
 */
export function createTestServer<S extends Schema = Schema>(
  options: NodeTestServerOptions<S>,
): Promise<TestServer<ModelOf<S>>> {
  return TestServer.open(options);
}
