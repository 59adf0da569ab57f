/** A caller of functions on a test server: a user, an administrator, or an anonymous caller. */
import { FunctionError, SynclineClient } from "../client/mod.ts";
import { jsonArgs } from "../client/json_args.ts";
import type { Id } from "../functions/api/service.ts";
import type { FunctionCall } from "../functions/host_port.ts";
import type { Identity } from "../functions/identity.ts";
import { type Outcome, publicError } from "../functions/outcome.ts";
import { type FunctionKind, functionPath } from "../protocol/function_reference.ts";
import type { CallArgs, FunctionName, ResultOf } from "../protocol/client_function_names.ts";
import { TestSubscription } from "./test_subscription.ts";

/** The server's interface for callers. */
export interface CallerPort {
  /** Runs a call as a client would. Resolves when all connected clients have seen its effects. */
  run(kind: FunctionKind, call: FunctionCall): Promise<Outcome>;
  /** Returns a client on an in-memory socket, signed in with the token unless it is `null`. Closed with the server. */
  connect(token: string | null): SynclineClient;
  /** Sends a request without a port. Resolves when all connected clients have seen its effects. */
  fetch(request: Request): Promise<Response>;
  /** Whether callers receive real error messages. */
  readonly dev: boolean;
}

/** Identity of a caller. */
export interface CallerFacts {
  readonly identity: Identity;
  readonly token: string | null;
}

export const callerFacts: unique symbol = Symbol("callerFacts");

/**
 * Calls functions with one identity. Calls reject with the `FunctionError` of `syncline/client`: `code` and `data` come from
 * the app's `UserError`; other errors have the real message.
 */
export class TestCaller {
  readonly #port: CallerPort;
  readonly #identity: Identity;
  readonly #token: string | null;
  #client: SynclineClient | null = null;

  constructor(port: CallerPort, options: CallerFacts) {
    this.#port = port;
    this.#identity = options.identity;
    this.#token = options.token;
  }

  /** Id of the user; `null` for other callers. */
  get userId(): Id<"_users"> | null {
    return this.#identity.userId as Id<"_users"> | null;
  }

  /** For a caller with the same identity in another process. */
  get [callerFacts](): CallerFacts {
    return { identity: this.#identity, token: this.#token };
  }

  get sessionId(): string | null {
    return this.#identity.sessionId;
  }

  /** A real client on an in-memory socket, signed in as this caller. Closed with the server. */
  get client(): SynclineClient {
    return this.#client ??= this.#port.connect(this.#token);
  }

  /** Another client of the same caller, like a second tab. Closed with the server. */
  connect(): SynclineClient {
    return this.#port.connect(this.#token);
  }

  query<Name extends FunctionName<"query">>(name: Name, ...args: CallArgs<Name>): Promise<ResultOf<Name>> {
    return this.#call("query", name, args[0]) as Promise<ResultOf<Name>>;
  }

  /** Resolves when the mutation is committed and every live query shows it. */
  mutation<Name extends FunctionName<"mutation">>(
    name: Name,
    ...args: CallArgs<Name>
  ): Promise<ResultOf<Name>> {
    return this.#call("mutation", name, args[0]) as Promise<ResultOf<Name>>;
  }

  action<Name extends FunctionName<"action">>(name: Name, ...args: CallArgs<Name>): Promise<ResultOf<Name>> {
    return this.#call("action", name, args[0]) as Promise<ResultOf<Name>>;
  }

  /** Subscribes through {@linkcode client}. Ends with the server at the latest. */
  subscribe<Name extends FunctionName<"query">>(
    name: Name,
    ...args: CallArgs<Name>
  ): TestSubscription<ResultOf<Name>> {
    return new TestSubscription(
      `"${functionPath(name)}"`,
      (onResult, onError) => this.client.subscribe(name, (args[0] ?? {}) as never, onResult, onError),
    );
  }

  /**
   * Sends a request to a path or URL with the caller's token, unless the request has its own credentials. The server handles
   * it like a server without a frontend: function calls, files, and the routes of the app's `http.ts`.
   */
  async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const request = input instanceof Request && init === undefined
      ? input
      : new Request(input instanceof Request ? input : new URL(input, "http://test.invalid"), init);
    if (this.#token === null || request.headers.has("Authorization")) return await this.#port.fetch(request);
    const headers = new Headers(request.headers);
    headers.set("Authorization", `Bearer ${this.#token}`);
    return await this.#port.fetch(new Request(request, { headers }));
  }

  async #call(kind: FunctionKind, name: FunctionName, args: unknown): Promise<unknown> {
    const udfPath = functionPath(name);
    const call = { udfPath, args: jsonArgs(args ?? {}), identity: this.#identity, origin: "client" } as const;
    return resultOf(udfPath, await this.#port.run(kind, call), this.#port);
  }
}

/** Returns the value of an outcome, or throws its error like a client, with a stack of the author's files. */
export function resultOf(
  udfPath: string,
  outcome: Outcome,
  { dev }: { readonly dev: boolean },
): unknown {
  if (outcome.ok) return JSON.parse(outcome.value);
  const { errorMessage, errorData } = publicError(outcome.error, { dev });
  const error = new FunctionError(errorMessage, {
    udfPath,
    errorData,
    logLines: dev ? outcome.logLines : [],
  });
  if (dev && outcome.error.stack) error.stack = `${error.name}: ${errorMessage}\n${outcome.error.stack}`;
  throw error;
}
