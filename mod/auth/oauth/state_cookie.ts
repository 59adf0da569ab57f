/** The cookie that ties a sign-in to the browser that began it (contract: Auth endpoints). */
import { othersLimits } from "../limits.ts";

const NAME = "svc_oauth_state";
/** Sent to the callbacks only, and to where it is set. */
const PATH = "/api/auth/oauth";

export interface CookieOptions {
  /** Whether browsers reach this server over https. */
  readonly secure: boolean;
  /** Whether the provider's answer is a form that is posted from its pages. */
  readonly formPost: boolean;
}

/** The header that sets it. */
export function stateCookie(state: string, options: CookieOptions): string {
  return `${NAME}=${state}; ${attributes(options, othersLimits.flowMs / 1000)}`;
}

/** The header that takes it away. */
export function noStateCookie(options: CookieOptions): string {
  return `${NAME}=; ${attributes(options, 0)}`;
}

/** The state in a `Cookie` header; `null` when there is none, or more than one: then somebody has added theirs. */
export function stateOf(header: string | undefined): string | null {
  const states = (header ?? "").split(";").map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${NAME}=`)).map((pair) => pair.slice(NAME.length + 1));
  return states.length === 1 ? states[0] ?? null : null;
}

function attributes({ secure, formPost }: CookieOptions, seconds: number): string {
  // A form posted from elsewhere brings cookies along only if they are for all sites, and browsers take such over https only.
  const sameSite = formPost && secure ? "None" : "Lax";
  return `Path=${PATH}; Max-Age=${seconds}; HttpOnly; SameSite=${sameSite}${secure ? "; Secure" : ""}`;
}
