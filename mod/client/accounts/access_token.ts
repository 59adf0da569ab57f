/** What the client reads from an access token: how long it lives. It verifies nothing, that is the server's part. */

/** The life of a token, in milliseconds. */
export interface TokenLife {
  /** From now to its end, by the local clock. */
  readonly leftMs: number;
  /** From its issue to its end; the same as `leftMs` when it does not say. */
  readonly fullMs: number;
}

/** The life of a token at `now`, or `null` when it does not say. */
export function tokenLife(token: string, now: number): TokenLife | null {
  const { exp, iat } = claims(token);
  if (typeof exp !== "number") return null;
  const leftMs = exp * 1000 - now;
  const fullMs = typeof iat === "number" ? (exp - iat) * 1000 : leftMs;
  // More left than the token ever had means that the clocks disagree: then the token is taken to be new.
  return { leftMs: Math.min(leftMs, fullMs), fullMs };
}

function claims(token: string): { readonly exp?: unknown; readonly iat?: unknown } {
  const payload = token.split(".")[1];
  if (payload === undefined) return {};
  try {
    const parsed: unknown = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/")));
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  } catch {
    // Not a JWT: a token of unknown life.
    return {};
  }
}
