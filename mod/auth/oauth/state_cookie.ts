/** The cookie that binds a sign-in to the browser that started it (contract: Auth endpoints). */
import { othersLimits } from "../limits.ts";

const NAME = "svc_oauth_state";
/** Path of the cookie: the callbacks, and the route that sets it. */
const PATH = "/api/auth/oauth";

export interface CookieOptions {
  /** Whether browsers use https. */
  readonly secure: boolean;
  /** Whether the provider responds with a cross-site form post. */
  readonly formPost: boolean;
}

/** The header that sets the cookie. */
export function stateCookie(state: string, options: CookieOptions): string {
  return `${NAME}=${state}; ${attributes(options, othersLimits.flowMs / 1000)}`;
}

/** The header that deletes the cookie. */
export function noStateCookie(options: CookieOptions): string {
  return `${NAME}=; ${attributes(options, 0)}`;
}

/** Returns the state from a `Cookie` header; `null` if it is absent or ambiguous, which suggests an injected cookie. */
export function stateOf(header: string | undefined): string | null {
  const states = (header ?? "").split(";").map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${NAME}=`)).map((pair) => pair.slice(NAME.length + 1));
  return states.length === 1 ? states[0] ?? null : null;
}

function attributes({ secure, formPost }: CookieOptions, seconds: number): string {
  // A cross-site form post only carries cookies with SameSite=None, which browsers accept over https only.
  const sameSite = formPost && secure ? "None" : "Lax";
  return `Path=${PATH}; Max-Age=${seconds}; HttpOnly; SameSite=${sameSite}${secure ? "; Secure" : ""}`;
}
