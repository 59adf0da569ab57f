/**
 * Calls over HTTP with the connection's token and a timeout. Classifies every response. Tokens are handled like on the socket:
 * a refused token is refreshed, an accepted one is reported.
 */
import type { TokenKeeper } from "../accounts/auth.ts";
import { httpAddress } from "./addresses.ts";
import { type Clock, within } from "../clock.ts";
import { FunctionError } from "../errors.ts";
import {
  callOverHttp,
  type HttpAnswer,
  type HttpCall,
  type HttpServer,
  REQUEST_HEADER,
} from "../http/http_call.ts";
import * as clientLimits from "../limits.ts";

/** Outcome of a call. */
export type HttpOutcome =
  | {
    readonly type: "value";
    readonly value: unknown;
    readonly ts: number;
    readonly logLines: readonly string[];
  }
  | { readonly type: "failed"; readonly error: FunctionError }
  /** The token was refused; the call did not run. */
  | { readonly type: "refused" }
  /** No response from the server itself: whether the call ran is unknown. */
  | { readonly type: "lost" };

/** Requests that are aborted together. */
export type RequestGroup = Set<AbortController>;

export class HttpTransport {
  /** Whether a mutation can be resent: the response header shows that the server has read its request id. */
  recognises = false;
  readonly #server: HttpServer;
  readonly #tokens: TokenKeeper;
  readonly #clock: Clock;
  /** The token the server accepted last; `undefined` initially. */
  #accepted: string | null | undefined = undefined;

  constructor(server: HttpServer, { tokens, clock }: { tokens: TokenKeeper; clock: Clock }) {
    this.#server = server;
    this.#tokens = tokens;
    this.#clock = clock;
  }

  /** Forgets the accepted token. */
  begin(): void {
    this.#accepted = undefined;
  }

  /** Calls a function with the current token. Never rejects. */
  async call(
    call: Omit<HttpCall, "token">,
    { timeoutMs, group }: { readonly timeoutMs: number; readonly group: RequestGroup },
  ): Promise<HttpOutcome> {
    const { token } = this.#tokens;
    const response = await this.#within(
      { timeoutMs, group },
      (signal) => callOverHttp(this.#server, { call: { ...call, token }, signal }),
    );
    if (response === null) return { type: "lost" };
    const { status, answer, recognised } = response;
    if (status === 401 && token !== null) {
      // Several calls may be refused at once; report it only once.
      if (this.#tokens.token === token) {
        this.#tokens.refused(token, { wasConfirmed: this.#accepted === token });
      }
      return { type: "refused" };
    }
    const outcome = sorted(call, { status, answer });
    if (call.request && outcome.type === "value") this.recognises = recognised;
    if (
      answer !== null && outcome.type !== "lost" && this.#accepted !== token && this.#tokens.token === token
    ) {
      this.#accepted = token;
      this.#tokens.confirmed(token);
    }
    return outcome;
  }

  /** Whether the server is reachable over HTTP and ready, and whether it deduplicates mutations. Never rejects. */
  async works(group: RequestGroup): Promise<boolean> {
    const { server, fetch } = this.#server;
    const response = await this.#within(
      { timeoutMs: clientLimits.healthMs, group },
      (signal) =>
        fetch(httpAddress(server, "api/health"), {
          cache: "no-store",
          headers: { [REQUEST_HEADER]: "?" },
          signal,
        }),
    );
    if (response?.ok) this.recognises = response.headers.has(REQUEST_HEADER);
    return response?.ok ?? false;
  }

  /** Returns the result of a request, or `null` if it fails, times out, or its group is aborted. */
  async #within<Result>(
    { timeoutMs, group }: { readonly timeoutMs: number; readonly group: RequestGroup },
    request: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result | null> {
    const over = new AbortController();
    group.add(over);
    try {
      return await within({ clock: this.#clock, timeoutMs, over }, request);
    } catch {
      // For any reason, there is no response.
      return null;
    } finally {
      group.delete(over);
    }
  }
}

/** Aborts the requests of a group. */
export function endGroup(group: RequestGroup): void {
  for (const request of [...group]) request.abort();
}

/** Statuses that may be temporary. */
const PASSING: readonly number[] = [401, 408, 425, 429];

function sorted(
  { kind, udfPath }: Pick<HttpCall, "kind" | "udfPath">,
  { status, answer }: { readonly status: number; readonly answer: HttpAnswer | null },
): HttpOutcome {
  // A proxy refuses the call; it will do so again.
  if (answer === null && kind !== "query" && status >= 400 && status < 500 && !PASSING.includes(status)) {
    const message = `The server responded with status ${status}`;
    return { type: "failed", error: new FunctionError(message, { udfPath, errorData: null, logLines: [] }) };
  }
  // A starting or busy server, or its proxy, says nothing about the function.
  if (answer === null || status === 429 || status > 500) return { type: "lost" };
  const { value, ts, errorMessage, logLines = [] } = answer;
  if (answer.status === "success") return { type: "value", value, ts: ts ?? 0, logLines };
  if (errorMessage === undefined) return { type: "lost" };
  return {
    type: "failed",
    error: new FunctionError(errorMessage, { errorData: null, ...answer, udfPath, logLines }),
  };
}
