/** The port of a worker: sockets, calls of functions and static files are answered here, all else by the leader. */
import { Hono } from "hono";
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../../kit/log.ts";
import { httpLimits } from "../../limits.ts";
import { ClientModules } from "../http/client_modules.ts";
import { openDashboard } from "../http/dashboard_page.ts";
import { listen, type Listener } from "../http/listen.ts";
import { OriginGuard } from "../http/origin_guard.ts";
import { withPlainPath } from "../http/plain_path.ts";
import { createRouter } from "../http/router.ts";
import { StaticFiles } from "../http/static_files.ts";
import { upgradeSocket } from "../http/upgrade.ts";
import { Connections } from "../net/connections.ts";
import type { NativeSockets } from "../net/native_sockets.ts";
import type { WorkerBoot } from "./boot.ts";
import { ToLeader } from "./to_leader.ts";
import { startWorkerBackend, type WorkerBackend } from "./worker_backend.ts";

interface WorkerParts {
  readonly backend: WorkerBackend;
  readonly connections: Connections;
  readonly dashboard: StaticFiles;
  readonly log: Log;
}

export class WorkerServer {
  readonly #boot: WorkerBoot;
  readonly #log: Log;
  readonly #backend: WorkerBackend;
  readonly #connections: Connections;
  readonly #leader: ToLeader;
  readonly #origins: OriginGuard | null;
  readonly #router: ReturnType<typeof createRouter>;
  readonly #http: Listener;
  #frontend: StaticFiles | null = null;

  private constructor(boot: WorkerBoot, parts: WorkerParts) {
    const { backend, connections, dashboard, log } = parts;
    this.#boot = boot;
    this.#log = log;
    this.#backend = backend;
    this.#connections = connections;
    const { host, port, config: { allowedOrigins, publicUrl }, passed: { path } } = boot;
    this.#leader = new ToLeader({ path, log });
    this.#origins = allowedOrigins === null ? null : new OriginGuard({ allowed: allowedOrigins, publicUrl });
    this.#router = createRouter({
      routes: new Hono(),
      acceptSocket: (request, info) => this.#acceptSocket(request, info),
      ts: () => backend.host.ts,
      appRoutes: () => null,
      clientModules: new ClientModules(),
      dashboard,
      frontend: () => this.#frontend,
      log,
    });
    const onPause = (error: unknown) => {
      connections.relieve();
      log("warn", "No connection could be taken for a moment: raise the limit of open files", { error });
    };
    this.#http = listen(
      { host, port, shared: true, onPause },
      (request, info) => this.#respond(request, info),
    );
    connections.watch(port);
  }

  /** Serves until the leader ends it, or is gone. Gives whether that was in order. */
  static async run(
    boot: WorkerBoot,
    { native, log }: { readonly native: NativeSockets | null; readonly log: Log },
  ): Promise<boolean> {
    using connections = new Connections({ native, log });
    await using backend = await startWorkerBackend(boot, { socketsMax: connections.socketsMax, log });
    const dashboard = await openDashboard();
    const server = new WorkerServer(boot, { backend, connections, dashboard, log });
    await server.#openFrontend();
    backend.host.onReload(() => void server.#openFrontend());
    backend.ready();
    const { why, orderly } = await backend.ended;
    if (!orderly) log("warn", "This process ends: it has lost the one that writes", { reason: why });
    await server.#stop(orderly);
    return orderly;
  }

  /** What an option names, or what came with the version that is served. */
  async #openFrontend(): Promise<void> {
    const { staticDir, example } = this.#boot.config;
    const deployed = this.#backend.host.version?.staticDir ?? null;
    const folder = staticDir !== null && !example ? staticDir : deployed ?? staticDir;
    try {
      this.#frontend = folder === null ? null : await StaticFiles.open(folder, { clientRoutes: true });
    } catch (error) {
      this.#log("error", "The front end that came with the functions cannot be served", { error });
      this.#frontend = null;
    }
  }

  #acceptSocket(request: Request, info: Deno.ServeHandlerInfo): Response {
    const { hub, addressOf } = this.#backend;
    // Once it is upgraded, the request does not tell any more.
    const address = addressOf(request, info);
    const { remoteAddr } = info;
    const { socket, response } = upgradeSocket(request);
    const connection = this.#connections.upgraded(remoteAddr);
    socket.addEventListener("close", () => connection.closed());
    hub.accept(socket, { connection, address });
    return response;
  }

  #respond(given: Request, info: Deno.ServeHandlerInfo): Response | Promise<Response> {
    const request = withPlainPath(given);
    const { pathname } = new URL(request.url);
    const ofApi = pathname === "/api" || pathname.startsWith("/api/");
    const answer = ofApi ? this.#respondApi(request, { info, pathname }) : this.#respondPage(request, info);
    if (answer instanceof Promise) this.#connections.requested(request, info);
    return answer;
  }

  #respondPage(request: Request, info: Deno.ServeHandlerInfo): Response | Promise<Response> {
    const { pathname } = new URL(request.url);
    const ofService = pathname === "/_" || pathname.startsWith("/_/");
    const route = ofService ? null : this.#backend.host.findRoute(request.method, pathname);
    if (pathname === "/metrics" || route !== null) return this.#leader.pass(request, info);
    return this.#counted(pathname, this.#router.fetch(request, info));
  }

  #counted(pathname: string, answer: Response | Promise<Response>): Response | Promise<Response> {
    const { report } = this.#backend;
    if (answer instanceof Response) report.answered(pathname, answer.status);
    else answer.then(({ status }) => report.answered(pathname, status), () => report.answered(pathname, 500));
    return answer;
  }

  #respondApi(
    request: Request,
    { info, pathname }: { readonly info: Deno.ServeHandlerInfo; readonly pathname: string },
  ): Response | Promise<Response> {
    const refused = this.#origins?.refuse(request) ?? null;
    if (refused !== null) return this.#counted(pathname, refused);
    const answer = this.#backend.calls.respondAtOnce(request, info) ??
      (pathname === "/api/sync" ? this.#router.fetch(request, info) : null);
    if (answer === null) return this.#leader.pass(request, info);
    return this.#counted(pathname, this.#origins?.narrow(request, answer) ?? answer);
  }

  /** Nobody waits for a leader that is gone: whoever is connected here comes back to another process. */
  async #stop(orderly: boolean): Promise<void> {
    const finished = this.#http.shutdown();
    await this.#backend.hub.shutdown();
    if (orderly) await Promise.race([finished, delay(httpLimits.drainMs)]);
    this.#leader[Symbol.dispose]();
  }
}
