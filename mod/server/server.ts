/** One running server: the data folder's lock, the port, the isolates and the hub, from start to stop. */
import { ServiceError } from "../errors.ts";
import { isFollower, type ServeConfig } from "../config/config.ts";
import { StartError } from "../config/start_error.ts";
import { errorResponse, failureResponse } from "../kit/error_response.ts";
import { httpLimits } from "../limits.ts";
import { stagedRestore } from "../ops/backups/restore/mod.ts";
import type { Backend } from "./backend.ts";
import type { ReloadResult } from "./dev/reload_result.ts";
import { ClusterSeat } from "./cluster_seat.ts";
import { DataLock, DataLockedError } from "./data/data_lock.ts";
import { claimData } from "./data/data_owner.ts";
import { logRestore, refuseStagedInCluster } from "./data/data_restore.ts";
import { devFrontend } from "./dev/dev_frontend.ts";
import { openDashboard } from "./http/dashboard_page.ts";
import type { Frontend } from "./http/frontend.ts";
import { Port } from "./http/port.ts";
import { type Admitted, RequestGate } from "./http/request_gate.ts";
import { StaticFiles } from "./http/static_files.ts";
import { dataLockLimits, takeoverLimits } from "./limits.ts";
import type { ServerParts } from "./server_parts.ts";
import { Serving, type Statics } from "./serving.ts";
import { GivingWay, PassedRequests, Passing, Predecessor, Succession, TakeoverDoor } from "./takeover/mod.ts";
import type { Workers } from "./workers/workers.ts";

/** What a server holds before its app is loaded. */
interface Held extends Statics {
  readonly lock: DataLock;
}

export class Server implements AsyncDisposable {
  readonly #parts: ServerParts;
  readonly #lock: DataLock;
  readonly #port: Port;
  readonly #serving: Serving;
  readonly #gate: RequestGate;
  /** Set before anything is loaded; `null`: the server is alone. */
  #seat: ClusterSeat | null = null;
  /** The processes that take connections beside this one. */
  #workers: Workers | null = null;
  /** Where others ask it to give way, and how it does. */
  #door: TakeoverDoor | null = null;
  #givingWay: GivingWay | null = null;
  readonly #gaveWay = Promise.withResolvers<void>();
  /** The end of the server that this one took over from. */
  #succession: Succession | null = null;
  /** Set by the first `stop`; later ones wait for it too. */
  #stopped: Promise<void> | null = null;
  readonly #stopping = new AbortController();

