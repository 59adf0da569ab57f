/** One running server: the data folder's lock, the port, the isolates and the hub, from start to stop. */
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ServiceError } from "../errors.ts";
import type { Log } from "../kit/log.ts";
import { connectionLimits, dataLockLimits } from "./limits.ts";
import { httpLimits } from "../limits.ts";
import type { Backend, BackendSurroundings, ReloadResult } from "./backend.ts";
import { ClientModules } from "./http/client_modules.ts";
import type { ServeConfig } from "../config/config.ts";
import { DataLock } from "./data/data_lock.ts";
import { claimData } from "./data/data_owner.ts";
import { logRestore } from "./data/data_restore.ts";
import { errorResponse } from "../kit/error_response.ts";
import { listen, type Listener, localUrl } from "./http/listen.ts";
import { withPlainPath } from "./http/plain_path.ts";
import { OriginGuard } from "./http/origin_guard.ts";
import { createRouter } from "./http/router.ts";
import { StaticFiles } from "./http/static_files.ts";
import { Connections } from "./net/connections.ts";
import type { NativeSockets } from "./net/native_sockets.ts";

const DASHBOARD_DIR = fileURLToPath(new URL("../../dashboard/public", import.meta.url));

/** Starts what is behind the HTTP face; tests give one of their own. */
export type StartBackend = (config: ServeConfig, surroundings: BackendSurroundings) => Promise<Backend>;

export interface ServerParts {
  readonly config: ServeConfig;
  readonly log: Log;
  readonly startBackend: StartBackend;
  /** What the system can do about connections; without it those that do nothing stay open. */
  readonly native?: NativeSockets | null;
  /** Time running calls get to finish when the server stops. */
  readonly drainMs?: number;
  /** Called when an administrator asks for a restart: to stop the server is then for the caller to do. */
  readonly onRestart?: () => void;
}

/**
 * A server is `starting` from the moment its port is open, `serving` once the app is loaded and `draining` when it was
 * told to stop; it never goes back.
 */
type State =
  | { readonly name: "starting" }
  | { readonly name: "serving"; readonly router: ReturnType<typeof createRouter>; readonly backend: Backend }
  | { readonly name: "draining" };

/** What a server holds before its app is loaded. */
interface Held {
  readonly lock: DataLock;
  readonly dashboard: StaticFiles;
  readonly frontend: StaticFiles | null;
}

export class Server implements AsyncDisposable {
  readonly #parts: ServerParts;
  readonly #held: Held;
  readonly #http: Listener;
  readonly #connections: Connections;
  /** When the log last said that no connection could be taken. */
  #pauseToldAt = -Infinity;
  /** `null`: pages of any origin may use the API. */
  readonly #origins: OriginGuard | null;
  #state: State = { name: "starting" };
  /** While another backend is put in the place of the present one; never rejects. */
  #renewing: Promise<void> | null = null;
  /** Set by the first `stop`; later ones wait for it too. */
  #stopped: Promise<void> | null = null;

  private constructor(parts: ServerParts, held: Held) {
    this.#parts = parts;
    this.#held = held;
    const { config: { host, port }, native = null, log } = parts;
    this.#connections = new Connections({ native, log });
    const onPause = (error: unknown) => this.#relieve(error);
    this.#http = listen({ host, port, onPause }, (request, info) => this.#respond(request, info));
    this.#connections.watch(this.#http.addr.port);
    const { allowedOrigins, publicUrl } = parts.config;
    this.#origins = allowedOrigins === null ? null : new OriginGuard({ allowed: allowedOrigins, publicUrl });
  }

  /**
   * Takes the data folder, applies a restore that is staged in it, opens the port and loads the app, in this order. Until the app is loaded every request is
   * answered with 503. Throws a `StartError`, or what `startBackend` threw, and holds nothing then.
   */
  static async start(parts: ServerParts): Promise<Server> {
    const { config } = parts;
    const dashboard = await StaticFiles.open(DASHBOARD_DIR, { clientRoutes: false });
    const frontend = config.staticDir === null
      ? null
      : await StaticFiles.open(config.staticDir, { clientRoutes: true });
    const lock = await DataLock.acquire(config.dataDir, {
      by: "serve",
      restore: "apply",
      waitMs: dataLockLimits.serveWaitMs,
    });
    let server: Server | undefined;
    try {
      if (lock.restored !== null) logRestore(parts.log, lock.restored);
      await claimData(config.dataDir, { example: config.example, restored: lock.restored !== null });
      server = new Server(parts, { lock, dashboard, frontend });
      await server.#load();
      return server;
    } catch (error) {
      if (server === undefined) lock[Symbol.dispose]();
      else await server.stop();
      throw error;
    }
  }

