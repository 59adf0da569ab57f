/** The backend that a server serves: its first load, its replacement and its end. */
import { setTimeout as delay } from "node:timers/promises";
import type { FollowerFigures } from "../cluster/mod.ts";
import { clusterLimits } from "../cluster/postgres/limits.ts";
import type { PostgresCluster } from "../cluster/postgres/mod.ts";
import { httpLimits } from "../limits.ts";
import type { Backend, BackendOptions } from "./backend.ts";
import type { ClusterMembership } from "./cluster_membership.ts";
import { ClientModules } from "./http/client_modules.ts";
import { type Frontend, StaticFiles } from "./http/static_files.ts";
import type { Port } from "./http/port.ts";
import { InFlightRequests } from "./http/requests.ts";
import { createRouter } from "./http/router.ts";
import type { ServerOptions } from "./server_options.ts";
import type { HeldRequests } from "./takeover/mod.ts";

/** A backend with its router. */
export interface Served {
  readonly router: ReturnType<typeof createRouter>;
  readonly backend: Backend;
  /** Requests in flight in a cluster: they may finish when this server starts to lead. */
  readonly requests: InFlightRequests | null;
}

/**
 * A server is `starting` until the app is loaded, then `serving`, and `draining` once it stops. A server that takes over is
 * `waiting` from the moment it listens until the old process has handed over the data folder.
 */
export type ServerState =
  | { readonly name: "starting" }
  | Served & { readonly name: "waiting"; readonly held: HeldRequests }
  | Served & { readonly name: "serving" }
  | { readonly name: "draining" };

/** Static files that do not depend on the app. */
export interface Statics {
  readonly dashboard: StaticFiles;
  /** Frontend that an option names. */
  readonly frontend: Frontend | null;
}

export interface ServingOptions {
  readonly parts: ServerOptions;
  readonly statics: Statics;
  readonly port: Port;
  /** Known before anything is loaded; `null` outside a cluster. */
  readonly membership: () => ClusterMembership | null;
  readonly workerFigures: () => readonly FollowerFigures[];
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
}

export class Serving {
  readonly #options: ServingOptions;
  #state: ServerState = { name: "starting" };
  /** A deploy may replace it. */
  #frontend: Frontend | null;
  /** Set while the backend is being replaced; never rejects. */
  #replacing: Promise<void> | null = null;
  /** Set while this server prepares to lead, or is prepared. */
  #preparing: Promise<void> | null = null;
  /** Number of backends started. */
  #loads = 0;
  /** Identifies the newest backend. */
  #newest: object = {};
  /** Backends that requested their replacement. Requests of replaced backends are ignored. */
  readonly #replacementRequested = new WeakSet<object>();

  constructor(options: ServingOptions) {
    this.#options = options;
    this.#frontend = options.statics.frontend;
  }

  get state(): ServerState {
    return this.#state;
  }

  /** The backend while requests are answered; otherwise `null`. */
  get backend(): Backend | null {
    return this.#state.name === "serving" ? this.#state.backend : null;
  }

  /** Resolves when no replacement is in progress; never rejects. */
  get settled(): Promise<void> {
    return this.#replacing ?? Promise.resolve();
  }

  serve(served: Served): void {
    this.#state = { name: "serving", ...served };
    this.#options.membership()?.forwarding.serve(served.backend.leaderParts);
  }

  /** Holds requests until it is known which process answers them. */
  hold(served: Served, held: HeldRequests): void {
    this.#state = { name: "waiting", ...served, held };
  }

  /** Refuses requests from now on. */
  drain(): void {
    this.#state = { name: "draining" };
  }

  /** Loads the app. Rejects with the error of `startBackend`. */
  async load({ databaseReleased }: Pick<BackendOptions, "databaseReleased"> = {}): Promise<Served> {
    const { parts: { config, log, startBackend, onRestart }, port, workerFigures, stopping } = this.#options;
    const membership = this.#options.membership();
    const load = this.#newest = {};
    const backend = await startBackend(config, {
      log,
      url: port.url,
      restart: config.restartExitCode === null || onRestart === undefined ? null : onRestart,
      isRestart: this.#loads++ > 0,
      socketsMax: port.connections.socketsMax,
      listening: () => port.acceptsConnections,
      requestReplacement: () => {
        this.#replacementRequested.add(load);
        this.replaceIfRequested();
      },
      stopping,
      serveFrontend: (folder) => this.#serveFrontend(folder),
      workerFigures,
      cluster: membership?.cluster ?? null,
      ...(membership && { leader: membership.forwarding.leader }),
      ...(databaseReleased && { databaseReleased }),
    });
    const requests = membership === null ? null : new InFlightRequests();
    return { backend, router: this.#routerOf(backend), requests };
  }

  /** Replaces the backend if it has requested that. A request from before it was served is handled now. */
  replaceIfRequested(): void {
    const ready = this.#state.name === "serving" && this.#replacing === null;
    if (!this.#replacementRequested.has(this.#newest) || !ready || this.#options.stopping.aborted) return;
    this.#replacing = this.#replace().finally(() => {
      this.#replacing = null;
      this.replaceIfRequested();
    });
  }

