/** Requests to the auth endpoints (AE). */
import { httpAddress } from "../connection/addresses.ts";

/** What sign-in and refresh answer. */
export interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly userId?: string;
}

/** An auth endpoint refused a request. */
export class AccountError extends Error {
  /** Code of the contract, such as `invalid_credentials`; `null` when the answer was not the server's own. */
  readonly code: string | null;
  /** HTTP status. */
  readonly status: number;
  /** After how many milliseconds to try again, when the server says so. */
  readonly retryAfterMs: number | null;

  constructor(message: string, details: Pick<AccountError, "code" | "status" | "retryAfterMs">) {
    super(message);
    this.name = "AccountError";
    this.code = details.code;
    this.status = details.status;
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** A code and a text that came by the page's address, from another tab or window. */
export type Refusal = readonly [code: string, message: string];

/** A refusal as the error that it is. */
export function accountError([code, message]: Refusal): AccountError {
  return new AccountError(message, { code, status: 0, retryAfterMs: null });
}

/** Posts a body to an auth endpoint, or gets it without one, and returns the answer. Throws {@linkcode AccountError}. */
export type CallAccounts = (
  path: string,
  body: object | null,
  options?: { readonly signal?: AbortSignal },
) => Promise<unknown>;

/** Requests to one server. */
export function callAccounts(server: string | URL, fetchFunction: typeof fetch): CallAccounts {
  return async (path, body, { signal } = {}) => {
    const response = await fetchFunction(httpAddress(server, `api/auth/${path}`), {
      method: body === null ? "GET" : "POST",
      cache: "no-store",
      ...signal && { signal },
      ...body !== null && { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) },
    });
    const answer = await response.json().catch(() => null) as Answer;
    if (response.ok && answer !== null) return answer;
    const seconds = Number(response.headers.get("Retry-After") ?? "x");
    throw new AccountError(answer?.errorMessage ?? `The server answered with status ${response.status}`, {
      code: answer?.errorData?.code ?? null,
      status: response.status,
      retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : null,
    });
  };
}

type Answer = { readonly errorMessage?: string; readonly errorData?: { readonly code: string } } | null;
