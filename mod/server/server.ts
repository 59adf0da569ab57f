/** A running server, from start to stop: data folder lock, port, backend, cluster membership and takeover. */
import { ServiceError } from "../errors.ts";
import { isFollower, type ServeConfig } from "../config/config.ts";
import { StartError } from "../config/start_error.ts";
import { errorResponse, failureResponse } from "../kit/error_response.ts";
import { httpLimits } from "../limits.ts";
import { stagedRestore } from "../ops/backups/restore/mod.ts";
import type { Backend } from "./backend.ts";
import type { ReloadResult } from "./dev/reload_result.ts";
import { ClusterMembership } from "./cluster_membership.ts";
import { claimData, DataLock, DataLockedError } from "./data/data_lock.ts";
import { checkNoStagedRestoreInCluster, logRestore } from "./data/data_restore.ts";
import { devFrontend } from "./dev/dev_frontend.ts";
import { type Frontend, openDashboard, StaticFiles } from "./http/static_files.ts";
import { Port } from "./http/port.ts";
import { type AcceptedRequest, RequestGate } from "./http/request_gate.ts";
import { dataLockLimits, takeoverLimits } from "./limits.ts";
import type { ServerOptions } from "./server_options.ts";
import { Serving, type Statics } from "./serving.ts";
import {
  ForwardedRequests,
  Handover,
  HeldRequests,
  OldProcess,
  TakeoverCompletion,
  TakeoverListener,
} from "./takeover/mod.ts";
import type { Workers } from "./workers/workers.ts";

/** Resources held before the app is loaded. */
interface StartResources extends Statics {
  readonly lock: DataLock;
}

export class Server implements AsyncDisposable {
  readonly #parts: ServerOptions;
  readonly #lock: DataLock;
  readonly #port: Port;
  readonly #serving: Serving;
  readonly #gate: RequestGate;
  /** Set before the app is loaded; `null` outside a cluster. */
  #membership: ClusterMembership | null = null;
  /** Worker processes that share the port. */
  #workers: Workers | null = null;
  /** Accepts takeover requests. */
  #takeoverListener: TakeoverListener | null = null;
  #handover: Handover | null = null;
  readonly #handedOver = Promise.withResolvers<void>();
  /** Waits for the old process to end after a takeover. */
  #succession: TakeoverCompletion | null = null;
  /** Set by the first `stop`; later calls return the same promise. */
  #stopped: Promise<void> | null = null;
  readonly #stopping = new AbortController();

