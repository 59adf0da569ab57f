/** A running server, from start to stop: data folder lock, port, backend, cluster membership and takeover. */
import { isFollower, type ServeConfig } from "../config/config.ts";
import { StartError } from "../config/start_error.ts";
import { steadyClock } from "../kit/clock.ts";
import { httpLimits } from "../limits.ts";
import { stagedRestore } from "../ops/backups/restore/mod.ts";
import type { Backend } from "./backend.ts";
import type { ReloadResult } from "./dev/dev_mode.ts";
import { ClusterMembership } from "./cluster_membership.ts";
import { claimData, DataLock, DataLockedError } from "./data/data_lock.ts";
import { checkNoStagedRestoreInCluster, logRestore } from "./data/data_restore.ts";
import { devFrontend } from "./dev/dev_frontend.ts";
import { type Frontend, openDashboard, StaticFiles } from "./http/static_files.ts";
import { canSharePorts } from "./http/listen.ts";
import { Port } from "./http/port.ts";
import { RequestGate } from "./http/request_gate.ts";
import { dataLockLimits, takeoverLimits } from "./limits.ts";
import { RequestHandler } from "./request_handler.ts";
import { configForRole, localAuthority } from "./role.ts";
import type { ServerOptions } from "./server_options.ts";
import { type RoleParts, Serving, type Statics } from "./serving.ts";
import { OldProcess, TakeoverListener } from "./takeover/mod.ts";
import type { Workers } from "./workers/workers.ts";

export class Server implements AsyncDisposable {
  readonly #parts: ServerOptions;
  readonly #port: Port;
  readonly #serving: Serving;
  readonly #requests: RequestHandler;
  /** `null` before it is acquired, and while another process takes over. */
  #lock: DataLock | null = null;
  /** Set before the app is loaded; `null` outside a cluster. */
  #membership: ClusterMembership | null = null;
  /** Worker processes that share the port. */
  #workers: Workers | null = null;
  /** Accepts takeover requests. */
  #takeovers: TakeoverListener | null = null;
  readonly #handedOver = Promise.withResolvers<void>();
  /** Set by the first `stop`; later calls return the same promise. */
  #stopped: Promise<void> | null = null;
  /** Set once this server leads again after a failed takeover. Never rejects. */
  #resuming: Promise<void> | null = null;
  /** Set while the backend ends. */
  #ending: Promise<void> | null = null;
  readonly #stopping = new AbortController();