  private constructor(parts: ServerParts, { lock, ...statics }: Held) {
    const { native = null, log, config } = parts;
    this.#parts = parts;
    this.#lock = lock;
    this.#port = new Port({ config, native, log, respond: (request, info) => this.#respond(request, info) });
    this.#serving = new Serving({
      parts,
      statics,
      port: this.#port,
      seat: () => this.#seat,
      workerFigures: () => this.#workers?.figures ?? [],
      stopping: this.#stopping.signal,
    });
    this.#gate = new RequestGate(config, log);
  }

  /**
   * Takes the data folder, applies a restore that is staged in it, opens the port and loads the app, in this order. Until the app is loaded every request is
   * answered with 503. Throws a `StartError`, or what `startBackend` threw, and holds nothing then.
   */
  static async start(parts: ServerParts): Promise<Server> {
    const { config } = parts;
    const predecessor = config.takeover ? await Predecessor.find(config.dataDir) : null;
    if (predecessor !== null) return await Server.#takeOver(parts, predecessor);
    const statics = await openStatics(config);
    const lock = await acquire(config);
    let server: Server | undefined;
    try {
      if (lock.restored !== null) logRestore(parts.log, lock.restored);
      await claimData(config.dataDir, { example: config.example, restored: lock.restored !== null });
      server = new Server(parts, { lock, ...statics });
      server.#port.listen();
      await server.#join();
      const served = await server.#serving.load();
      server.#serving.serve(served);
      await server.#startWorkers(served.backend);
      await server.#openDoor();
      server.#serving.renewIfWanted();
      return server;
    } catch (error) {
      if (server === undefined) lock[Symbol.dispose]();
      else await server.stop();
      throw error;
    }
  }

  /**
   * Takes over from the server that has the data folder: everything is started but what needs the database, then the other
   * one lets go of it, and when all of this server stands it opens the port beside the other one's. Throws a `StartError`, or
   * what `startBackend` threw, and the other one goes on.
   */
  static async #takeOver(asked: ServerParts, predecessor: Predecessor): Promise<Server> {
    const { host, port } = predecessor.address;
    const parts = { ...asked, config: { ...asked.config, port: asked.config.port ?? port } };
    const { config, log } = parts;
    let server: Server | undefined;
    let held: Held | undefined;
    let passed: PassedRequests | undefined;
    const passing = new Passing();
    try {
      await refuseTakeover(config);
      const lock = await DataLock.join(config.dataDir);
      held = { lock, ...await openStatics(config) };
      await claimData(config.dataDir, { example: config.example });
      const taking = server = new Server(parts, held);
      const served = await Promise.race([
        taking.#serving.load({
          letGo: () => predecessor.letGo(() => lock.alone(takeoverLimits.inheritMs)),
        }),
        predecessor.lost,
      ]);
      taking.#serving.wait(served, passing);
      const calls = served.backend.passedCalls;
      if (calls === undefined) throw new TypeError("The backend takes no calls of another server");
      passed = await PassedRequests.open(config.dataDir, {
        calls,
        respond: (request, info) => taking.#respondPassedOn(request, info),
      });
      const samePort = config.port === port;
      const shared = samePort && await predecessor.sharePort();
      if (shared || !samePort) taking.#port.listen({ shared });
      // The other one answers new connections until it has given way, and so it does when this one fails.
      if (shared) taking.#port.leaveToFirst();
      await predecessor.serving(passed);
      // From here on nobody else is left to serve: nothing that fails may end this server.
      await lock.own("serve").catch((error) =>
        log("warn", "The lock file does not name this server: it could not be written", { error })
      );
      taking.#serving.serve(served);
      passing.takeBack();
      if (!taking.#port.isOpen) await taking.#port.listenSoon(() => taking.#stopped === null);
      const begin = () => taking.#begin(served.backend);
      taking.#succession = new Succession({ predecessor, passed, begin, log });
      log("info", "Took over from the server that had the data folder", { host, port });
      taking.#serving.renewIfWanted();
      return taking;
    } catch (error) {
      await passed?.[Symbol.asyncDispose]();
      // Those that came here find it ending.
      passing.takeBack();
      // The other one starts a writer when this connection ends: ours has to be gone before.
      if (server === undefined) held?.lock[Symbol.dispose]();
      else await server.stop();
      await predecessor[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Address for a browser on this machine, without a slash at its end. */
  get url(): string {
    return this.#port.url;
  }

  /** Where the first administrator is created; `null` when there is one, or nothing is served. */
  get setupLink(): string | null {
    return this.#serving.backend?.setupLink ?? null;
  }

  /** Resolves when another server has taken over: to stop this one is then for the caller to do. */
  get gaveWay(): Promise<void> {
    return this.#gaveWay.promise;
  }

  /** Resolves when the server can take no connections any more, for good: to stop it is then for the caller to do. */
  get portEnded(): Promise<Error> {
    return this.#port.ended;
  }

  /** Loads the app's code anew (`--dev`). */
  async reload(): Promise<ReloadResult> {
    return await this.#serving.backend?.reload() ?? { ok: false, message: "The server is not serving" };
  }

  /** Makes the next `reload` shorter (`--dev`). */
  standBy(): void {
    this.#serving.backend?.standBy?.();
  }

  /**
   * Refuses new requests, closes the sockets with 1012, lets running calls finish for at most `drainMs`, then
   * ends the isolates and gives the data folder up.
   */
  stop(): Promise<void> {
    this.#stopping.abort();
    return this.#stopped ??= this.#drain();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Makes this server one of a cluster, if it is to be. */
  async #join(): Promise<void> {
    const { config, log } = this.#parts;
    this.#seat = await ClusterSeat.join(config, {
      url: this.url,
      prepare: () => this.#serving.prepareToLead(),
      respond: (request, info) => this.#respondPassedOn(request, info),
      log,
    });
  }

  async #startWorkers({ leading }: Backend): Promise<void> {
    const { config, log } = this.#parts;
    if (config.workers <= 1 || leading === undefined) return;
    if (!this.#port.share()) {
      throw new StartError(
        "--workers is not supported: this system does not allow several processes to share a port",
        { code: "workers" },
      );
    }
    const respond = (request: Request, info: Deno.ServeHandlerInfo) => this.#respondPassedOn(request, info);
    const { Workers } = await import("./workers/workers.ts");
    this.#workers = await Workers.start({ config, port: this.#port.number, parts: leading, respond, log });
  }

  /** From now on another server can take over, where that is possible. */
  async #openDoor(): Promise<void> {
    const { config, native = null, log } = this.#parts;
    const { backend } = this.#serving;
    // Its workers would go on taking connections of the port.
    if (backend?.lend === undefined || this.#workers !== null) return;
    if (this.#seat !== null || isFollower(config)) return;
    const server = this.#givingWay = new GivingWay({
      address: { host: config.host, port: this.#port.number },
      lend: async () => await backend.lend?.() ?? null,
      alone: () => this.#lock.alone(takeoverLimits.lostMs),
      respond: (admitted, info) => this.#respondAdmitted(admitted, info),
      onHeld: (request, info) => this.#port.connections.requested(request, info),
      native,
      log,
    });
    server.done.then(() => this.#gaveWay.resolve());
    this.#door = await TakeoverDoor.open({ dataDir: config.dataDir, server, log });
  }

  /** Behind a takeover, when the other one is gone: what this server does by itself, and the door for the next one. */
  async #begin(backend: Backend): Promise<void> {
    const { log } = this.#parts;
    if (this.#stopped !== null) return;
    try {
      await backend.begin?.();
    } catch (error) {
      log("error", "What the server does by itself did not begin: restart it", { error });
    }
    try {
      if (this.#stopped === null) await this.#openDoor();
    } catch (error) {
      log("error", "This server cannot be taken over: restart it", { error });
    }
  }

  async #drain(): Promise<void> {
    // Before anything else: what a successor was lent is not taken back, for that would start a writer.
    this.#givingWay?.stop();
    this.#door?.close();
    const seat = this.#seat;
    // A server that is alone refuses what waits before anything else has its turn.
    if (seat !== null) {
      await seat.handOver(() => this.#serving.backend).catch((error) =>
        this.#parts.log("warn", "The lease of the cluster could not be handed over", {
          code: "cluster",
          error,
        })
      );
    }
    seat?.cluster.stopping();
    await this.#serving.settled;
    // Other servers are told first: what they have not asked yet is for the next leader.
    const left = seat?.forwarding.leave();
    const { state } = this.#serving;
    const backend = "backend" in state ? state.backend : null;
    const gaveWay = this.#givingWay?.given === true ? this.#givingWay : null;
    const drainMs = this.#parts.drainMs ?? httpLimits.drainMs;
    // What still comes to one that has given way is passed on until the end.
    if (gaveWay === null) this.#serving.drain();
    await this.#succession?.[Symbol.asyncDispose]();
    // They finish while what they ask of this process is still answered.
    const workersEnded = this.#workers?.[Symbol.asyncDispose]();
    try {
      // Sockets first: shutting the listener down would close them with a code that tells clients nothing.
      await backend?.closeSockets();
      await gaveWay?.quiet(drainMs);
      await this.#port.finish(drainMs);
      await left;
      await workersEnded;
      await seat?.forwarding.pause();
      await backend?.[Symbol.asyncDispose]();
    } finally {
      await seat?.[Symbol.asyncDispose]();
      this.#port[Symbol.dispose]();
      this.#lock[Symbol.dispose]();
      this.#givingWay?.[Symbol.dispose]();
      await this.#door?.[Symbol.asyncDispose]();
    }
  }

  #respond(given: Request, info: Deno.ServeHandlerInfo): Response | Promise<Response> {
    return this.#respondAdmitted(this.#gate.admit(given), info);
  }

  /** A request that another process has taken from its client, whose host it has judged. */
  #respondPassedOn(given: Request, info: Deno.ServeHandlerInfo): Response | Promise<Response> {
    return this.#respondAdmitted(this.#gate.admit(given, { passedOn: true }), info);
  }

  #respondAdmitted(admitted: Admitted | Response, info: Deno.ServeHandlerInfo): Response | Promise<Response> {
    const { state } = this.#serving;
    if (admitted instanceof Response) {
      if (state.name === "serving") state.backend.metrics?.requests.count(null, admitted);
      return admitted;
    }
    const { request, path, finish } = admitted;
    if (state.name === "serving") {
      const successors = this.#givingWay?.respond(admitted, info) ?? null;
      if (successors !== null) return successors;
      const { backend, router, requests } = state;
      const respond = () => {
        const elsewhere = backend.passOn?.(request, info);
        if (elsewhere) return elsewhere;
        const here = () => backend.respondAtOnce?.(request, info) ?? router.fetch(request, info);
        const answer = backend.looked?.(path)?.then(here) ?? here();
        if (requests !== null && answer instanceof Promise) requests.begin(answer);
        return answer;
      };
      const answer = finish(respond());
      if (answer instanceof Promise) this.#port.connections.requested(request, info);
      return backend.metrics?.requests.count(path, answer) ?? answer;
    }
    if (state.name === "waiting") return this.#afterSwitch(admitted, { info, passing: state.passing });
    if (path === "/api/health") {
      return Response.json({ status: state.name }, { status: 503, headers: { "Cache-Control": "no-store" } });
    }
    return errorResponse(new ServiceError("unavailable"));
  }

  /** A request that came before this server was given the folder. */
  async #afterSwitch(
    admitted: Admitted,
    { info, passing }: { readonly info: Deno.ServeHandlerInfo; readonly passing: Passing },
  ): Promise<Response> {
    try {
      await passing.hold();
      return await this.#respondAdmitted(admitted, info);
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

/** Throws a `StartError` where the server that runs cannot be taken over by one like this. */
async function refuseTakeover(config: ServeConfig): Promise<void> {
  if (isFollower(config)) {
    throw new StartError("A server that follows a replica cannot take over: stop the one that runs first", {
      code: "replication",
    });
  }
  if (await stagedRestore(config.dataDir) !== null) {
    throw new StartError("A restore is staged, which a takeover cannot apply: restart the server that runs", {
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
      if (cluster !== null) await refuseStagedInCluster(dataDir);
      return lock;
    } catch (error) {
      lock[Symbol.dispose]();
      throw error;
    }
  } catch (error) {
    if (!takeover || !(error instanceof DataLockedError) || !error.byServer) throw error;
    throw new StartError(
      `The server that uses the data folder "${dataDir}" cannot be asked to give way: it is starting or ending, has ` +
        "workers, or is older than this way of taking over. Try again, or stop it first",
      { code: "takeover", cause: error },
    );
  }
}
