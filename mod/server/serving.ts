/**
 * The role of a server and the backend it serves in that role. This file alone changes roles (role.ts): it ends a backend and
 * starts the next one, while the port stays open.
 */
import type { FollowerFigures } from "../cluster/mod.ts";
import type { ServeConfig } from "../config/config.ts";
import { ServiceError } from "../errors.ts";
import { type Clock, pause } from "../kit/clock.ts";
import { httpLimits } from "../limits.ts";
import type { Backend, BackendOptions } from "./backend.ts";
import type { ClusterMembership } from "./cluster_membership.ts";
import { ClientModules } from "./http/client_modules.ts";
import type { Port } from "./http/port.ts";
import { createRouter } from "./http/router.ts";
import { type Frontend, StaticFiles } from "./http/static_files.ts";
import { gateLimits } from "./limits.ts";
import type { Authority, Role, ServingRole } from "./role.ts";
import type { ServerOptions } from "./server_options.ts";

/** Requests that wait while no backend serves: during a takeover or a change of role. */
class RequestHold {
  readonly #clock: Pick<Clock, "after">;
  #next = Promise.withResolvers<void>();
  #waiting = 0;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Waits for `release`, for a limited time. Rejects with `unavailable` after it, and if too many requests wait already. */
  async wait(): Promise<void> {
    if (this.#waiting >= gateLimits.requestsWaitingMax) throw new ServiceError("unavailable");
    this.#waiting++;
    const next = this.#next;
    const late = Promise.withResolvers<never>();
    const timer = this.#clock.after(
      gateLimits.waitMs,
      () => late.reject(new ServiceError("unavailable")),
    );
    try {
      await Promise.race([next.promise, late.promise]);
    } finally {
      timer.cancel();
      this.#waiting--;
    }
  }

  /** Continues all requests that wait. */
  release(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }
}

/** A backend with its router. */
export interface Served {
  readonly role: ServingRole;
  readonly backend: Backend;
  readonly router: ReturnType<typeof createRouter>;
}

/** Static files that do not depend on the app. */
export interface Statics {
  readonly dashboard: StaticFiles;
  /** Frontend that an option names. */
  readonly frontend: Frontend | null;
}

export interface ServingOptions {
  readonly parts: Pick<ServerOptions, "log" | "onRestart"> & {
    readonly config: Pick<
      ServeConfig,
      "restartExitCode" | "devFrontendUrl" | "staticDir" | "example" | "empty"
    >;
    readonly startBackend: (role: ServingRole, surroundings: BackendOptions) => Promise<Backend>;
  };
  readonly statics: Statics;
  readonly port: Pick<Port, "url" | "connections" | "acceptsConnections" | "fail">;
  readonly clock: Clock;
  readonly workerFigures: () => readonly Partial<FollowerFigures>[];
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
}

/** Arguments of {@linkcode Serving.start}. */
export interface RoleParts {
  readonly authority: Authority;
  /** `null` outside a cluster. */
  readonly membership: Pick<ClusterMembership, "cluster" | "forwarding"> | null;
  /** See `BackendOptions.databaseFree`. Requests wait until the backend has started. */
  readonly databaseFree?: BackendOptions["databaseFree"];
}

export class Serving {
  readonly #options: ServingOptions;
  readonly #hold: RequestHold;
  #role: Role = "starting";
  #served: Served | null = null;
  /** Set by `start`. */
  #parts: RoleParts | null = null;
  /** Whether requests wait for the next backend instead of being refused. */
  #holds = false;
  /** A deploy may replace it. */
  #frontend: Frontend | null;
  /** Set while the role changes; never rejects. */
  #change: Promise<void> | null = null;
  /** Number of backends started. */
  #loads = 0;
  /** Identifies the newest backend. */
  #newest: object = {};
  /** Backends that requested a change. Requests of former backends are ignored. */
  readonly #requested = new WeakSet<object>();

  constructor(options: ServingOptions) {
    this.#options = options;
    this.#frontend = options.statics.frontend;
    this.#hold = new RequestHold(options.clock);
  }

  get role(): Role {
    return this.#role;
  }

  /** The backend while requests are answered; otherwise `null`. */
  get backend(): Backend | null {
    return this.#served?.backend ?? null;
  }

  /** The backend for requests; `null` while the role changes or requests are refused. */
  get served(): Served | null {
    return this.#served;
  }

