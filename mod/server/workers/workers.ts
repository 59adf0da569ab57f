/** Starts worker processes, monitors them, kills unresponsive ones and restarts those that have ended. */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { ServeConfig } from "../../config/config.ts";
import { type FollowerConnection, type FollowerFigures, Leader } from "../../cluster/mod.ts";
import { httpLimits } from "../../limits.ts";
import { LocalSocket } from "../../kit/local_socket.ts";
import type { Log } from "../../kit/log.ts";
import { workerLimits } from "../limits.ts";
import { ForwardedRequests } from "../forwarding/forwarded_requests.ts";
import { type WorkerBoot, workerConfig } from "./boot.ts";
import type { LeaderParts } from "../forwarding/leader_parts.ts";
import { NewestTsFile } from "./newest_ts_file.ts";
import { WorkerProcess } from "./worker_process.ts";

export interface WorkersOptions {
  readonly config: ServeConfig;
  readonly port: number;
  readonly parts: LeaderParts;
  /** Answers a request that a worker forwards. */
  readonly respond: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>;
  readonly log: Log;
}

/** Name of the socket in the data folder on which workers reach the leader. */
const LINK_SOCKET = "workers.sock";

interface RunningWorker {
  readonly process: WorkerProcess;
  /** Called when it serves. */
  serves(): void;
}

export class Workers implements AsyncDisposable {
  readonly #options: WorkersOptions;
  readonly #leader: Leader;
  readonly #socket: LocalSocket;
  readonly #forwarded: ForwardedRequests;
  readonly #newest: NewestTsFile;
  readonly #secret: string;
  readonly #running = new Map<string, RunningWorker>();
  readonly #stopping = new AbortController();
  #loops: readonly Promise<void>[] = [];
  #pastTransitions = 0;

  private constructor(options: WorkersOptions, { leader, newest, secret, socket, passed }: {
    readonly leader: Leader;
    readonly newest: NewestTsFile;
    readonly secret: string;
    readonly socket: LocalSocket;
    readonly passed: ForwardedRequests;
  }) {
    this.#options = options;
    this.#leader = leader;
    this.#newest = newest;
    this.#secret = secret;
    this.#socket = socket;
    this.#forwarded = passed;
  }

  /** Starts all processes besides this one. Resolves when each serves or has failed once. */
  static async start(options: WorkersOptions): Promise<Workers> {
    const { config: { dataDir, workers }, parts, respond, log } = options;
    const { host, admits, verify, rooms, observer, onCacheHit, onRequests } = parts;
    const secret = randomBytes(32).toString("hex");
    const socket = await LocalSocket.open(await Deno.realPath(dataDir), LINK_SOCKET);
    const passed = await ForwardedRequests.open(dataDir, { respond });
    // Noted before the calls of a group are answered.
    const newest = new NewestTsFile(dataDir, host.ts);
    host.commits.onGroup(() => newest.write(host.ts));
    host.onReload(() => newest.write(host.ts));
    const leader = new Leader({
      host,
      secret,
      ...(admits && { admits }),
      ...(verify && { verify }),
      ...(rooms && { rooms }),
      ...(observer && { observer }),
      ...(onCacheHit && { onCacheHit }),
      ...(onRequests && { onRequests }),
      onFollower: (follower) => self.#watch(follower),
      log,
    });
    parts.onEnded((ended) => leader.send({ t: "ended", ended }));
    const self: Workers = new Workers(options, { leader, newest, secret, socket, passed });
    leader.listen(socket.listener);
    const firsts = Array.from({ length: workers - 1 }, () => Promise.withResolvers<void>());
    self.#loops = firsts.map(({ resolve }, index) => self.#keepRunning(`worker-${index + 1}`, resolve));
    await Promise.all(firsts.map(({ promise }) => promise));
    return self;
  }

  /** Load of the workers. Transitions of ended workers are included. */
  get figures(): readonly Partial<FollowerFigures>[] {
    const now = [...this.#leader.followers].flatMap(({ figures }) => figures ?? []);
    return [...now, { transitions: this.#pastTransitions }];
  }

  /** Process ids of the workers. */
  get pids(): readonly number[] {
    return [...this.#running.values()].map(({ process }) => process.pid);
  }

  /** Lets the workers finish running requests and ends them. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    this.#leader.send({ t: "stop" });
    const late = setTimeout(() => {
      for (const { process } of this.#running.values()) process.kill();
    }, httpLimits.drainMs + workerLimits.stopMs);
    await Promise.all(this.#loops);
    clearTimeout(late);
    await this.#leader[Symbol.asyncDispose]();
    await this.#forwarded[Symbol.asyncDispose]();
    this.#newest[Symbol.dispose]();
    this.#socket[Symbol.dispose]();
  }

  /**
   * Notes that a worker serves. Kills one whose link ends while its process continues: it is unresponsive or no longer
   * receives commits.
   */
  #watch(follower: FollowerConnection): void {
    const running = this.#running.get(follower.name);
    if (running !== undefined) follower.ready.then(running.serves, () => {});
    // It was starting when the server was stopped.
    if (this.#stopping.signal.aborted) follower.send({ t: "stop" });
    follower.ended.then(({ end, detail }) => {
      this.#pastTransitions += follower.figures?.transitions ?? 0;
      if (running === undefined || this.#stopping.signal.aborted) return;
      // A worker that has closed its link is about to end.
      if (end === "closed") return this.#killLater(running.process);
      this.#options.log("error", "Killed an unresponsive worker", {
        worker: follower.name,
        reason: detail,
      });
      running.process.kill();
    });
  }

  #killLater(worker: WorkerProcess): void {
    const late = setTimeout(() => worker.kill(), workerLimits.stopMs);
    worker.ended.then(() => clearTimeout(late));
  }

  /** Keeps one worker running. Calls `tried` when it serves or has failed. Never rejects. */
  async #keepRunning(name: string, tried: () => void): Promise<void> {
    const { log } = this.#options;
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted;) {
      const startedAt = performance.now();
      const why = await this.#runOnce(name, tried).catch((error) => String(error));
      tried();
      if (signal.aborted) return;
      failures = performance.now() - startedAt >= workerLimits.steadyMs ? 1 : failures + 1;
      log("warn", "A worker ended and will be restarted", { worker: name, reason: why });
      const { restartMsMin, restartMsMax } = workerLimits;
      const pauseMs = Math.min(restartMsMax, restartMsMin * 2 ** Math.min(failures - 1, 16));
      await delay(pauseMs, undefined, { signal }).catch(() => {});
    }
  }

  /** Returns the reason of its end. */
  async #runOnce(name: string, serves: () => void): Promise<string> {
    const worker = await WorkerProcess.start(this.#boot(name));
    const late = setTimeout(() => worker.kill(), workerLimits.startMs);
    this.#running.set(name, {
      process: worker,
      serves() {
        clearTimeout(late);
        serves();
      },
    });
    if (this.#stopping.signal.aborted) worker.kill();
    const { code, signal } = await worker.ended;
    clearTimeout(late);
    this.#running.delete(name);
    return signal ?? `exit code ${code}`;
  }

  #boot(name: string): WorkerBoot {
    const { config, port, parts: { settings } } = this.#options;
    return {
      name,
      host: config.host,
      port,
      link: { path: this.#socket.path, secret: this.#secret },
      passed: { path: this.#forwarded.socket },
      settings,
      config: workerConfig(config),
    };
  }
}