  /** Address for a browser on this machine, without a slash at its end. */
  get url(): string {
    return localUrl(this.#http.addr);
  }

  /** Where the first administrator is created; `null` when there is one, or nothing is served. */
  get setupLink(): string | null {
    return this.#state.name === "serving" ? this.#state.backend.setupLink : null;
  }

  /** Loads the app's code anew (`--dev`). */
  async reload(): Promise<ReloadResult> {
    if (this.#state.name !== "serving") return { ok: false, message: "The server is not serving" };
    return await this.#state.backend.reload();
  }

  /**
   * Refuses new requests, closes the sockets with 1012, lets running calls finish for at most `drainMs`, then
   * ends the isolates and gives the data folder up.
   */
  stop(): Promise<void> {
    return this.#stopped ??= this.#drain();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #load(): Promise<void> {
    const { config, log, startBackend, onRestart } = this.#parts;
    const restart = config.restartExitCode === null || onRestart === undefined ? null : onRestart;
    const connections = this.#connections;
    const { socketsMax } = connections;
    const renew = () => void (this.#renewing ??= this.#renew().finally(() => this.#renewing = null));
    const backend = await startBackend(config, { log, url: this.url, restart, socketsMax, renew });
    const router = createRouter({
      routes: backend.routes,
      ...(backend.completeRoutes !== undefined && { completeRoutes: backend.completeRoutes }),
      acceptSocket(request, info) {
        const { remoteAddr } = info;
        return backend.acceptSocket(request, { info, upgraded: () => connections.upgraded(remoteAddr) });
      },
      ts: () => backend.ts,
      appRoutes: backend.appRoutes,
      clientModules: new ClientModules(),
      dashboard: this.#held.dashboard,
      frontend: this.#held.frontend,
      ...(backend.metrics && { metrics: backend.metrics.respond }),
      log,
    });
    this.#state = { name: "serving", router, backend };
  }

  /** Sockets come back by themselves; requests are refused meanwhile, as at a start. */
  async #renew(): Promise<void> {
    if (this.#state.name !== "serving") return;
    const { backend } = this.#state;
    this.#state = { name: "starting" };
    try {
      await backend.closeSockets();
      await backend[Symbol.asyncDispose]();
    } catch (error) {
      this.#parts.log("error", "What was served could not be ended as it should", { error });
    }
    while (this.#stopped === null) {
      try {
        return await this.#load();
      } catch (error) {
        this.#parts.log("error", "What is to be served now cannot be started; it is tried again", { error });
        await delay(httpLimits.drainMs);
      }
    }
  }

  async #drain(): Promise<void> {
    await this.#renewing;
    const backend = this.#state.name === "serving" ? this.#state.backend : null;
    this.#state = { name: "draining" };
    try {
      // Sockets first: shutting the listener down would close them with a code that tells clients nothing.
      await backend?.closeSockets();
      await this.#finishRequests();
      await backend?.[Symbol.asyncDispose]();
    } finally {
      this.#connections[Symbol.dispose]();
      this.#held.lock[Symbol.dispose]();
    }
  }

  /** The port is closed for a moment, because no connection could be taken. */
  #relieve(error: unknown): void {
    const ended = this.#connections.relieve();
    const now = performance.now();
    if (now - this.#pauseToldAt < connectionLimits.acceptToldMs) return;
    this.#pauseToldAt = now;
    this.#parts.log("warn", "No connection could be taken for a moment: raise the limit of open files", {
      error,
      ended,
    });
  }

  /** A request that is late is not cut off here: ending the isolates answers it, and the process ends anyway. */
  async #finishRequests(): Promise<void> {
    const finished = this.#http.shutdown();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), this.#parts.drainMs ?? httpLimits.drainMs);
    });
    if (await Promise.race([finished, late]) === "late") {
      this.#parts.log("warn", "Requests were still running when the time to finish them was over");
    }
    clearTimeout(timer);
  }

  #respond(given: Request, info: Deno.ServeHandlerInfo): Response | Promise<Response> {
    const request = withPlainPath(given);
    const state = this.#state;
    if (state.name === "serving") {
      const { backend, router } = state;
      const origins = this.#origins;
      const answer = origins === null
        ? backend.respondAtOnce?.(request, info) ?? router.fetch(request, info)
        : origins.refuse(request) ??
          origins.narrow(request, backend.respondAtOnce?.(request, info) ?? router.fetch(request, info));
      if (answer instanceof Promise) this.#connections.requested(request, info);
      return backend.metrics?.requests.count(request, answer) ?? answer;
    }
    if (new URL(request.url).pathname === "/api/health") {
      return Response.json({ status: state.name }, { status: 503, headers: { "Cache-Control": "no-store" } });
    }
    return errorResponse(new ServiceError("unavailable"));
  }
}