  private constructor(parts: ServerOptions, statics: Statics) {
    const { native = null, log, config, startBackend, onRestart, clock = steadyClock } = parts;
    this.#parts = parts;
    this.#port = new Port({
      config,
      native,
      log,
      respond: (request, info) => this.#requests.respond(request, info),
    });
    this.#serving = new Serving({
      parts: {
        config,
        log,
        startBackend: (role, surroundings) => startBackend(configForRole(config, role), surroundings),
        ...(onRestart && { onRestart }),
      },
      statics,
      port: this.#port,
      clock,
      workerFigures: () => this.#workers?.figures ?? [],
      stopping: this.#stopping.signal,
    });
    this.#requests = new RequestHandler({
      gate: new RequestGate(config, log),
      serving: this.#serving,
      connections: this.#port.connections,
      log,
    });
  }

  /** Takes the data, applies a restore, opens the port, loads the app. Throws a `StartError` or that of `startBackend`. */
  static async start(parts: ServerOptions): Promise<Server> {
    const { config, log } = parts;
    using oldProcess = config.takeover ? await OldProcess.find(config.dataDir) : null;
    if (oldProcess !== null) return await Server.#takeOver(parts, oldProcess);
    const server = new Server(parts, await openStatics(config));
    try {
      const lock = server.#lock = await acquire(config);
      if (lock.restored !== null) logRestore(log, lock.restored);
      await claimData(config.dataDir, { example: config.example, restored: lock.restored !== null });
      server.#port.listen();
      await server.#joinCluster();
      await server.#serve();
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  /**
   * Takes over from the old process: prepares everything that does not need the database, listens on the same port, asks the
   * old process to step down, and leads once it holds the lock of the data folder. Throws a `StartError` or the error of
   * `startBackend`; the old process then continues.
   */
  static async #takeOver(asked: ServerOptions, oldProcess: OldProcess): Promise<Server> {
    const { host, port } = oldProcess.address;
    const parts = { ...asked, config: { ...asked.config, port: asked.config.port ?? port } };
    const { config, log } = parts;
    await checkTakeoverAllowed(config);
    await claimData(config.dataDir, { example: config.example });
    const server = new Server(parts, await openStatics(config));
    try {
      await server.#serve(async () => {
        const shared = config.port === port;
        if (canSharePorts || !shared) server.#port.listen({ shared });
        await oldProcess.stepDown();
        server.#lock = await acquire(config, takeoverLimits.lockMs);
        if (!server.#port.isOpen) await server.#port.listenWhenFree(() => server.#stopped === null);
      });
      await oldProcess.leading();
      log("info", "Took over from the old process", { host, port });
      return server;
    } catch (error) {
      // The old process continues when the connection to it ends, so the lock is released first.
      await server.stop();
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

  /** Refuses new requests, closes sockets (1012), waits up to `drainMs` for calls, ends isolates and releases the data. */
  stop(): Promise<void> {
    this.#stopping.abort();
    return this.#stopped ??= this.#drain();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #joinCluster(): Promise<void> {
    const { config, log } = this.#parts;
    this.#membership = await ClusterMembership.join(config, {
      url: this.url,
      respond: (request, info) => this.#requests.respond(request, info, { forwarded: true }),
      log,
    });
  }

  /** Starts the backend and what depends on it. `databaseFree`: see `BackendOptions.databaseFree`. */
  async #serve(databaseFree?: RoleParts["databaseFree"]): Promise<void> {
    const { config, log } = this.#parts;
    const membership = this.#membership;
    const authority = membership ?? localAuthority(config, { log, stopping: this.#stopping.signal });
    const backend = await this.#serving.start({
      authority,
      membership,
      ...(databaseFree && { databaseFree }),
    });
    if (this.#stopped !== null) return;
    await this.#startWorkers(backend);
    await this.#acceptTakeovers();
    this.#serving.changeIfRequested();
  }

  async #startWorkers({ leaderParts }: Backend): Promise<void> {
    const { config, log } = this.#parts;
    if (config.workers <= 1 || leaderParts === undefined) return;
    if (!canSharePorts) {
      throw new StartError(
        "--workers is not supported: this system does not allow several processes to share a port",
        { code: "workers" },
      );
    }
    const respond = (request: Request, info: Deno.ServeHandlerInfo) =>
      this.#requests.respond(request, info, { forwarded: true });
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
    const { config, log } = this.#parts;
    if (this.#workers !== null || this.#membership !== null || isFollower(config)) return;
    this.#takeovers = await TakeoverListener.open({
      dataDir: config.dataDir,
      server: {
        address: { host: config.host, port: this.#port.number },
        stepDown: () => this.#stepDown(),
        handedOver: () => this.#handedOver.resolve(),
        resume: () => this.#resuming = this.#resume(),
      },
      log,
    });
  }

  /**
   * Ends everything that uses the data folder and releases it for a new process. Returns `false` if this server cannot now. If
   * that fails, the server ends.
   */
  async #stepDown(): Promise<boolean> {
    if (this.#serving.role !== "leading" || this.#stopping.signal.aborted) return false;
    try {
      // Requests are answered until the port closes: later ones reach the new process.
      await this.#endServing({ answers: true });
    } catch (error) {
      // Isolates may still use the database. They end with this process, which releases the folder.
      this.#port.fail(error);
      throw error;
    }
    this.#releaseFolder();
    return true;
  }

  /** Leads again after a failed takeover. If another process keeps the data folder or the app does not load, the server ends. */
  async #resume(): Promise<void> {
    const { log } = this.#parts;
    try {
      const lock = await this.#regainFolder();
      if (lock === null) return;
      this.#lock = lock;
      // A frozen new process still listens on the port.
      this.#port.listen({ shared: canSharePorts });
      await this.#serve();
    } catch (error) {
      if (this.#stopped !== null) return;
      if (error instanceof DataLockedError) {
        log("warn", "Another process has the data folder; this server ends", { code: "takeover", error });
        return this.#handedOver.resolve();
      }
      log("error", "Cannot continue after the failed takeover", { error });
      this.#port.fail(error);
    }
  }

  /** Waits for the end of a failed new process. Returns `null` if this server is stopped. */
  async #regainFolder(): Promise<DataLock | null> {
    for (const until = performance.now() + takeoverLimits.lockMs; this.#stopped === null;) {
      try {
        // As after any start: this server no longer takes over.
        return await acquire({ ...this.#parts.config, takeover: false });
      } catch (error) {
        if (!(error instanceof DataLockedError) || performance.now() >= until) throw error;
      }
    }
    return null;
  }

  #releaseFolder(): void {
    // First: a new process opens a socket with the same name once it has the folder.
    this.#takeovers?.close();
    this.#lock?.[Symbol.dispose]();
    this.#lock = null;
  }

  async #drain(): Promise<void> {
    // A cluster that does not answer must not delay the stop.
    this.#membership?.cluster.stopping();
    await this.#resuming;
    await this.#serving.settled;
    try {
      await this.#endServing();
    } finally {
      await this.#membership?.[Symbol.asyncDispose]();
      this.#port[Symbol.dispose]();
      this.#releaseFolder();
      await this.#takeovers?.[Symbol.asyncDispose]();
    }
  }

  /** Refuses new requests, closes the sockets, finishes running calls and ends the backend. */
  #endServing({ answers = false } = {}): Promise<void> {
    return this.#ending ??= this.#endBackend(answers).finally(() => this.#ending = null);
  }

  /** `answers`: whether requests are answered until the port closes. */
  async #endBackend(answers: boolean): Promise<void> {
    const forwarding = this.#membership?.forwarding;
    // Other servers are notified first: they keep requests they have not sent yet for the next leader.
    const left = forwarding?.drainFollowers();
    // Ends in any case before the data folder is released: there must be one writer.
    await using ending = new AsyncDisposableStack();
    const backend = ending.use(this.#serving.backend);
    ending.defer(() => this.#serving.drain());
    if (!answers) this.#serving.drain();
    // Workers finish while this process still answers them.
    const workersEnded = this.#workers?.[Symbol.asyncDispose]();
    // Sockets first: shutting down the listener would close them without a useful code.
    await backend?.closeSockets().catch((error) =>
      this.#parts.log("error", "Cannot close the sockets cleanly", { error })
    );
    this.#serving.drain();
    await this.#port.finish(this.#parts.drainMs ?? httpLimits.drainMs);
    await left;
    await workersEnded;
    await forwarding?.stopLeading();
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

async function acquire(
  { dataDir, takeover, cluster }: ServeConfig,
  waitMs: number = dataLockLimits.serveWaitMs,
): Promise<DataLock> {
  try {
    const lock = await DataLock.acquire(dataDir, {
      by: "serve",
      restore: cluster === null ? "apply" : "finish",
      waitMs,
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