  private constructor(parts: ServerOptions, { lock, ...statics }: StartResources) {
    const { native = null, log, config } = parts;
    this.#parts = parts;
    this.#lock = lock;
    this.#port = new Port({ config, native, log, respond: (request, info) => this.#respond(request, info) });
    this.#serving = new Serving({
      parts,
      statics,
      port: this.#port,
      membership: () => this.#membership,
      workerFigures: () => this.#workers?.figures ?? [],
      stopping: this.#stopping.signal,
    });
    this.#gate = new RequestGate(config, log);
  }

  /**
   * Takes the data folder, applies a staged restore, opens the port and loads the app, in this order. Requests are answered
   * with 503 until the app is loaded. Throws a `StartError` or the error of `startBackend`, after releasing everything.
   */
  static async start(parts: ServerOptions): Promise<Server> {
    const { config } = parts;
    const oldProcess = config.takeover ? await OldProcess.find(config.dataDir) : null;
    if (oldProcess !== null) return await Server.#takeOver(parts, oldProcess);
    const statics = await openStatics(config);
    const lock = await acquire(config);
    let server: Server | undefined;
    try {
      if (lock.restored !== null) logRestore(parts.log, lock.restored);
      await claimData(config.dataDir, { example: config.example, restored: lock.restored !== null });
      server = new Server(parts, { lock, ...statics });
      server.#port.listen();
      await server.#joinCluster();
      const served = await server.#serving.load();
      server.#serving.serve(served);
      await server.#startWorkers(served.backend);
      await server.#acceptTakeovers();
      server.#serving.replaceIfRequested();
      return server;
    } catch (error) {
      if (server === undefined) lock[Symbol.dispose]();
      else await server.stop();
      throw error;
    }
  }

  /**
   * Takes over from the old process: starts everything that does not need the database, has the old process release it, and
   * then listens on the same port. Throws a `StartError` or the error of `startBackend`; the old process then continues.
   */
  static async #takeOver(asked: ServerOptions, oldProcess: OldProcess): Promise<Server> {
    const { host, port } = oldProcess.address;
    const parts = { ...asked, config: { ...asked.config, port: asked.config.port ?? port } };
    const { config, log } = parts;
    let server: Server | undefined;
    let resources: StartResources | undefined;
    let passed: ForwardedRequests | undefined;
    const held = new HeldRequests();
    try {
      await checkTakeoverAllowed(config);
      const lock = await DataLock.join(config.dataDir);
      resources = { lock, ...await openStatics(config) };
      await claimData(config.dataDir, { example: config.example });
      const taking = server = new Server(parts, resources);
      const served = await Promise.race([
        taking.#serving.load({
          databaseReleased: () =>
            oldProcess.releaseDatabase(() => lock.waitUntilExclusive(takeoverLimits.inheritMs)),
        }),
        oldProcess.lost,
      ]);
      taking.#serving.hold(served, held);
      const calls = served.backend.forwardedCalls;
      if (calls === undefined) throw new TypeError("The backend does not accept forwarded calls");
      passed = await ForwardedRequests.open(config.dataDir, {
        calls,
        respond: (request, info) => taking.#respondForwarded(request, info),
      });
      const samePort = config.port === port;
      const shared = samePort && await oldProcess.sharePort();
      if (shared || !samePort) taking.#port.listen({ shared });
      // The old process answers new connections until it has handed over, and continues if this one fails.
      if (shared) taking.#port.steerToFirst();
      await oldProcess.serving(passed);
      // The old process has handed over: no later failure may end this server.
      await lock.recordHolder("serve").catch((error) =>
        log("warn", "Cannot write this process to the lock file", { error })
      );
      taking.#serving.serve(served);
      held.release();
      if (!taking.#port.isOpen) await taking.#port.listenWhenFree(() => taking.#stopped === null);
      const begin = () => taking.#completeTakeover(served.backend);
      taking.#succession = new TakeoverCompletion({ oldProcess, passed, begin, log });
      log("info", "Took over from the old process", { host, port });
      taking.#serving.replaceIfRequested();
      return taking;
    } catch (error) {
      await passed?.[Symbol.asyncDispose]();
      // Requests that wait here are refused.
      held.release();
      // The old process starts its writer when this connection ends, so ours must end first.
      if (server === undefined) resources?.lock[Symbol.dispose]();
      else await server.stop();
      await oldProcess[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** URL for a browser on this machine, without a trailing slash. */
  get url(): string {
    return this.#port.url;
  }

  /** URL that creates the first administrator; `null` if one exists or nothing is served yet. */
  get setupLink(): string | null {
    return this.#serving.backend?.setupLink ?? null;
  }

  /** Resolves when a new process has taken over. The caller then stops this server. */
  get handedOver(): Promise<void> {
    return this.#handedOver.promise;
  }

  /** Resolves when the port is closed for good. The caller then stops this server. */
  get portEnded(): Promise<Error> {
    return this.#port.ended;
  }

  /** Reloads the app's code (`--dev`). */
  async reload(): Promise<ReloadResult> {
    return await this.#serving.backend?.reload() ?? { ok: false, message: "The server is not serving" };
  }

  /** Prepares the next `reload` so that it takes less time (`--dev`). */
  standBy(): void {
    this.#serving.backend?.standBy?.();
  }

  /**
   * Refuses new requests, closes the sockets with 1012, waits up to `drainMs` for running calls, then ends the isolates and
   * releases the data folder.
   */
  stop(): Promise<void> {
    this.#stopping.abort();
    return this.#stopped ??= this.#drain();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Joins the configured cluster. */
  async #joinCluster(): Promise<void> {
    const { config, log } = this.#parts;
    this.#membership = await ClusterMembership.join(config, {
      url: this.url,
      respond: (request, info) => this.#respondForwarded(request, info),
      log,
    });
  }

  async #startWorkers({ leaderParts }: Backend): Promise<void> {
    const { config, log } = this.#parts;
    if (config.workers <= 1 || leaderParts === undefined) return;
    if (!this.#port.share()) {
      throw new StartError(
        "--workers is not supported: this system does not allow several processes to share a port",
        { code: "workers" },
      );
    }
    const respond = (request: Request, info: Deno.ServeHandlerInfo) => this.#respondForwarded(request, info);
    const { Workers } = await import("./workers/workers.ts");
    this.#workers = await Workers.start({
      config,
      port: this.#port.number,
      parts: leaderParts,
      respond,
      log,
    });
  }

  /** Accepts takeovers, unless this server has workers, follows a replica or is in a cluster. */
  async #acceptTakeovers(): Promise<void> {
    const { config, native = null, log } = this.#parts;
    const { backend } = this.#serving;
    // The workers would keep accepting connections on the port.
    if (backend?.lendDatabase === undefined || this.#workers !== null) return;
    if (this.#membership !== null || isFollower(config)) return;
    const server = this.#handover = new Handover({
      address: { host: config.host, port: this.#port.number },
      lendDatabase: async () => await backend.lendDatabase?.() ?? null,
      waitUntilExclusive: () => this.#lock.waitUntilExclusive(takeoverLimits.lostMs),
      respond: (admitted, info) => this.#respondAccepted(admitted, info),
      onHeld: (request, info) => this.#port.connections.trackRequest(request, info),
      native,
      log,
    });
    server.done.then(() => this.#handedOver.resolve());
    this.#takeoverListener = await TakeoverListener.open({ dataDir: config.dataDir, server, log });
  }

  /** Completes a takeover when the old process has ended: starts background work and accepts the next takeover. */
  async #completeTakeover(backend: Backend): Promise<void> {
    const { log } = this.#parts;
    if (this.#stopped !== null) return;
    try {
      await backend.startBackgroundWork?.();
    } catch (error) {
      log("error", "Cannot start background work. Restart the server", { error });
    }
    try {
      if (this.#stopped === null) await this.#acceptTakeovers();
    } catch (error) {
      log("error", "Cannot listen for takeovers. Restart the server", { error });
    }
  }

  async #drain(): Promise<void> {
    // First: a database that was handed to a new process must not be reopened here.
    this.#handover?.stop();
    this.#takeoverListener?.close();
    const membership = this.#membership;
    membership?.cluster.stopping();
    await this.#serving.settled;
    // Other servers are notified first: they keep requests they have not sent yet for the next leader.
    const left = membership?.forwarding.drainFollowers();
    const { state } = this.#serving;
    const backend = "backend" in state ? state.backend : null;
    const gaveWay = this.#handover?.isComplete === true ? this.#handover : null;
    const drainMs = this.#parts.drainMs ?? httpLimits.drainMs;
    // After a handover, late requests are forwarded until the end.
    if (gaveWay === null) this.#serving.drain();
    await this.#succession?.[Symbol.asyncDispose]();
    // Workers finish while this process still answers them.
    const workersEnded = this.#workers?.[Symbol.asyncDispose]();
    try {
      // Sockets first: shutting down the listener would close them without a useful code.
      await backend?.closeSockets();
      await gaveWay?.waitUntilQuiet(drainMs);
      await this.#port.finish(drainMs);
      await left;
      await workersEnded;
      await membership?.forwarding.stopLeading();
      await backend?.[Symbol.asyncDispose]();
    } finally {
      await membership?.[Symbol.asyncDispose]();
      this.#port[Symbol.dispose]();
      this.#lock[Symbol.dispose]();
      this.#handover?.[Symbol.dispose]();
      await this.#takeoverListener?.[Symbol.asyncDispose]();
    }
  }

  #respond(given: Request, info: Deno.ServeHandlerInfo): Response | Promise<Response> {
    return this.#respondAccepted(this.#gate.check(given), info);
  }

  /** Answers a request that another process forwards. That process has checked its host. */
  #respondForwarded(given: Request, info: Deno.ServeHandlerInfo): Response | Promise<Response> {
    return this.#respondAccepted(this.#gate.check(given, { passedOn: true }), info);
  }

  #respondAccepted(
    admitted: AcceptedRequest | Response,
    info: Deno.ServeHandlerInfo,
  ): Response | Promise<Response> {
    const { state } = this.#serving;
    if (admitted instanceof Response) {
      if (state.name === "serving") state.backend.metrics?.requests.count(null, admitted);
      return admitted;
    }
    const { request, path, finish } = admitted;
    if (state.name === "serving") {
      const forwarded = this.#handover?.respond(admitted, info) ?? null;
      if (forwarded !== null) return forwarded;
      const { backend, router, requests } = state;
      const respond = () => {
        const elsewhere = backend.forwardToLeader?.(request, info);
        if (elsewhere) return elsewhere;
        const answer = backend.respondAtOnce?.(request, info) ?? router.fetch(request, info);
        if (requests !== null && answer instanceof Promise) requests.add(answer);
        return answer;
      };
      const answer = finish(respond());
      if (answer instanceof Promise) this.#port.connections.trackRequest(request, info);
      return backend.metrics?.requests.count(path, answer) ?? answer;
    }
    if (state.name === "waiting") return this.#afterSwitch(admitted, { info, held: state.held });
    if (path === "/api/health") {
      return Response.json({ status: state.name }, { status: 503, headers: { "Cache-Control": "no-store" } });
    }
    return errorResponse(new ServiceError("unavailable"));
  }

  /** Answers a request that arrived before the takeover was complete. */
  async #afterSwitch(
    admitted: AcceptedRequest,
    { info, held }: { readonly info: Deno.ServeHandlerInfo; readonly held: HeldRequests },
  ): Promise<Response> {
    try {
      await held.wait();
      return await this.#respondAccepted(admitted, info);
    } catch (error) {
      return failureResponse(error, this.#parts.log);
    }
  }
}

