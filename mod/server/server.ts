/** One running server: the data folder's lock, the port, the isolates and the hub, from start to stop. */
import { setTimeout as delay } from "node:timers/promises";
import { ServiceError } from "../errors.ts";
import type { Log } from "../kit/log.ts";
import { connectionLimits, dataLockLimits, takeoverLimits } from "./limits.ts";
import { httpLimits } from "../limits.ts";
import type { Backend, BackendSurroundings, ReloadResult } from "./backend.ts";
import { ClientModules } from "./http/client_modules.ts";
import type { PostgresCluster } from "../cluster/postgres/mod.ts";
import { isFollower, type ServeConfig } from "../config/config.ts";
import { StartError } from "../config/start_error.ts";
import { stagedRestore } from "../ops/backups/restore/mod.ts";
import { DataLock, DataLockedError } from "./data/data_lock.ts";
import { claimData } from "./data/data_owner.ts";
import { logRestore, refuseStagedInCluster } from "./data/data_restore.ts";
import { errorResponse, failureResponse } from "../kit/error_response.ts";
import { joinCluster } from "./features/cluster.ts";
import { devFrontend } from "./dev/dev_frontend.ts";
import { openDashboard } from "./http/dashboard_page.ts";
import type { Frontend } from "./http/frontend.ts";
import { listen, type Listener, localUrl } from "./http/listen.ts";
import { withPlainPath } from "./http/plain_path.ts";
import { OriginGuard } from "./http/origin_guard.ts";
import { createRouter } from "./http/router.ts";
import { StaticFiles } from "./http/static_files.ts";
import type { Forwarding } from "./forwarding/forwarding.ts";
import { Connections } from "./net/connections.ts";
import type { NativeSockets } from "./net/native_sockets.ts";
import type { Workers } from "./workers/workers.ts";
import { GivingWay, PassedRequests, Passing, Predecessor, TakeoverDoor } from "./takeover/mod.ts";

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
 * told to stop; it never goes back. One that takes over is `waiting` from the moment its port is open until the other one
 * has given it the data folder.
 */
type State =
  | { readonly name: "starting" }
  | Served & { readonly name: "waiting"; readonly passing: Passing }
  | Served & { readonly name: "serving" }
  | { readonly name: "draining" };

interface Served {
  readonly router: ReturnType<typeof createRouter>;
  readonly backend: Backend;
}

/** What a server holds before its app is loaded. */
interface Held {
  readonly lock: DataLock;
  readonly dashboard: StaticFiles;
  /** The front end that an option names. */
  readonly frontend: Frontend | null;
}

export class Server implements AsyncDisposable {
  readonly #parts: ServerParts;
  readonly #held: Held;
  /** `null` until the port is open. */
  #http: Listener | null = null;
  /** Where it listens, or is about to. */
  #address: Pick<Deno.NetAddr, "hostname" | "port">;
  readonly #connections: Connections;
  /** When the log last said that no connection could be taken. */
  #pauseToldAt = -Infinity;
  /** `null`: pages of any origin may use the API. */
  readonly #origins: OriginGuard | null;
  #state: State = { name: "starting" };
  /** While another backend is put in the place of the present one; never rejects. */
  #renewing: Promise<void> | null = null;
  /** While it makes ready to lead, or is ready. */
  #preparing: Promise<void> | null = null;
  /** Starts of what is behind the port. */
  #loads = 0;
  /** Stands for what is served, or is about to be. */
  #newest: object = {};
  /** Those that have asked for another one in their place; what one that is gone asks for counts for nothing. */
  readonly #askedAnew = new WeakSet<object>();
  /** The cluster that it is one of; `null`: it is alone. Set before anything is loaded. */
  #cluster: PostgresCluster | null = null;
  /** The way between the servers of a cluster. */
  #forwarding: Forwarding | null = null;
  /** Changes with what is deployed. */
  #frontend: Frontend | null;
  /** Set by the first `stop`; later ones wait for it too. */
  #stopped: Promise<void> | null = null;
  readonly #stopping = new AbortController();
  /** Where others ask it to give way, and how it does. */
  #door: TakeoverDoor | null = null;
  #givingWay: GivingWay | null = null;
  readonly #gaveWay = Promise.withResolvers<void>();
  /** The processes that take connections beside this one. */
  #workers: Workers | null = null;
  /** The one that this server took over from, and what is done until that one is gone. */
  #predecessor: Predecessor | null = null;
  #succession: Promise<void> = Promise.resolve();

