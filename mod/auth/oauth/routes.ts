/** `/api/auth/oauth`: redirects to a provider, the callbacks, and the state cookie (contract: Auth endpoints). */
import { type Context, Hono } from "hono";
import { MethodNotAllowedError, ServiceError } from "../../errors.ts";
import { requestSearch } from "../../kit/http_request.ts";
import { requestText } from "../../kit/request_body.ts";
import { externalLimits } from "../limits.ts";
import { APP_STATE } from "../redirects.ts";
import type { Requester } from "../attempt_limits.ts";
import type { SignIns } from "./sign_ins.ts";

export interface OAuthRoutesOptions {
  readonly signIns: SignIns;
  readonly requester: (c: Context) => Requester;
  /** Origin of this server for the browser that sent a request. */
  readonly originOf: (c: Context) => string;
  /** Called after each callback that ends a sign-in or link, with the status the response would have without the redirect. */
  readonly onFinish?: (status: number) => void;
}

const UNKNOWN_STATE =
  "This sign-in is not pending in this browser: it expired or was already finished. Try again.\n";

export function oauthRoutes({ signIns, requester, originOf, onFinish }: OAuthRoutesOptions): Hono {
  const app = new Hono();
  const cookieOptions = (c: Context, formPost: boolean) => ({
    secure: originOf(c).startsWith("https:"),
    formPost,
  });

  async function finish(c: Context, { parameters, status }: {
    readonly parameters: URLSearchParams;
    readonly status: 302 | 303;
  }): Promise<Response> {
    const provider = c.req.param("provider") ?? "";
    const cookie = stateOf(c.req.header("cookie"));
    const ended = await signIns.finish({ provider, parameters, cookie }, requester(c)).catch((error) => {
      onFinish?.(error instanceof ServiceError ? error.status : 500);
      throw error;
    });
    const outcome = ended === null ? 400 : ended.status;
    if (outcome !== null) onFinish?.(outcome);
    if (ended === null) return c.text(UNKNOWN_STATE, 400);
    c.header("Set-Cookie", noStateCookie(cookieOptions(c, signIns.provider(provider).formPost)));
    return c.redirect(ended.location, status);
  }

  app.use("*", async (c, next) => {
    // The callback has side effects, so HEAD is not allowed.
    if (c.req.method === "HEAD") throw new MethodNotAllowedError("GET");
    await next();
    c.header("Referrer-Policy", "no-referrer");
  });
  app.get("/:provider", async (c) => {
    const provider = c.req.param("provider");
    const [redirectTo] = c.req.queries("redirect_to") ?? [];
    const [link] = c.req.queries("link") ?? [];
    const [appState] = c.req.queries("app_state") ?? [];
    if (appState !== undefined && !APP_STATE.test(appState)) {
      throw new ServiceError("bad_request", "app_state has 1 to 128 characters: letters, digits, _ and -");
    }
    const begun = await signIns.begin(
      { provider, redirectTo, link, appState, origin: originOf(c) },
      requester(c),
    );
    if ("failed" in begun) return c.redirect(begun.failed, 302);
    const { formPost } = signIns.provider(provider);
    c.header("Set-Cookie", stateCookie(begun.state, cookieOptions(c, formPost)));
    return c.redirect(begun.location, 302);
  });
  app.get(
    "/:provider/callback",
    (c) => finish(c, { parameters: new URLSearchParams(requestSearch(c.req.raw)), status: 302 }),
  );
  app.post("/:provider/callback", async (c) => {
    if (!await signIns.answersWithForm(c.req.param("provider"))) throw new MethodNotAllowedError("GET");
    const form = new URLSearchParams(await requestText(c.req.raw, externalLimits.formBytesMax));
    return await finish(c, { parameters: form, status: 303 });
  });
  return app;
}

const NAME = "svc_oauth_state";
/** Path of the cookie: the callbacks, and the route that sets it. */
const PATH = "/api/auth/oauth";

interface CookieOptions {
  /** Whether browsers use https. */
  readonly secure: boolean;
  /** Whether the provider responds with a cross-site form post. */
  readonly formPost: boolean;
}

/** The header that sets the cookie. */
function stateCookie(state: string, options: CookieOptions): string {
  return `${NAME}=${state}; ${attributes(options, externalLimits.flowMs / 1000)}`;
}

/** The header that deletes the cookie. */
function noStateCookie(options: CookieOptions): string {
  return `${NAME}=; ${attributes(options, 0)}`;
}

/** Returns the state from a `Cookie` header; `null` if it is absent or ambiguous, which suggests an injected cookie. */
function stateOf(header: string | undefined): string | null {
  const states = (header ?? "").split(";").map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${NAME}=`)).map((pair) => pair.slice(NAME.length + 1));
  return states.length === 1 ? states[0] ?? null : null;
}

function attributes({ secure, formPost }: CookieOptions, seconds: number): string {
  // A cross-site form post only carries cookies with SameSite=None, which browsers accept over https only.
  const sameSite = formPost && secure ? "None" : "Lax";
  return `Path=${PATH}; Max-Age=${seconds}; HttpOnly; SameSite=${sameSite}${secure ? "; Secure" : ""}`;
}
