/** What a server serves, from its first load to its end, and how something else comes in its place. */
import { setTimeout as delay } from "node:timers/promises";
import type { FollowerFigures } from "../cluster/mod.ts";
import { clusterLimits } from "../cluster/postgres/limits.ts";
import type { PostgresCluster } from "../cluster/postgres/mod.ts";
import { httpLimits } from "../limits.ts";
import type { Backend, BackendSurroundings } from "./backend.ts";
import type { ClusterSeat } from "./cluster_seat.ts";
import { ClientModules } from "./http/client_modules.ts";
import type { Frontend } from "./http/frontend.ts";
import type { Port } from "./http/port.ts";
import { RequestsUnderWay } from "./http/requests_under_way.ts";
import { createRouter } from "./http/router.ts";
import { StaticFiles } from "./http/static_files.ts";
import type { ServerParts } from "./server_parts.ts";
import type { Passing } from "./takeover/mod.ts";

/** What answers requests. */
export interface Served {
  readonly router: ReturnType<typeof createRouter>;
  readonly backend: Backend;
  /** Those that it answers by itself now, in a cluster: a server that comes to lead does not cut them off. */
  readonly requests: RequestsUnderWay | null;
}

/**
 * A server is `starting` from the moment its port is open, `serving` once the app is loaded and `draining` when it was
 * told to stop; it never goes back. One that takes over is `waiting` from the moment its port is open until the other one
 * has given it the data folder.
 */
export type ServerState =
  | { readonly name: "starting" }
  | Served & { readonly name: "waiting"; readonly passing: Passing }
  | Served & { readonly name: "serving" }
  | { readonly name: "draining" };

/** Pages that are there without the app. */
export interface Statics {
  readonly dashboard: StaticFiles;
  /** The front end that an option names. */
  readonly frontend: Frontend | null;
}

export interface ServingOptions {
  readonly parts: ServerParts;
  readonly statics: Statics;
  readonly port: Port;
  /** The place in a cluster, known before anything is loaded; `null`: the server is alone. */
  readonly seat: () => ClusterSeat | null;
  readonly workerFigures: () => readonly FollowerFigures[];
  /** Aborted when the server is to stop. */
  readonly stopping: AbortSignal;
}

export class Serving {
  readonly #options: ServingOptions;
  #state: ServerState = { name: "starting" };
  /** Changes with what is deployed. */
  #frontend: Frontend | null;
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

  constructor(options: ServingOptions) {
    this.#options = options;
    this.#frontend = options.statics.frontend;
  }

  get state(): ServerState {
    return this.#state;
  }

  /** What is behind the port while requests are answered; `null` before and after. */
  get backend(): Backend | null {
    return this.#state.name === "serving" ? this.#state.backend : null;
  }

  /** Settles when nothing is being put in the place of what is served; never rejects. */
  get settled(): Promise<void> {
    return this.#renewing ?? Promise.resolve();
  }

  /** From now on this answers requests. */
  serve(served: Served): void {
    this.#state = { name: "serving", ...served };
    this.#options.seat()?.forwarding.serve(served.backend.leading);
  }

  /** Requests wait until it is known whether this server answers them. */
  wait(served: Served, passing: Passing): void {
    this.#state = { name: "waiting", ...served, passing };
  }

  /** Requests are refused, for good. */
  drain(): void {
    this.#state = { name: "draining" };
  }

  /** Loads the app. Rejects with what `startBackend` rejects with. */
  async load({ letGo }: Pick<BackendSurroundings, "letGo"> = {}): Promise<Served> {
    const { parts: { config, log, startBackend, onRestart }, port, workerFigures, stopping } = this.#options;
    const seat = this.#options.seat();
    const load = this.#newest = {};
    const backend = await startBackend(config, {
      log,
      url: port.url,
      restart: config.restartExitCode === null || onRestart === undefined ? null : onRestart,
      again: this.#loads++ > 0,
      socketsMax: port.connections.socketsMax,
      listening: () => port.takesConnections,
      renew: () => {
        this.#askedAnew.add(load);
        this.renewIfWanted();
      },
      stopping,
      serveFrontend: (folder) => this.#serveFrontend(folder),
      workerFigures,
      cluster: seat?.cluster ?? null,
      ...(seat && { toLeader: seat.forwarding.way }),
      ...(letGo && { letGo }),
    });
    const requests = seat === null ? null : new RequestsUnderWay();
    return { backend, router: this.#routerOf(backend), requests };
  }

  /** What asks for another one before it is served, as for a gap in what it follows, is renewed as soon as it is. */
  renewIfWanted(): void {
    const ready = this.#state.name === "serving" && this.#renewing === null;
    if (!this.#askedAnew.has(this.#newest) || !ready || this.#options.stopping.aborted) return;
    this.#renewing = this.#renew().finally(() => {
      this.#renewing = null;
      this.renewIfWanted();
    });
  }

