/** Requests to the auth endpoints (AE). */
import { httpAddress } from "../connection/addresses.ts";

/** Response of sign-in and refresh. */
export interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly userId?: string;
}

/** An auth endpoint refused a request. */
export class AccountError extends Error {
  /** Code of the contract, such as `invalid_credentials`; `null` if the response did not come from the server. */
  readonly code: string | null;
  /** HTTP status. */
  readonly status: number;
  /** Milliseconds after which to retry, if the server says so. */
  readonly retryAfterMs: number | null;
  /** Details of the code, such as those that `syncline/accounts` reads; usually `null`. */
  readonly data: unknown;

  constructor(message: string, details: Omit<AccountError, keyof Error>) {
    super(message);
    this.name = "AccountError";
    this.code = details.code;
    this.status = details.status;
    this.retryAfterMs = details.retryAfterMs;
    this.data = details.data;
  }
}

/** A code and message received in the page's address, or from another tab or window. */
export type Refusal = readonly [code: string, message: string, data?: unknown];

/** Converts a refusal to an error. */
export function accountError([code, message, data = null]: Refusal): AccountError {
  return new AccountError(message, { code, status: 0, retryAfterMs: null, data });
}

/** Posts a body to an auth endpoint, or sends a GET request without one. Throws {@linkcode AccountError}. */
export type CallAccounts = (
  path: string,
  body: object | null,
  options?: { readonly signal?: AbortSignal; readonly token?: string | null },
) => Promise<unknown>;

/** Requests to one server. */
export function callAccounts(server: string | URL, fetchFunction: typeof fetch): CallAccounts {
  return async (path, body, { signal, token } = {}) => {
    const response = await fetchFunction(httpAddress(server, `api/auth/${path}`), {
      method: body === null ? "GET" : "POST",
      cache: "no-store",
      ...signal && { signal },
      ...body !== null &&
        {
          headers: { "Content-Type": "application/json", ...token && { Authorization: `Bearer ${token}` } },
          body: JSON.stringify(body),
        },
    });
    const answer = await response.json().catch(() => null) as Answer;
    if (response.ok && answer !== null) return answer;
    const seconds = Number(response.headers.get("Retry-After") ?? "x");
    throw new AccountError(answer?.errorMessage ?? `The server responded with status ${response.status}`, {
      code: answer?.errorData?.code ?? null,
      status: response.status,
      retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : null,
      data: answer?.errorData?.data ?? null,
    });
  };
}

type Answer = {
  readonly errorMessage?: string;
  readonly errorData?: { readonly code: string; readonly data?: unknown };
} | null;
