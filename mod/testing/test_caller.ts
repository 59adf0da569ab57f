/** Somebody who calls the functions of a test server: a user, an administrator, or nobody in particular. */
import { FunctionError, SynclineClient } from "../client/mod.ts";
import { jsonArgs } from "../client/json_args.ts";
import type { Id } from "../functions/api/service.ts";
import type { FunctionCall } from "../functions/host_port.ts";
import type { Identity } from "../functions/identity.ts";
import { type Outcome, publicError } from "../functions/outcome.ts";
import { type FunctionKind, functionPath } from "../protocol/function_reference.ts";
import type { CallArgs, FunctionName, ResultOf } from "../protocol/known_paths.ts";
import { TestSubscription } from "./test_subscription.ts";

/** What a caller needs of its server. */
export interface CallerPort {
  /** Runs a call as a client's, waits until everybody who is connected has seen its effects. */
  run(kind: FunctionKind, call: FunctionCall): Promise<Outcome>;
  /** A client over a socket in memory, signed in with the token unless it is `null`. Closed with the server. */
  connect(token: string | null): SynclineClient;
  /** Sends a request without a port. Resolves when everybody who is connected has seen its effects. */
  fetch(request: Request): Promise<Response>;
  /** Whether callers are shown real error messages. */
  readonly dev: boolean;
}

/** Who a caller is. */
export interface CallerFacts {
  readonly identity: Identity;
  readonly token: string | null;
}

export const callerFacts: unique symbol = Symbol("callerFacts");

/**
 * Calls functions as one identity. Calls reject with the `FunctionError` of `syncline/client`: `code` and `data` are those
 * of the app's `UserError`, other errors have the real message.
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

  /** Id of the user, `null` for others. */
  get userId(): Id<"_users"> | null {
    return this.#identity.userId as Id<"_users"> | null;
  }

  /** For a caller of the same identity in another process. */
  get [callerFacts](): CallerFacts {
    return { identity: this.#identity, token: this.#token };
  }

  get sessionId(): string | null {
    return this.#identity.sessionId;
  }

  /** A real client, connected through memory and signed in as this caller. Closed with the server. */
  get client(): SynclineClient {
    return this.#client ??= this.#port.connect(this.#token);
  }

  /** Another client of the same caller, as a second tab is. Closed with the server. */
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
   * Sends a request, to a path or a whole URL, with the caller's token unless the request has credentials of its own. It is
   * answered as a server without a frontend does: function calls, files, and the routes of the app's `http.ts`.
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

/** The value of an outcome. Throws its error as a client does, with the stack in the author's files. */
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
