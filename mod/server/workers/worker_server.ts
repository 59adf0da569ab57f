/** The HTTP server of a worker: answers sockets, function calls and static files, and forwards everything else to the leader. */
import { Hono } from "hono";
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../../kit/log.ts";
import { httpLimits } from "../../limits.ts";
import { ClientModules } from "../http/client_modules.ts";
import { openDashboard, StaticFiles } from "../http/static_files.ts";
import { listen, type Listener } from "../http/listen.ts";
import { type AcceptedRequest, isApi, RequestGate } from "../http/request_gate.ts";
import { createRouter } from "../http/router.ts";
import { upgradeSocket } from "../http/requests.ts";
import { Connections } from "../net/connections.ts";
import type { NativeSockets } from "../net/native_sockets.ts";
import type { WorkerBoot } from "./boot.ts";
import { LeaderProxy } from "../forwarding/leader_proxy.ts";
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
  readonly #leader: LeaderProxy;
  readonly #gate: RequestGate;
  readonly #router: ReturnType<typeof createRouter>;
  readonly #http: Listener;
  readonly #portEnded = Promise.withResolvers<void>();
  #frontend: StaticFiles | null = null;

  private constructor(boot: WorkerBoot, parts: WorkerParts) {
    const { backend, connections, dashboard, log } = parts;
    this.#boot = boot;
    this.#log = log;
    this.#backend = backend;
    this.#connections = connections;
    const { host, port, config, passed: { path } } = boot;
    this.#leader = new LeaderProxy({ path, log });
    this.#gate = new RequestGate({ ...config, host }, log);
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
      connections.closeIdle();
      log("warn", "Cannot accept connections for a moment. Raise the limit of open files", { error });
    };
    const onEnd = (error: Error) => {
      log("error", "This worker ends because its port was closed", { error });
      this.#portEnded.resolve();
    };
    this.#http = listen(
      { host, port, shared: true, onPause, onEnd },
      (request, info) => this.#respond(request, info),
    );
    connections.watch(port);
  }

  /** Serves until the leader stops it or is lost. Returns `true` after an orderly stop. */
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
    const ended = await Promise.race([backend.ended, server.#portEnded.promise]);
    const { why = null, orderly = false } = ended ?? {};
    if (why !== null && !orderly) {
      log("warn", "This worker ends because it lost the leader", { reason: why });
    }
    await server.#stop(orderly);
    return orderly;
  }

  /** Opens the folder of an option, or the frontend of the deployed version. */
  async #openFrontend(): Promise<void> {
    const { staticDir, example } = this.#boot.config;
    const deployed = this.#backend.host.code.version?.staticDir ?? null;
    const folder = staticDir !== null && !example ? staticDir : deployed ?? staticDir;
    try {
      this.#frontend = folder === null ? null : await StaticFiles.open(folder, { clientRoutes: true });
    } catch (error) {
      this.#log("error", "Cannot serve the frontend of the deployed version", {
        code: "deploy",
        error,
      });
      this.#frontend = null;
    }
  }

  #acceptSocket(request: Request, info: Deno.ServeHandlerInfo): Response {
    const { hub, addressOf } = this.#backend;
    // The address cannot be read after the upgrade.
    const address = addressOf(request, info);
    const { remoteAddr } = info;
    const { socket, response } = upgradeSocket(request);
    const connection = this.#connections.trackUpgrade(remoteAddr);
    socket.addEventListener("close", () => connection.closed());
    hub.accept(socket, { connection, address });
    return response;
  }

  #respond(given: Request, info: Deno.ServeHandlerInfo): Response | Promise<Response> {
    const admitted = this.#gate.check(given);
    if (admitted instanceof Response) return this.#counted("/", admitted);
    const answer = isApi(admitted.path)
      ? this.#respondApi(admitted, info)
      : this.#respondPage(admitted, info);
    if (answer instanceof Promise) this.#connections.trackRequest(admitted.request, info);
    return answer;
  }

  #respondPage(
    { request, path }: AcceptedRequest,
    info: Deno.ServeHandlerInfo,
  ): Response | Promise<Response> {
    const ofService = path === "/_" || path.startsWith("/_/");
    const route = ofService ? null : this.#backend.host.routes.find(request.method, path);
    if (path === "/metrics" || route !== null) return this.#leader.forward(request, info);
    return this.#counted(path, this.#router.fetch(request, info));
  }

  #counted(path: string, answer: Response | Promise<Response>): Response | Promise<Response> {
    const { report } = this.#backend;
    if (answer instanceof Response) report.answered(path, answer.status);
    else answer.then(({ status }) => report.answered(path, status), () => report.answered(path, 500));
    return answer;
  }

  #respondApi(
    { request, path, finish }: AcceptedRequest,
    info: Deno.ServeHandlerInfo,
  ): Response | Promise<Response> {
    const answer = this.#backend.calls.handleDirectly(request, info) ??
      (path === "/api/sync" ? this.#router.fetch(request, info) : null);
    // The leader restricts the CORS headers of its responses itself.
    return answer === null ? this.#leader.forward(request, info) : this.#counted(path, finish(answer));
  }

  /** Without a leader, running requests are not awaited: clients reconnect to another process. */
  async #stop(orderly: boolean): Promise<void> {
    const finished = this.#http.shutdown();
    await this.#backend.hub.shutdown();
    if (orderly) await Promise.race([finished, delay(httpLimits.drainMs)]);
    this.#leader[Symbol.dispose]();
  }
}