  private constructor(parts: ServerParts, held: Held) {
    this.#parts = parts;
    this.#held = held;
    this.#frontend = held.frontend;
    const { native = null, log, config: { host, port } } = parts;
    this.#connections = new Connections({ native, log });
    this.#address = { hostname: host, port: port ?? 0 };
    const { allowedOrigins, publicUrl } = parts.config;
    this.#origins = allowedOrigins === null ? null : new OriginGuard({ allowed: allowedOrigins, publicUrl });
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
      server.#listen();
      await server.#join();
      const served = await server.#load();
      server.#serve(served);
      await server.#startWorkers(served.backend);
      await server.#openDoor();
      server.#renewIfWanted();
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
      if (isFollower(config)) {
        throw new StartError(
          "A server that follows a replica cannot take over: stop the one that runs first",
        );
      }
      if (await stagedRestore(config.dataDir) !== null) {
        throw new StartError(
          "A restore is staged, which a takeover cannot apply: restart the server that runs",
        );
      }
      const lock = await DataLock.join(config.dataDir);
      held = { lock, ...await openStatics(config) };
      await claimData(config.dataDir, { example: config.example });
      server = new Server(parts, held);
      const served = await Promise.race([
        server.#load({
          letGo: () => predecessor.letGo(() => lock.alone(takeoverLimits.inheritMs)),
        }),
        predecessor.lost,
      ]);
      server.#state = { name: "waiting", ...served, passing };
      const calls = served.backend.passedCalls;
      if (calls === undefined) throw new TypeError("The backend takes no calls of another server");
      const taking = server;
      passed = await PassedRequests.open(config.dataDir, {
        calls,
        respond: (request, info) => taking.#respond(request, info),
      });
      const samePort = config.port === port;
      const shared = samePort && await predecessor.sharePort();
      if (shared || !samePort) server.#listen({ shared });
      if (shared) server.#leaveToFirst();
      await predecessor.serving(passed);
      // From here on nobody else is left to serve: nothing that fails may end this server.
      await lock.own("serve").catch((error) =>
        log("warn", "The lock file does not name this server: it could not be written", { error })
      );
      server.#state = { name: "serving", ...served };
      passing.takeBack();
      if (server.#http === null) await server.#listenSoon();
      server.#predecessor = predecessor;
      server.#succession = server.#succeed(predecessor, { backend: served.backend, passed });
      log("info", "Took over from the server that had the data folder", { host, port });
      server.#renewIfWanted();
      return server;
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
    return localUrl(this.#address);
  }

  /** Where the first administrator is created; `null` when there is one, or nothing is served. */
  get setupLink(): string | null {
    return this.#state.name === "serving" ? this.#state.backend.setupLink : null;
  }

  /** Resolves when another server has taken over: to stop this one is then for the caller to do. */
  get gaveWay(): Promise<void> {
    return this.#gaveWay.promise;
  }

  /** Loads the app's code anew (`--dev`). */
  async reload(): Promise<ReloadResult> {
    if (this.#state.name !== "serving") return { ok: false, message: "The server is not serving" };
    return await this.#state.backend.reload();
  }

  /** Makes the next `reload` shorter (`--dev`). */
  standBy(): void {
    if (this.#state.name === "serving") this.#state.backend.standBy?.();
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

  #listen({ shared = false }: { readonly shared?: boolean } = {}): void {
    const { config: { host, port, workers } } = this.#parts;
    const onPause = (error: unknown) => this.#relieve(error);
    this.#http = listen(
      { host, port, shared, sharedLater: shared || workers > 1, onPause },
      (request, info) => this.#respond(request, info),
    );
    this.#address = this.#http.addr;
    this.#connections.watch(this.#http.addr.port);
  }

  /** For a port that cannot be shared: it is free when the server that gave way has closed it, or is dead. */
  async #listenSoon(): Promise<void> {
    for (let toldAt = performance.now(); this.#stopped === null;) {
      try {
        return this.#listen();
      } catch (error) {
        if (performance.now() - toldAt >= takeoverLimits.portWaitMs) {
          toldAt = performance.now();
          this.#parts.log(
            "error",
            "The port of the server that gave way is not free yet: it is tried again",
            {
              error,
            },
          );
        }
        await delay(takeoverLimits.quietPollMs);
      }
    }
  }

  /** The other server answers new connections until it has given way, and so it does when this one fails. */
  #leaveToFirst(): void {
    const { native } = this.#parts;
    const fd = native?.listening(this.#address.port) ?? null;
    if (fd !== null) native?.steer(fd, "first");
  }

  /** Makes this server one of a cluster, if it is to be. */
  async #join(): Promise<void> {
    const { config, log } = this.#parts;
    const cluster = this.#cluster = await joinCluster(config, { address: this.url, log });
    if (cluster === null || config.cluster === null) return;
    const { Forwarding } = await import("./forwarding/forwarding.ts");
    this.#forwarding = await Forwarding.open({
      cluster,
      config: config.cluster,
      dataDir: config.dataDir,
      prepare: () => this.#prepareToLead(),
      respond: (request, info) => this.#respond(request, info),
      log,
    });
  }

  /**
   * Makes ready to lead the cluster beside what is served: that goes on until this server has the lease. Resolves when only
   * that is missing; rejects when it will not be.
   */
  #prepareToLead(): Promise<void> {
    if (this.#preparing !== null) return this.#preparing;
    const preparing = this.#preparing = this.#prepare();
    preparing.catch(() => {
      if (this.#preparing === preparing) this.#preparing = null;
    });
    return preparing;
  }

  async #prepare(): Promise<void> {
    const state = this.#state;
    const cluster = this.#cluster;
    const busy = this.#renewing !== null || this.#stopping.signal.aborted;
    if (state.name !== "serving" || cluster === null || cluster.role !== "follower" || busy) {
      throw new Error("This server cannot lead now");
    }
    const { promise: ready, resolve } = Promise.withResolvers<void>();
    const served = this.#newest;
    let letGo = false;
    let notLeft: string | null = null;
    const leading = this.#lead(state.backend, {
      cluster,
      ready: resolve,
      lettingGo: () => letGo = true,
      notLeft: (reason) => notLeft = reason,
    });
    const { log } = this.#parts;
    this.#renewing = leading.catch((error) => {
      if (notLeft !== null) {
        log("info", "What was made ready to lead the cluster is let go", { reason: notLeft });
      } else log("warn", "This server made ready to lead its cluster, and does not", { error });
      // What it serves goes on, unless that has begun to let go of the database.
      if (letGo) this.#askedAnew.add(this.#newest);
      else this.#newest = served;
    }).finally(() => {
      this.#renewing = this.#preparing = null;
      this.#renewIfWanted();
    });
    await Promise.race([ready, leading]);
  }

  async #lead(
    old: Backend,
    { cluster, ready, lettingGo, notLeft }: {
      readonly cluster: PostgresCluster;
      readonly ready: () => void;
      /** Called before `old` gives anything up. */
      readonly lettingGo: () => void;
      /** Called with the reason when the lease is not for this server. */
      readonly notLeft: (reason: string) => void;
    },
  ): Promise<void> {
    const { log } = this.#parts;
    const after = cluster.epochOfLeader;
    const served = await this.#load({
      async letGo(fits) {
        const lease = cluster.nextLease(after);
        lease.catch((error) => notLeft(error instanceof Error ? error.message : String(error)));
        log("info", "This server is ready to lead its cluster, as soon as the leader does not");
        ready();
        await lease;
        // Otherwise what is served is started anew, and leads: the lease is kept.
        await fits();
        lettingGo();
        await old.letGo?.();
        await cluster.unserve();
        if (await cluster.begin({ fetches: false }) !== "leader") {
          throw new Error("The lease is another server's");
        }
      },
    });
    this.#serve(served);
    try {
      await old.closeSockets();
      await old[Symbol.asyncDispose]();
    } catch (error) {
      log("error", "What was served could not be ended as it should", { error });
    }
    await served.backend.begin?.();
  }

  /** Leaves the lease to a server that is ready for it; without one it is given up when nothing is served. */
  async #handOver(): Promise<void> {
    const forwarding = this.#forwarding;
    const cluster = this.#cluster;
    if (forwarding === null || cluster === null || !await forwarding.prepareNext()) return;
    if (this.#state.name !== "serving") return;
    const { backend } = this.#state;
    // The other one does it as soon as it leads; what runs here is noted here.
    await backend.rest?.();
    void forwarding.leave();
    const retired = await backend.retire?.(forwarding.retire());
    if (retired === true) await cluster.handOver();
  }

  #serve(served: Served): void {
    this.#state = { name: "serving", ...served };
    this.#forwarding?.serve(served.backend.leading);
  }

  async #load({ letGo }: Pick<BackendSurroundings, "letGo"> = {}): Promise<Served> {
    const { config, log, startBackend, onRestart } = this.#parts;
    const restart = config.restartExitCode === null || onRestart === undefined ? null : onRestart;
    const connections = this.#connections;
    const { socketsMax } = connections;
    const again = this.#loads++ > 0;
    const load = this.#newest = {};
    const renew = () => {
      this.#askedAnew.add(load);
      this.#renewIfWanted();
    };
    const serveFrontend = async (folder: string | null) => {
      if (config.devFrontendUrl !== null || (config.staticDir !== null && !config.example)) return;
      this.#frontend = folder === null ? null : await StaticFiles.open(folder, { clientRoutes: true });
    };
    const { signal: stopping } = this.#stopping;
    const workerFigures = () => this.#workers?.figures ?? [];
    const given = { log, url: this.url, restart, again, socketsMax, renew, stopping, serveFrontend };
    const toLeader = this.#forwarding?.way;
    const surroundings = {
      ...given,
      workerFigures,
      cluster: this.#cluster,
      ...(toLeader && { toLeader }),
    };
    const backend = await startBackend(config, { ...surroundings, ...(letGo && { letGo }) });
    const router = createRouter({
      routes: backend.routes,
      ...(backend.completeRoutes !== undefined && { completeRoutes: backend.completeRoutes }),
      acceptSocket(request, info) {
        const { remoteAddr } = info;
        const accept = () =>
          backend.acceptSocket(request, { info, upgraded: () => connections.upgraded(remoteAddr) });
        return backend.caughtUp === undefined ? accept() : backend.caughtUp().then(accept);
      },
      ts: () => backend.ts,
      appRoutes: backend.appRoutes,
      clientModules: new ClientModules(),
      dashboard: this.#held.dashboard,
      frontend: () => this.#frontend,
      ...(backend.metrics && { metrics: backend.metrics.respond }),
      log,
    });
    return { router, backend };
  }

  /** What asks before it is served, as for a gap in what it follows, is renewed as soon as it is. */
  #renewIfWanted(): void {
    const ready = this.#state.name === "serving" && this.#renewing === null;
    if (!this.#askedAnew.has(this.#newest) || !ready || this.#stopping.signal.aborted) return;
    this.#renewing = this.#renew().finally(() => {
      this.#renewing = null;
      this.#renewIfWanted();
    });
  }

  /** Sockets come back by themselves; requests are refused meanwhile, as at a start. */
  async #renew(): Promise<void> {
    if (this.#state.name !== "serving") return;
    const { backend } = this.#state;
    this.#newest = {};
    this.#state = { name: "starting" };
    try {
      // First: what others wait for is for the next leader to answer.
      await this.#forwarding?.pause();
      await backend.closeSockets();
      await backend[Symbol.asyncDispose]();
    } catch (error) {
      this.#parts.log("error", "What was served could not be ended as it should", { error });
    }
    while (!this.#stopping.signal.aborted) {
      try {
        this.#serve(await this.#load());
        return;
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        this.#parts.log("error", "What is to be served now cannot be started; it is tried again", { error });
        await delay(httpLimits.drainMs, undefined, { signal: this.#stopping.signal }).catch(() => {});
      }
    }
  }

  async #drain(): Promise<void> {
    // Before anything else: what a successor was lent is not taken back, for that would start a writer.
    this.#givingWay?.stop();
    this.#door?.close();
    // A server that is alone refuses what waits before anything else has its turn.
    if (this.#cluster !== null) {
      await this.#handOver().catch((error) =>
        this.#parts.log("warn", "The lease of the cluster could not be handed over", { error })
      );
    }
    this.#cluster?.stopping();
    await this.#renewing;
    // Other servers are told first: what they have not asked yet is for the next leader.
    const left = this.#forwarding?.leave();
    const state = this.#state;
    const backend = "backend" in state ? state.backend : null;
    const gaveWay = this.#givingWay?.given === true ? this.#givingWay : null;
    // What still comes to one that has given way is passed on until the end.
    if (gaveWay === null) this.#state = { name: "draining" };
    await this.#predecessor?.[Symbol.asyncDispose]();
    await this.#succession;
    // They finish while what they ask of this process is still answered.
    const workersEnded = this.#workers?.[Symbol.asyncDispose]();
    try {
      // Sockets first: shutting the listener down would close them with a code that tells clients nothing.
      await backend?.closeSockets();
      await gaveWay?.quiet(this.#parts.drainMs ?? httpLimits.drainMs);
      await this.#finishRequests();
      await left;
      await workersEnded;
      await this.#forwarding?.pause();
      await backend?.[Symbol.asyncDispose]();
    } finally {
      await this.#cluster?.[Symbol.asyncDispose]();
      await this.#forwarding?.[Symbol.asyncDispose]();
      this.#connections[Symbol.dispose]();
      this.#held.lock[Symbol.dispose]();
      this.#givingWay?.[Symbol.dispose]();
      await this.#door?.[Symbol.asyncDispose]();
    }
  }

  /** A request that came before this server was given the folder. */
  async #afterSwitch(
    request: Request,
    { info, passing }: { readonly info: Deno.ServeHandlerInfo; readonly passing: Passing },
  ): Promise<Response> {
    try {
      await passing.hold();
      return await this.#respond(request, info);
    } catch (error) {
      return failureResponse(error, this.#parts.log);
    }
  }

  async #startWorkers({ leading }: Backend): Promise<void> {
    const { config, native = null, log } = this.#parts;
    if (config.workers <= 1 || leading === undefined) return;
    const { port } = this.#address;
    const fd = native?.listening(port) ?? null;
    if (fd === null || native === null || !native.share(fd)) {
      throw new StartError("This system does not let several processes share a port: leave out --workers");
    }
    const respond = (request: Request, info: Deno.ServeHandlerInfo) => this.#respond(request, info);
    const { Workers } = await import("./workers/workers.ts");
    this.#workers = await Workers.start({ config, port, parts: leading, respond, log });
  }

  async #openDoor(): Promise<void> {
    const { config: { dataDir, host }, native = null, log } = this.#parts;
    const state = this.#state;
    // Its workers would go on taking connections of the port.
    if (state.name !== "serving" || state.backend.lend === undefined || this.#workers !== null) return;
    if (this.#cluster !== null || isFollower(this.#parts.config)) return;
    const { backend } = state;
    const server = this.#givingWay = new GivingWay({
      address: { host, port: this.#address.port },
      lend: async () => await backend.lend?.() ?? null,
      alone: () => this.#held.lock.alone(takeoverLimits.lostMs),
      respond: (request, info) => this.#respond(request, info),
      onHeld: (request, info) => this.#connections.requested(request, info),
      native,
      log,
    });
    server.done.then(() => this.#gaveWay.resolve());
    this.#door = await TakeoverDoor.open({ dataDir, server, log });
  }

  /** When the other one is gone, what this server does by itself begins, and it can be taken over in turn. */
  async #succeed(
    predecessor: Predecessor,
    { backend, passed }: { readonly backend: Backend; readonly passed: PassedRequests },
  ): Promise<void> {
    const ended = predecessor.ended.then(async () => {
      await predecessor[Symbol.asyncDispose]();
      await passed[Symbol.asyncDispose]();
    });
    await this.#endOf(predecessor);
    if (this.#stopped === null) await this.#begin(backend);
    await ended;
  }

  async #begin(backend: Backend): Promise<void> {
    const { log } = this.#parts;
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

  /** One that hangs must not keep crons from running for ever. */
  async #endOf(predecessor: Predecessor): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), takeoverLimits.endMs);
    });
    if (await Promise.race([predecessor.ended, late]) === "late") {
      this.#parts.log("error", "The server that gave way has not ended: end its process", {
        process: predecessor.pid,
      });
    }
    clearTimeout(timer);
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
    const finished = this.#http?.shutdown();
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
      const elsewhere = this.#givingWay?.respond(given, info) ?? null;
      if (elsewhere !== null) return elsewhere;
      const { backend, router } = state;
      const origins = this.#origins;
      const respond = () =>
        backend.passOn?.(request, info) ?? backend.respondAtOnce?.(request, info) ??
          router.fetch(request, info);
      const answer = origins === null
        ? respond()
        : origins.refuse(request) ?? origins.narrow(request, respond());
      if (answer instanceof Promise) this.#connections.requested(request, info);
      return backend.metrics?.requests.count(request, answer) ?? answer;
    }
    if (state.name === "waiting") return this.#afterSwitch(given, { info, passing: state.passing });
    if (new URL(request.url).pathname === "/api/health") {
      return Response.json({ status: state.name }, { status: 503, headers: { "Cache-Control": "no-store" } });
    }
    return errorResponse(new ServiceError("unavailable"));
  }
}

async function openStatics(config: ServeConfig): Promise<Pick<Held, "dashboard" | "frontend">> {
  const dashboard = await openDashboard();
  const frontend = await openFrontend(config);
  return { dashboard, frontend };
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
      { cause: error },
    );
  }
}

async function openFrontend({ staticDir, devFrontendUrl }: ServeConfig): Promise<Frontend | null> {
  if (devFrontendUrl !== null) return devFrontend(devFrontendUrl);
  return staticDir === null ? null : await StaticFiles.open(staticDir, { clientRoutes: true });
}
