/** `createTestServer` for tests that run in Node: the same server, in a process of the server's runtime. */
import { Buffer } from "node:buffer";
import { fileURLToPath } from "node:url";
import { SynclineClient } from "../../client/mod.ts";
import type { DataModel, Id, MutationCtx, Schema } from "../../functions/api/service.ts";
import { anonymous } from "../../functions/identity.ts";
import type { CallArgs, FunctionName, ResultOf } from "../../protocol/known_paths.ts";
import { pack, recorder, unpack } from "../remote/chains.ts";
import type { Operations } from "../remote/messages.ts";
import { type CallerFacts, type CallerPort, TestCaller } from "../test_caller.ts";
import type { ModelOf, SignedInUser, TestServerOptions, TestUser, UploadOptions } from "../test_types.ts";
import type { TestSubscription } from "../test_subscription.ts";
import { ServersProcess } from "./servers_process.ts";
import { tunnelSockets } from "./tunnel_socket.ts";

export type NodeTestServerOptions<S extends Schema = Schema> =
  & Omit<TestServerOptions<S>, "modules" | "functionsDir">
  & { readonly functionsDir: string | URL };

let servers: ServersProcess | null = null;

/**
 * An app under test. Calls of the server itself are anonymous ones; {@linkcode asUser} gives callers who are signed in.
 */
export class TestServer<Model extends DataModel> implements AsyncDisposable {
  readonly #servers: ServersProcess;
  readonly #number: number;
  readonly #port: CallerPort;
  readonly #nobody: TestCaller;
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
    this.#nobody = this.asAnonymous();
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

  /** The server's time, which stands still but for {@linkcode advance}; milliseconds since the epoch. */
  now(): number {
    return this.#servers.now(this.#number);
  }

  /**
   * Moves the clock forward: scheduled functions and crons run when their time comes, one after another. Resolves when what
   * they started has ended. Rejects with a `RangeError` for a negative time.
   */
  async advance(ms: number): Promise<void> {
    await this.#ask("advance", { ms });
  }

  /** Resolves when no call is under way and every live query shows the newest commit. */
  async settled(): Promise<void> {
    await this.#ask("settled", {});
  }

  /** A caller without credentials, the same as calling the server itself. */
  asAnonymous(): TestCaller {
    return new TestCaller(this.#port, { identity: anonymous, token: null });
  }

  /** A signed-in user in a session of their own; a text is short for the name. */
  async asUser(user: TestUser | string = {}): Promise<SignedInUser> {
    return this.#caller(await this.#ask("asUser", { user })) as SignedInUser;
  }

  /** A signed-in administrator of the server. */
  async asAdmin(email = "admin@example.com"): Promise<TestCaller> {
    return this.#caller(await this.#ask("asAdmin", { email }));
  }

  /** Ends a caller's session, as signing out elsewhere does: its clients become anonymous. */
  endSession({ sessionId }: TestCaller): void {
    if (sessionId !== null) this.#servers.send("endSession", { server: this.#number, sessionId });
  }

  /**
   * Runs work of the test as a mutation of the app, to look at the database or to fill it. The result is JSON. The database
   * is in another process: everything of `ctx` is awaited.
   */
  async run<Result>(work: (ctx: MutationCtx<Model>) => Result | Promise<Result>): Promise<Result> {
    const number = this.#servers.number();
    this.#servers.addWork(number, () => void this.#work(number, work as (ctx: unknown) => unknown));
    return await this.#ask("work", { work: number }) as Result;
  }

  query<Name extends FunctionName<"query">>(name: Name, ...args: CallArgs<Name>): Promise<ResultOf<Name>> {
    return this.#nobody.query(name, ...args);
  }

  mutation<Name extends FunctionName<"mutation">>(
    name: Name,
    ...args: CallArgs<Name>
  ): Promise<ResultOf<Name>> {
    return this.#nobody.mutation(name, ...args);
  }

  action<Name extends FunctionName<"action">>(name: Name, ...args: CallArgs<Name>): Promise<ResultOf<Name>> {
    return this.#nobody.action(name, ...args);
  }

  subscribe<Name extends FunctionName<"query">>(
    name: Name,
    ...args: CallArgs<Name>
  ): TestSubscription<ResultOf<Name>> {
    return this.#nobody.subscribe(name, ...args);
  }

  /**
   * Sends a request, to a path or a whole URL, as nobody; `asUser(...)` has the same for a user. It is answered as a server
   * without a frontend does: function calls, files at the URLs that `ctx.storage` gives, and the routes of the app's `http.ts`.
   */
  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    return await this.#nobody.fetch(input, init);
  }

  /**
   * Uploads a file to a URL of `ctx.storage.generateUploadUrl()`, with the blob's type and name unless told. Resolves to the
   * file's id once it is committed. Rejects with a `FunctionError` with the answer's code.
   */
  async upload(url: string, contents: Blob, options: UploadOptions = {}): Promise<Id<"_storage">> {
    const { contentType = contents.type } = options;
    const name = options.name ?? (contents as Blob & { readonly name?: string }).name;
    const body = Buffer.from(await contents.arrayBuffer()).toString("base64");
    const upload = { url, body, type: contentType, ...(name !== undefined && { name }) };
    return await this.#ask("upload", upload) as Id<"_storage">;
  }

  /** Closes clients and database and removes the folder. */
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
      async (chain, list) => unpack(await this.#servers.ask("step", { work: number, chain, list })),
    );
    try {
      this.#servers.send("workEnds", { work: number, value: pack(await work(ctx)) });
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
 * Starts an app's functions on the real engine and a temporary folder, for tests of Node's own runner, of Vitest, or any
 * other: `import { createTestServer } from "syncline/test"`.
 */
export function createTestServer<S extends Schema = Schema>(
  options: NodeTestServerOptions<S>,
): Promise<TestServer<ModelOf<S>>> {
  return TestServer.open(options);
}
