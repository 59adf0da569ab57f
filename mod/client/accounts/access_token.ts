/** Reads the lifetime of an access token. Verification is the server's job. */

/** The lifetime of a token, in milliseconds. */
export interface TokenLife {
  /** Remaining time by the local clock. */
  readonly leftMs: number;
  /** Total lifetime; equal to `leftMs` if the token has no issue time. */
  readonly fullMs: number;
}

/** Returns the lifetime of a token at `now`, or `null` if it has no expiry. */
export function tokenLife(token: string, now: number): TokenLife | null {
  const { exp, iat } = claims(token);
  if (typeof exp !== "number") return null;
  const leftMs = exp * 1000 - now;
  const fullMs = typeof iat === "number" ? (exp - iat) * 1000 : leftMs;
  // More remaining time than the total lifetime means that the clocks disagree: treat the token as new.
  return { leftMs: Math.min(leftMs, fullMs), fullMs };
}

function claims(token: string): { readonly exp?: unknown; readonly iat?: unknown } {
  const payload = token.split(".")[1];
  if (payload === undefined) return {};
  try {
    return JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/"))) ?? {};
  } catch {
    // Not a JWT: a token of unknown lifetime.
    return {};
  }
}
