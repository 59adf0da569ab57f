/**
 * Which part of the server answers a request. Service routes come first (`/api/*`, `/_/*`, `/metrics`) and are never
 * answered with static files; everything else belongs to the app: its own routes, then its static frontend.
 */
import { Hono } from "hono";
import { cors } from "hono/cors";
import { NONCE, secureHeaders, type SecureHeadersVariables } from "hono/secure-headers";
import { ServiceError } from "../../errors.ts";
import type { Log } from "../../kit/log.ts";
import { requestPath } from "../../kit/request_path.ts";
import { exposeHeaders } from "./api_headers.ts";
import type { AppRoutes } from "./app_routes.ts";
import type { ClientModules } from "./client_modules.ts";
import { DocsPages } from "../docs/docs_pages.ts";
import { dashboardFile } from "./dashboard_page.ts";
import { errorResponse, failureResponse } from "../../kit/error_response.ts";
import type { Frontend } from "./frontend.ts";
import type { StaticFiles } from "./static_files.ts";
import { VERSION } from "../../config/version.ts";

export interface RouterParts {
  /** Routes below `/api`: one-shot function calls, accounts and files. */
  readonly routes: Hono;
  /** Routes whose answers are complete as they are. */
  readonly completeRoutes?: Hono;
  /** Answers the WebSocket handshake of `/api/sync`. */
  readonly acceptSocket: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;
  /** ts of the newest commit, for `/api/health`. */
  readonly ts: () => number;
  /** The app's own routes. */
  readonly appRoutes: AppRoutes;
  readonly clientModules: ClientModules;
  readonly dashboard: StaticFiles;
  /** The app's frontend as it is now; `null` when it has none. */
  readonly frontend: () => Frontend | null;
  /** Answers `/metrics`; absent when there are none. */
  readonly metrics?: (request: Request) => Promise<Response>;
  readonly log: Log;
}

/** The version of RFC 6455, the only one there is. */
const WEBSOCKET_VERSION = "13";

/** HSTS is left to whoever ends TLS, which this server does not. */
const commonHeaders = {
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  strictTransportSecurity: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
} as const;

export function createRouter(parts: RouterParts): Hono<{ Variables: SecureHeadersVariables }> {
  const app = new Hono<{ Variables: SecureHeadersVariables }>({ getPath: requestPath });
  app.notFound(() => errorResponse(new ServiceError("not_found")));
  app.onError((error) => failureResponse(error, parts.log));

  // Before all middleware: the answer to a handshake must leave exactly as the platform made it.
  app.get("/api/sync", (c) => {
    const asks = c.req.header("upgrade")?.toLowerCase() === "websocket";
    if (asks && c.req.header("sec-websocket-version") === WEBSOCKET_VERSION) {
      return parts.acceptSocket(c.req.raw, c.env as Deno.ServeHandlerInfo);
    }
    const response = errorResponse(new ServiceError("upgrade_required"));
    response.headers.set("Upgrade", "websocket");
    response.headers.set("Sec-WebSocket-Version", WEBSOCKET_VERSION);
    return response;
  });

  if (parts.completeRoutes !== undefined) app.route("/", parts.completeRoutes);

  // Apps on other origins may call: credentials are bearer tokens, which no browser sends by itself.
  app.use("/api/*", cors({ origin: "*", maxAge: 7200, exposeHeaders: [...exposeHeaders] }));
  app.use(
    "/api/*",
    secureHeaders({ ...commonHeaders, xFrameOptions: false, crossOriginResourcePolicy: false }),
  );
  app.get(
    "/api/health",
    (c) =>
      c.json({ status: "ok", ts: parts.ts() }, 200, {
        "Cache-Control": "no-store",
        // To who sends it on trial: it comes through, and mutations that have it are recognised.
        ...c.req.header("Syncline-Request") !== undefined && { "Syncline-Request": "recognised" },
      }),
  );
  app.route("/", parts.routes);
  app.all("/api", (c) => c.notFound());
  app.all("/api/*", (c) => c.notFound());

  app.use("/_/*", secureHeaders(serviceHeaders));
  app.get("/_/client.js", (c) => parts.clientModules.respondWithEntry(c.req.raw, "client"));
  app.get("/_/react.js", (c) => parts.clientModules.respondWithEntry(c.req.raw, "react"));
  app.get(
    "/_/modules/*",
    (c) => parts.clientModules.respond(c.req.raw, c.req.path.slice("/_/modules/".length)),
  );
  app.get("/_/about", (c) => c.json({ name: "Syncline", version: VERSION }));
  app.get("/_", (c) => c.redirect("/_/"));
  const docs = new DocsPages();
  app.get("/_/docs", (c) => c.redirect("/_/docs/"));
  app.get(
    "/_/docs/*",
    async (c) => await docs.respond(c.req.path.slice("/_/docs/".length), c.req.query("q")) ?? c.notFound(),
  );
  app.get("/_/*", async (c) => {
    const pathname = c.req.path.slice("/_".length);
    const nonce = c.get("secureHeadersNonce") ?? "";
    const response = await dashboardFile(parts.dashboard, { request: c.req.raw, pathname, nonce });
    return response.status === 404 ? c.notFound() : response;
  });
  app.all("/_", (c) => c.notFound());
  app.all("/_/*", (c) => c.notFound());
  const { metrics } = parts;
  app.all("/metrics", (c) => metrics === undefined ? c.notFound() : metrics(c.req.raw));

  // Before the middleware: what headers an app's responses have is for the app to say.
  app.all(
    "*",
    async (c, next) => await parts.appRoutes(c.req.raw, c.env as Deno.ServeHandlerInfo) ?? await next(),
  );
  app.use("*", secureHeaders(frontendHeaders));
  app.all("*", async (c) => {
    const frontend = parts.frontend();
    const { method } = c.req;
    if (frontend !== null) return await frontend.respond(c.req.raw, c.req.path);
    const isFirstPage = c.req.path === "/" && (method === "GET" || method === "HEAD");
    return isFirstPage ? c.redirect("/_/") : c.notFound();
  });
  return app;
}

/** The dashboard shows nothing but its own files, in no frame; its modules may be imported by any page. */
const serviceHeaders = {
  ...commonHeaders,
  crossOriginResourcePolicy: "cross-origin",
  xFrameOptions: "DENY",
  contentSecurityPolicy: {
    defaultSrc: ["'self'"],
    // Styles that scripts add to the page carry the page's nonce.
    styleSrc: ["'self'", NONCE],
    imgSrc: ["'self'", "data:", "blob:"],
    objectSrc: ["'none'"],
    baseUri: ["'none'"],
    formAction: ["'self'"],
    frameAncestors: ["'none'"],
  },
};

/** What is safe for every app; the rest is for its authors to decide. */
const frontendHeaders = {
  ...commonHeaders,
  crossOriginResourcePolicy: false,
  referrerPolicy: "strict-origin-when-cross-origin",
} as const;