  /**
   * Makes ready to lead the cluster beside what is served: that goes on until this server has the lease. Resolves when only
   * that is missing; rejects when it will not be.
   */
  prepareToLead(): Promise<void> {
    if (this.#preparing !== null) return this.#preparing;
    const preparing = this.#preparing = this.#prepare();
    preparing.catch(() => {
      if (this.#preparing === preparing) this.#preparing = null;
    });
    return preparing;
  }

  async #prepare(): Promise<void> {
    const { seat, stopping, parts: { log } } = this.#options;
    const state = this.#state;
    const cluster = seat()?.cluster;
    const busy = this.#renewing !== null || stopping.aborted;
    if (state.name !== "serving" || cluster === undefined || cluster.role !== "follower" || busy) {
      throw new Error("This server cannot lead now");
    }
    // What is not applied yet when the lease is free would hold it up.
    cluster.look();
    const { promise: ready, resolve } = Promise.withResolvers<void>();
    const served = this.#newest;
    let letGo = false;
    let notLeft: string | null = null;
    const leading = this.#lead(state, {
      cluster,
      ready: resolve,
      lettingGo: () => letGo = true,
      notLeft: (reason) => notLeft = reason,
    });
    this.#renewing = leading.catch((error) => {
      if (notLeft !== null) {
        log("info", "What was made ready to lead the cluster is let go", { reason: notLeft });
      } else {log("warn", "This server made ready to lead its cluster, and does not", {
          code: "cluster",
          error,
        });}
      // What it serves goes on, unless that has begun to let go of the database.
      if (letGo) this.#askedAnew.add(this.#newest);
      else this.#newest = served;
    }).finally(() => {
      this.#renewing = this.#preparing = null;
      this.renewIfWanted();
    });
    await Promise.race([ready, leading]);
  }

  async #lead(
    { backend: old, requests }: Served,
    { cluster, ready, lettingGo, notLeft }: {
      readonly cluster: PostgresCluster;
      readonly ready: () => void;
      /** Called before `old` gives anything up. */
      readonly lettingGo: () => void;
      /** Called with the reason when the lease is not for this server. */
      readonly notLeft: (reason: string) => void;
    },
  ): Promise<void> {
    const { stopping, parts: { log } } = this.#options;
    const after = cluster.epochOfLeader;
    const served = await this.load({
      async letGo(fits) {
        const lease = cluster.nextLease(after);
        lease.catch((error) => notLeft(error instanceof Error ? error.message : String(error)));
        log("info", "This server is ready to lead its cluster, as soon as the leader does not");
        ready();
        const { position, version } = await lease;
        // Otherwise what is served is started anew, and leads: the lease is kept.
        fits(version);
        lettingGo();
        await old.letGo?.();
        await cluster.unserve();
        cluster.lead(position);
      },
    });
    // First: whoever is given an answer by the old one is shown as much by this one.
    this.serve(served);
    try {
      await old.closeSockets();
      // What begins is to be waited for: it may need what the old one still has.
      if (await requests?.none(clusterLimits.answersMs, stopping) === false && !stopping.aborted) {
        log("warn", "Requests that took long were cut off: this server leads its cluster now", {
          code: "cluster",
        });
      }
      await old[Symbol.asyncDispose]();
    } catch (error) {
      log("error", "What was served could not be ended as it should", { error });
    }
    // A server that stops has handed over what it does by itself.
    if (!stopping.aborted) await served.backend.begin?.();
  }

  /** Sockets come back by themselves; requests are refused meanwhile, as at a start. */
  async #renew(): Promise<void> {
    const { seat, stopping, parts: { log } } = this.#options;
    const backend = this.backend;
    if (backend === null) return;
    this.#newest = {};
    this.#state = { name: "starting" };
    try {
      // First: what others wait for is for the next leader to answer.
      await seat()?.forwarding.pause();
      await backend.closeSockets();
      await backend[Symbol.asyncDispose]();
    } catch (error) {
      log("error", "What was served could not be ended as it should", { error });
    }
    while (!stopping.aborted) {
      try {
        this.serve(await this.load());
        return;
      } catch (error) {
        if (stopping.aborted) return;
        log("error", "What is to be served now cannot be started; it is tried again", { error });
        await delay(httpLimits.drainMs, undefined, { signal: stopping }).catch(() => {});
      }
    }
  }

  async #serveFrontend(folder: string | null): Promise<void> {
    const { config } = this.#options.parts;
    if (config.devFrontendUrl !== null || (config.staticDir !== null && !config.example)) return;
    this.#frontend = folder === null ? null : await StaticFiles.open(folder, { clientRoutes: true });
  }

  #routerOf(backend: Backend): Served["router"] {
    const { port: { connections }, statics, parts: { log } } = this.#options;
    return createRouter({
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
      dashboard: statics.dashboard,
      frontend: () => this.#frontend,
      ...(backend.metrics && { metrics: backend.metrics.respond }),
      log,
    });
  }
}
