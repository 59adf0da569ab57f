/** One-shot calls over HTTP, for servers, scripts and tests: no live results and no de-duplication. */
import {
  type ArgsOf,
  type FunctionName,
  functionPath,
  type ResultOf,
} from "../protocol/function_reference.ts";
import type { ErrorData } from "../protocol/server_messages.ts";
import { httpAddress } from "./addresses.ts";
import { FunctionError } from "./errors.ts";
import { jsonArgs } from "./json_args.ts";

export interface SynclineHttpClientOptions {
  /** Access token of the caller; a function is asked before each call. Anonymous without it. */
  readonly token?: string | (() => string | null | Promise<string | null>);
  readonly fetch?: typeof fetch;
}

/** What a call over HTTP gives besides its result. */
interface Answer {
  readonly status: "success" | "error";
  readonly value?: unknown;
  readonly errorMessage?: string;
  readonly errorData?: ErrorData;
  readonly logLines?: readonly string[];
}

/**
 * Calls functions over HTTP.
 *
 * @example
 * ```ts
 * const client = new SynclineHttpClient("http://localhost:3210");
 * const messages = await client.query("messages:list", { channel: "general" });
 * ```
 */
export class SynclineHttpClient {
  readonly #server: string | URL;
  readonly #fetch: typeof fetch;
  #token: SynclineHttpClientOptions["token"];

  constructor(server: string | URL, options: SynclineHttpClientOptions = {}) {
    this.#server = server;
    this.#token = options.token;
    this.#fetch = options.fetch ?? ((...request) => globalThis.fetch(...request));
  }

  /** Uses another token from now on; `undefined` makes calls anonymous. */
  setToken(token: SynclineHttpClientOptions["token"]): void {
    this.#token = token;
  }

  /** Runs a query. Rejects with {@linkcode FunctionError} when it fails. */
  async query<Name extends FunctionName<"query">>(query: Name, args: ArgsOf<Name>): Promise<ResultOf<Name>> {
    return await this.#call("query", { path: functionPath(query), args }) as ResultOf<Name>;
  }

  /** Runs a mutation; after a lost connection whether it ran is unknown. Rejects with {@linkcode FunctionError}. */
  async mutation<Name extends FunctionName<"mutation">>(
    mutation: Name,
    args: ArgsOf<Name>,
  ): Promise<ResultOf<Name>> {
    return await this.#call("mutation", { path: functionPath(mutation), args }) as ResultOf<Name>;
  }

  /** Runs an action. Rejects with {@linkcode FunctionError} when it fails. */
  async action<Name extends FunctionName<"action">>(
    action: Name,
    args: ArgsOf<Name>,
  ): Promise<ResultOf<Name>> {
    return await this.#call("action", { path: functionPath(action), args }) as ResultOf<Name>;
  }

  async #call(
    kind: "query" | "mutation" | "action",
    call: { path: string; args: unknown },
  ): Promise<unknown> {
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (token) headers["Authorization"] = `Bearer ${token}`;
    const response = await this.#fetch(httpAddress(this.#server, `api/${kind}`), {
      method: "POST",
      headers,
      body: JSON.stringify({ path: call.path, args: jsonArgs(call.args) }),
    });
    const answer = parseAnswer(await response.text());
    if (answer?.status === "success") return answer.value;
    throw new FunctionError(answer?.errorMessage ?? `The server answered with status ${response.status}`, {
      udfPath: call.path,
      errorData: answer?.errorData ?? null,
      logLines: answer?.logLines ?? [],
    });
  }
}

/** An answer that is not the server's own, such as a proxy's error page, is `null`. */
function parseAnswer(text: string): Answer | null {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === "object" && answer !== null && "status" in answer ? answer as Answer : null;
  } catch {
    return null;
  }
}