  /**
   * Starts a second backend that can lead the cluster. The current one serves until this server has the lease. Resolves when
   * only the lease is missing; rejects if this server will not lead.
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
    const { membership, stopping, parts: { log } } = this.#options;
    const state = this.#state;
    const cluster = membership()?.cluster;
    const busy = this.#replacing !== null || stopping.aborted;
    if (state.name !== "serving" || cluster === undefined || cluster.role !== "follower" || busy) {
      throw new Error("This server cannot lead now");
    }
    const { promise: ready, resolve } = Promise.withResolvers<void>();
    const served = this.#newest;
    let released = false;
    let lost: string | null = null;
    const leading = this.#lead(state, {
      cluster,
      ready: resolve,
      onRelease: () => released = true,
      onLeaseLost: (reason) => lost = reason,
    });
    this.#replacing = leading.catch((error) => {
      if (lost !== null) {
        log("info", "Discarded the backend that was prepared to lead", { reason: lost });
      } else {log("warn", "Preparing to lead the cluster failed", {
          code: "cluster",
          error,
        });}
      // The current backend continues unless it has begun to release the database.
      if (released) this.#replacementRequested.add(this.#newest);
      else this.#newest = served;
    }).finally(() => {
      this.#replacing = this.#preparing = null;
      this.replaceIfRequested();
    });
    await Promise.race([ready, leading]);
  }

  async #lead(
    { backend: old, requests }: Served,
    { cluster, ready, onRelease, onLeaseLost }: {
      readonly cluster: PostgresCluster;
      readonly ready: () => void;
      /** Called before `old` releases anything. */
      readonly onRelease: () => void;
      /** Called with the reason if another server gets the lease. */
      readonly onLeaseLost: (reason: string) => void;
    },
  ): Promise<void> {
    const { stopping, parts: { log } } = this.#options;
    const after = cluster.epochOfLeader;
    const served = await this.load({
      async databaseReleased(fits) {
        const lease = cluster.nextLease(after);
        lease.catch((error) => onLeaseLost(error instanceof Error ? error.message : String(error)));
        log("info", "Prepared to lead the cluster as soon as the leader stops");
        ready();
        const { position, version } = await lease;
        // Otherwise the backend is restarted and leads; the lease is kept.
        fits(version);
        onRelease();
        await old.releaseDatabase?.();
        await cluster.unserve();
        cluster.lead(position);
      },
    });
    // First: a client that got an answer from the old backend must see at least that state in the new one.
    this.serve(served);
    try {
      await old.closeSockets();
      // Wait for requests in flight: they may need resources of the old backend.
      if (await requests?.waitUntilIdle(clusterLimits.answersMs, stopping) === false && !stopping.aborted) {
        log("warn", "Slow requests were cut off because this server now leads the cluster", {
          code: "cluster",
        });
      }
      await old[Symbol.asyncDispose]();
    } catch (error) {
      log("error", "Cannot close the old backend cleanly", { error });
    }
    // A server that stops has handed over its background work already.
    if (!stopping.aborted) await served.backend.startBackgroundWork?.();
  }

  /** Sockets reconnect by themselves; requests are refused in the meantime, as at a start. */
  async #replace(): Promise<void> {
    const { membership, stopping, parts: { log } } = this.#options;
    const backend = this.backend;
    if (backend === null) return;
    this.#newest = {};
    this.#state = { name: "starting" };
    try {
      // First: other servers keep their waiting requests for the next leader.
      await membership()?.forwarding.stopLeading();
      await backend.closeSockets();
      await backend[Symbol.asyncDispose]();
    } catch (error) {
      log("error", "Cannot close the old backend cleanly", { error });
    }
    while (!stopping.aborted) {
      try {
        this.serve(await this.load());
        return;
      } catch (error) {
        if (stopping.aborted) return;
        log("error", "Cannot start the backend; retrying", { error });
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
          backend.acceptSocket(request, { info, upgraded: () => connections.trackUpgrade(remoteAddr) });
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