  /** Waits for the next backend. Rejects with `unavailable` if requests are refused, or after `gateLimits.waitMs`. */
  async nextServed(): Promise<Served> {
    if (this.#holds && this.#role !== "draining") await this.#hold.wait();
    if (this.#served === null) throw new ServiceError("unavailable");
    return this.#served;
  }

  /** Resolves when no change is in progress; never rejects. */
  get settled(): Promise<void> {
    return this.#change ?? Promise.resolve();
  }

  /** Starts the first backend, or the next one after {@linkcode drain}. Rejects with the error of `startBackend`. */
  async start({ databaseFree, ...parts }: RoleParts): Promise<Backend> {
    this.#parts = parts;
    this.#role = "starting";
    this.#holds ||= databaseFree !== undefined;
    const starting = this.#load({ ...parts, ...(databaseFree && { databaseFree }) })
      .then((served) => this.#serve(served));
    this.#change = starting.then(() => {}, () => {}).finally(() => this.#change = null);
    return (await starting).backend;
  }

  /** Refuses requests from now on. The caller ends the backend. */
  drain(): void {
    this.#role = "draining";
    this.#served = null;
    this.#newest = {};
    this.#hold.release();
  }

  /** Changes the role if the backend has requested that. A request from before it was served is handled now. */
  changeIfRequested(): void {
    const { stopping } = this.#options;
    if (!this.#requested.has(this.#newest) || this.#served === null || this.#change !== null) return;
    if (stopping.aborted) return;
    this.#change = this.#changeRole(this.#served).finally(() => {
      this.#change = null;
      this.changeIfRequested();
    });
  }

  async #load({ authority, membership, databaseFree }: RoleParts): Promise<Served> {
    const { parts: { config, log, startBackend, onRestart }, port, workerFigures, stopping } = this.#options;
    const role = await authority.decide();
    const load = this.#newest = {};
    const backend = await startBackend(role, {
      log,
      url: port.url,
      restart: config.restartExitCode === null || onRestart === undefined ? null : onRestart,
      isRestart: this.#loads++ > 0,
      socketsMax: port.connections.socketsMax,
      listening: () => port.acceptsConnections,
      requestReplacement: () => {
        this.#requested.add(load);
        this.changeIfRequested();
      },
      stopping,
      serveFrontend: (folder) => this.#serveFrontend(folder),
      workerFigures,
      cluster: membership?.cluster ?? null,
      ...(membership && { leader: membership.forwarding.leader }),
      ...(databaseFree && { databaseFree }),
    });
    return { role, backend, router: this.#routerOf(backend) };
  }

  #serve(served: Served): Served {
    this.#served = served;
    this.#role = served.role;
    this.#holds = true;
    this.#parts?.membership?.forwarding.serve(served.backend.leaderParts);
    this.#hold.release();
    return served;
  }

  /** Sockets reconnect by themselves, and requests wait. */
  async #changeRole({ backend }: Served): Promise<void> {
    const { stopping, clock, port, parts: { log } } = this.#options;
    const parts = this.#parts;
    if (parts === null) return;
    this.#newest = {};
    this.#served = null;
    this.#role = "starting";
    try {
      // First: other servers keep their waiting requests for the next leader.
      await parts.membership?.forwarding.stopLeading();
      await backend.closeSockets();
    } catch (error) {
      log("error", "Cannot close the sockets of the old backend cleanly", { error });
    }
    try {
      await backend[Symbol.asyncDispose]();
    } catch (error) {
      // Its isolates may still use the database, and there must be one writer. They end with this process.
      log("error", "Cannot end the old backend; the server ends", { error });
      return port.fail(error);
    }
    while (!stopping.aborted) {
      try {
        this.#serve(await this.#load(parts));
        return;
      } catch (error) {
        if (stopping.aborted) return;
        log("error", "Cannot start the backend; retrying", { error });
        await pause(clock, httpLimits.drainMs, stopping);
      }
    }
  }

  async #serveFrontend(folder: string | null): Promise<void> {
    const { config } = this.#options.parts;
    const isNamed = config.staticDir !== null && !config.example && !config.empty;
    if (config.devFrontendUrl !== null || isNamed) return;
    this.#frontend = folder === null ? null : await StaticFiles.open(folder, { clientRoutes: true });
  }

  #routerOf(backend: Backend): Served["router"] {
    const { port: { connections }, statics, parts: { log } } = this.#options;
    const { routes, completeRoutes, appRoutes, metrics } = backend.http;
    return createRouter({
      routes,
      ...(completeRoutes && { completeRoutes }),
      acceptSocket(request, info) {
        // It cannot be read after the upgrade.
        const { remoteAddr } = info;
        const upgraded = () => connections.trackUpgrade(remoteAddr);
        return backend.acceptSocket(request, { info, upgraded });
      },
      ts: () => backend.ts,
      appRoutes,
      clientModules: new ClientModules(),
      dashboard: statics.dashboard,
      frontend: () => this.#frontend,
      ...(metrics?.respond && { metrics: metrics.respond }),
      log,
    });
  }
}
