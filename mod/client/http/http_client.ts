/** One-shot calls over HTTP for servers, scripts and tests, without live results or deduplication. */
import { functionPath } from "../../protocol/function_reference.ts";
import type { CallArgs, FunctionName, ResultOf } from "../../protocol/client_function_names.ts";
import { FunctionError } from "../errors.ts";
import { callOverHttp, type HttpCall } from "./http_call.ts";
import { jsonArgs } from "../json_args.ts";

export interface SynclineHttpClientOptions {
  /** Access token of the caller; a function is called before each call. Anonymous if absent. */
  readonly token?: string | (() => string | null | Promise<string | null>);
  readonly fetch?: typeof fetch;
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

  /** Sets the token for further calls; `undefined` makes them anonymous. */
  setToken(token: SynclineHttpClientOptions["token"]): void {
    this.#token = token;
  }

  /** Runs a query. Rejects with {@linkcode FunctionError} if it fails. */
  async query<Name extends FunctionName<"query">>(
    query: Name,
    ...[args]: CallArgs<Name>
  ): Promise<ResultOf<Name>> {
    return await this.#call("query", { path: functionPath(query), args }) as ResultOf<Name>;
  }

  /** Runs a mutation. After a lost connection its outcome is unknown. Rejects with {@linkcode FunctionError}. */
  async mutation<Name extends FunctionName<"mutation">>(
    mutation: Name,
    ...[args]: CallArgs<Name>
  ): Promise<ResultOf<Name>> {
    return await this.#call("mutation", { path: functionPath(mutation), args }) as ResultOf<Name>;
  }

  /** Runs an action. Rejects with {@linkcode FunctionError} if it fails. */
  async action<Name extends FunctionName<"action">>(
    action: Name,
    ...[args]: CallArgs<Name>
  ): Promise<ResultOf<Name>> {
    return await this.#call("action", { path: functionPath(action), args }) as ResultOf<Name>;
  }

  async #call(
    kind: HttpCall["kind"],
    { path, args }: { readonly path: string; readonly args: unknown },
  ): Promise<unknown> {
    const given = typeof this.#token === "function" ? await this.#token() : this.#token;
    const call = { kind, udfPath: path, args: jsonArgs(args), token: given ?? null };
    const { status, answer } = await callOverHttp({ server: this.#server, fetch: this.#fetch }, { call });
    if (answer?.status === "success") return answer.value;
    throw new FunctionError(answer?.errorMessage ?? `The server responded with status ${status}`, {
      errorData: null,
      logLines: [],
      ...answer,
      udfPath: path,
    });
  }
}