async function openStatics(config: ServeConfig): Promise<Statics> {
  const dashboard = await openDashboard();
  const frontend = await openFrontend(config);
  return { dashboard, frontend };
}

async function openFrontend({ staticDir, devFrontendUrl }: ServeConfig): Promise<Frontend | null> {
  if (devFrontendUrl !== null) return devFrontend(devFrontendUrl);
  return staticDir === null ? null : await StaticFiles.open(staticDir, { clientRoutes: true });
}

/** Throws a `StartError` if this configuration cannot take over. */
async function checkTakeoverAllowed(config: ServeConfig): Promise<void> {
  if (isFollower(config)) {
    throw new StartError("A server that follows a replica cannot take over. Stop the running server first", {
      code: "replication",
    });
  }
  if (await stagedRestore(config.dataDir) !== null) {
    throw new StartError("A restore is staged, which a takeover cannot apply. Restart the running server", {
      code: "restore",
    });
  }
}

async function acquire({ dataDir, takeover, cluster }: ServeConfig): Promise<DataLock> {
  try {
    const lock = await DataLock.acquire(dataDir, {
      by: "serve",
      restore: cluster === null ? "apply" : "finish",
      waitMs: dataLockLimits.serveWaitMs,
    });
    try {
      if (cluster !== null) await checkNoStagedRestoreInCluster(dataDir);
      return lock;
    } catch (error) {
      lock[Symbol.dispose]();
      throw error;
    }
  } catch (error) {
    if (!takeover || !(error instanceof DataLockedError) || !error.byServer) throw error;
    throw new StartError(
      `A takeover is not possible: the server that uses the data folder "${dataDir}" is starting or stopping, has ` +
        "workers, or is too old. Try again, or stop it first",
      { code: "takeover", cause: error },
    );
  }
}
