/** Routes requests: the service's paths, which are never static files, then the app's routes and its frontend. */
import { Hono } from "hono";
import { cors } from "hono/cors";
import { NONCE, secureHeaders, type SecureHeadersVariables } from "hono/secure-headers";
import { ServiceError } from "../../errors.ts";
import type { Log } from "../../kit/log.ts";
import { requestPath } from "../../kit/http_request.ts";
import { type AppRoutes, exposeHeaders } from "./app_routes.ts";
import { clientEntries, type ClientModules } from "./client_modules.ts";
import { DocsPages } from "../docs/docs_pages.ts";
import { dashboardFile, type Frontend, type StaticFiles } from "./static_files.ts";
import { errorResponse, failureResponse } from "../../kit/error_response.ts";
import { VERSION } from "../../config/version.ts";

export interface RouterParts {
  /** Routes below `/api`: function calls, accounts and files. */
  readonly routes: Hono;
  /** Routes whose responses need no further headers. */
  readonly completeRoutes?: Hono;
  /** Answers the WebSocket handshake of `/api/sync`. */
  readonly acceptSocket: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;
  /** ts of the newest commit, for `/api/health`. */
  readonly ts: () => number;
  readonly appRoutes: AppRoutes;
  readonly clientModules: ClientModules;
  readonly dashboard: StaticFiles;
  /** The app's current frontend; `null` if it has none. */
  readonly frontend: () => Frontend | null;
  /** Answers `/metrics`; absent without metrics. */
  readonly metrics?: (request: Request) => Promise<Response>;
  readonly log: Log;
}

/** The only version of RFC 6455. */
const WEBSOCKET_VERSION = "13";

/** HSTS is left to the proxy that terminates TLS. */
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

  // Before all middleware: the response to a handshake must not be modified.
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

  // Pages of other origins may call: credentials are bearer tokens, which browsers do not send by themselves.
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
        // Confirms to a client that its proxies let the header pass and that mutations with it are deduplicated.
        ...c.req.header("Syncline-Request") !== undefined && { "Syncline-Request": "recognised" },
      }),
  );
  app.route("/", parts.routes);
  app.all("/api", (c) => c.notFound());
  app.all("/api/*", (c) => c.notFound());

  app.use("/_/*", secureHeaders(serviceHeaders));
  for (const entry of clientEntries) {
    app.get(`/_/${entry}.js`, (c) => parts.clientModules.respondWithEntry(c.req.raw, entry));
  }
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

  // Before the middleware: the app sets the headers of its own responses.
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

/** The dashboard loads only its own files and cannot be framed. Any page may import the client modules. */
const serviceHeaders = {
  ...commonHeaders,
  crossOriginResourcePolicy: "cross-origin",
  xFrameOptions: "DENY",
  contentSecurityPolicy: {
    defaultSrc: ["'self'"],
    // Styles that scripts add carry the page's nonce.
    styleSrc: ["'self'", NONCE],
    imgSrc: ["'self'", "data:", "blob:"],
    objectSrc: ["'none'"],
    baseUri: ["'none'"],
    formAction: ["'self'"],
    frameAncestors: ["'none'"],
  },
};

/** Headers that are safe for every app; its authors set the others. */
const frontendHeaders = {
  ...commonHeaders,
  crossOriginResourcePolicy: false,
  referrerPolicy: "strict-origin-when-cross-origin",
} as const;
