/** The pool of action runners: started on demand, actions spread evenly, ended when idle. */
import type { Log } from "../../../kit/log.ts";
import { functionLimits } from "../../../limits.ts";
import { fairnessLimits } from "../../limits.ts";
import { isolateLimits } from "../../limits.ts";
import { childTrace } from "../../call_trace.ts";
import type { FunctionCall } from "../../host_port.ts";
import { failed, type Outcome } from "../../outcome.ts";
import { isCtxPath } from "../../system_module.ts";
import type { SubCall } from "../../wire/messages.ts";
import type { Clock, Timer } from "../../../kit/clock.ts";
import type { IsolateStarter } from "../process/isolate.ts";
import { overloaded, stopping } from "../outcomes.ts";
import { nextRequest, numberError } from "../run_observer.ts";
import { Restarts } from "../process/restarts.ts";
import type { RouteExchange } from "./route_exchange.ts";
import { type CallTree, HEARTBEAT_MS, type PendingAction, Runner } from "./runner.ts";

/** Idle time after which an additional runner ends. */
const IDLE_MS = 60_000;
const FAILED_STARTS_MAX = 3;

export interface ActionEnd {
  readonly call: FunctionCall;
  readonly outcome: Outcome;
  /** Time since the call. */
  readonly ms: number;
  readonly queuedMs: number;
  /** Hash of the version that ran it, if a runner did. */
  readonly version?: string | null;
}

export interface RunnerPoolOptions {
  readonly starter: IsolateStarter;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the hash of the served version. */
  readonly version?: () => string | null;
  /** Runs queries and mutations of actions, and the service's own actions behind `ctx`. Never rejects. */
  readonly serve: (kind: "query" | "mutation" | "action", call: FunctionCall) => Promise<Outcome>;
  /** Creates a generator of action ids for each runner. */
  readonly callNames?: () => () => number;
  /** Called for each ended action, including nested ones, and each route request with a connected client. */
  readonly onEnd?: (kind: "action" | "route", end: ActionEnd) => void;
  /** Maximum runners. Defaults to the general limit. */
  readonly runnersMax?: number;
}

export class RunnerPool {
  readonly #options: RunnerPoolOptions;
  readonly #runners = new Set<Runner>();
  readonly #runnersMax: number;
  /** Runners that are ending, and may still have an action that timed out. */
  readonly #leaving = new Set<Runner>();
  /** Runners ended by `endAll`. */
  readonly #killed = new WeakSet<Runner>();
  readonly #restarts = new Restarts();
  /** Queued actions. Nested ones come first. */
  #waiting: PendingAction[] = [];
  /** Assigned actions, by queue key and by caller. */
  readonly #running = new Map<string, number>();
  #starting = 0;
  /** Increased by `replace`: older runners have other code. */
  #generation = 0;
  #failures = 0;
  #closing = false;
  /** Set while a runner has actions. */
  #heartbeatTimer: Timer | null = null;
  /** Set while there is more than one runner. */
  #idleTimer: Timer | null = null;
  readonly #pauses = new Set<Timer>();

  constructor(options: RunnerPoolOptions) {
    this.#options = options;
    this.#runnersMax = options.runnersMax ?? isolateLimits.runnersMax;
  }

  /** Runs an action or handles a route request. Never rejects. */
  act(call: FunctionCall, exchange?: RouteExchange): Promise<Outcome> {
    if (this.#waiting.length >= isolateLimits.queuedActionsMax) {
      const outcome = overloaded(`${this.#waiting.length} actions are waiting`);
      const refused = this.#evictFor(call);
      if (refused === null) {
        this.#options.onEnd?.(kindOf(exchange), { call, outcome, ms: 0, queuedMs: 0 });
        return Promise.resolve(outcome);
      }
      refused.resolve(outcome);
    }
    const tree: CallTree = { descendants: 0, inFlight: 0, ended: false };
    return this.#act(call, { depth: 0, by: null, exchange, tree }).finally(() => this.#endTree(tree));
  }

  /** Evicts the newest action of the caller with the most queued, if this caller has less than half as many. */
  #evictFor({ caller }: FunctionCall): PendingAction | null {
    const counts = new Map<string, number>();
    for (const { call } of this.#waiting) {
      counts.set(queueKeyOf(call), (counts.get(queueKeyOf(call)) ?? 0) + 1);
    }
    const [most, count] = [...counts].reduce((a, b) => b[1] > a[1] ? b : a, ["", 0]);
    if (2 * ((counts.get(caller?.queueKey ?? "") ?? 0) + 1) >= count) return null;
    const at = this.#waiting.findLastIndex(({ call, depth }) => depth === 0 && queueKeyOf(call) === most);
    return this.#waiting.splice(at, at < 0 ? 0 : 1)[0] ?? null;
  }

  /** Ends a call's actions with it: queued ones do not start, running ones can call nothing more. */
  #endTree(tree: CallTree): void {
    tree.ended = true;
    if (tree.inFlight === 0) return;
    const left = this.#waiting.filter((action) => action.tree === tree);
    this.#waiting = this.#waiting.filter((action) => action.tree !== tree);
    for (const { resolve } of left) resolve(treeEnded());
  }

  /** Starts runners with new code for new actions. Old runners end with their last action. */
  replace(): void {
    this.#generation++;
    for (const runner of this.#runners) this.#drain(runner);
    this.#dispatch();
  }

  /** Ends all actions, also queued ones (retryable error). Resolves when the processes are gone. Later actions run. */
  async endAll(): Promise<void> {
    for (const { resolve } of this.#waiting.splice(0)) resolve(notBegun());
    const runners = [...this.#runners, ...this.#leaving];
    for (const runner of runners) {
      this.#killed.add(runner);
      runner.draining = true;
      runner.kill();
    }
    await Promise.all(runners.map(({ ended }) => ended));
  }

  /** Ends all runners and answers their actions with an error. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const timer of [this.#heartbeatTimer, this.#idleTimer, ...this.#pauses]) timer?.cancel();
    for (const { resolve } of this.#waiting.splice(0)) resolve(stopping());
    await Promise.all([...this.#runners].map((runner) => {
      runner.kill();
      return runner.close();
    }));
  }

  #act(
    asked: FunctionCall,
    { depth, by, exchange, tree }: {
      readonly depth: number;
      readonly by: Runner | null;
      readonly exchange?: RouteExchange | undefined;
      readonly tree: CallTree;
    },
  ): Promise<Outcome> {
    if (this.#closing) return Promise.resolve(stopping());
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const { clock, onEnd } = this.#options;
    const since = clock.now();
    // Calls of the action belong to the same request.
    const call = asked.request === undefined ? { ...asked, request: nextRequest() } : asked;
    const action: PendingAction = {
      call,
      depth,
      by,
      tree,
      ended: promise,
      resolve: (outcome) => {
        // Not the function's fault if the client disconnected.
        const now = clock.now();
        const { begunAt, version } = action;
        const ended = {
          ...{ call, outcome, ms: now - since, queuedMs: (begunAt ?? now) - since },
          ...(version !== undefined && { version }),
        };
        if (call.request !== undefined) numberError(outcome, call.request);
        if (!exchange?.canceled) onEnd?.(kindOf(exchange), ended);
        resolve(outcome);
      },
      runnersLost: 0,
      begunAt: null,
      ...(exchange === undefined ? {} : { exchange }),
    };
    const least = this.#leastLoaded();
    // A nested action never queues: its caller may occupy the slot it would wait for.
    if (depth > 0 && least !== null && this.#size >= this.#runnersMax) {
      this.#run(least, action);
      return promise;
    }
    if (depth > 0) this.#waiting.unshift(action);
    else this.#waiting.push(action);
    this.#dispatch();
    return promise;
  }

  /** Runners that accept actions, now or soon. */
  get #size(): number {
    return this.#starting + this.#takers().length;
  }

  #takers(): Runner[] {
    return [...this.#runners].filter(({ draining, gone }) => !draining && !gone);
  }

  #leastLoaded(): Runner | null {
    return this.#takers().reduce<Runner | null>(
      (least, runner) => least === null || runner.load < least.load ? runner : least,
      null,
    );
  }

  /** Returns an empty runner, starts a new one, or returns the one with the fewest actions. */
  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const least = this.#leastLoaded();
      if (least === null || least.load > 0) {
        // Covered by the runners that are starting.
        if (this.#waiting.length <= this.#starting) break;
        if (this.#size < this.#runnersMax) {
          if (!this.#startOne()) break;
          continue;
        }
        if (least === null || least.load >= isolateLimits.actionsPerRunnerMax) break;
      }
      const action = this.#takeNext();
      if (action === null) break;
      if (action.by?.gone) action.resolve(treeEnded());
      else this.#run(least, action);
    }
    this.#heartbeatLater();
  }

  /** Returns the next action: a nested one, or one of the caller with the fewest assigned. `null` if all have reached their limit. */
  #takeNext(): PendingAction | null {
    const most = fairnessLimits.actionShareMax * this.#runnersMax * isolateLimits.actionsPerRunnerMax;
    let next = -1;
    let fewest = Infinity;
    for (const [at, { call, depth }] of this.#waiting.entries()) {
      if (depth > 0) {
        next = at;
        break;
      }
      const has = this.#running.get(queueKeyOf(call)) ?? 0;
      const { caller } = call;
      if (caller !== undefined && (this.#running.get(`by ${caller.blame}`) ?? 0) >= most) continue;
      if (has < fewest) [next, fewest] = [at, has];
      if (has === 0) break;
    }
    return next < 0 ? null : this.#waiting.splice(next, 1)[0] ?? null;
  }

  #run(runner: Runner, action: PendingAction): void {
    const { caller } = action.call;
    const keys = [queueKeyOf(action.call), ...(caller === undefined ? [] : [`by ${caller.blame}`])];
    for (const key of keys) this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
    let left = false;
    action.left = () => {
      if (left) return;
      left = true;
      for (const key of keys) {
        const count = (this.#running.get(key) ?? 1) - 1;
        if (count === 0) this.#running.delete(key);
        else this.#running.set(key, count);
      }
    };
    runner.run(action);
  }

  /** Returns `false` if enough runners are starting: only one at a time after failed starts. */
  #startOne(): boolean {
    const most = this.#failures > 0 ? 1 : isolateLimits.runnersStartingMax;
    if (this.#closing || this.#starting >= most) return false;
    this.#starting++;
    const pauseMs = this.#restarts.pauseMs(this.#options.clock.now(), this.#failures);
    if (pauseMs === 0) {
      this.#start();
      return true;
    }
    const pause = this.#options.clock.after(pauseMs, () => {
      this.#pauses.delete(pause);
      this.#start();
    });
    this.#pauses.add(pause);
    return true;
  }

  async #start(): Promise<void> {
    const { starter, clock, log } = this.#options;
    const generation = this.#generation;
    const started = await starter.start("runner");
    this.#starting--;
    if (this.#closing || started.ok && generation !== this.#generation) {
      // Code was replaced while it was starting.
      if (started.ok) started.isolate.kill();
    } else if (!started.ok) {
      this.#failures++;
      log("error", "Cannot start an action runner", { message: started.message });
      if (this.#failures >= FAILED_STARTS_MAX && this.#takers().length === 0) {
        const outcome = failed("internal", `The app cannot be started: ${started.message}`, {
          retryable: true,
        });
        for (const { resolve } of this.#waiting.splice(0)) resolve(outcome);
      }
    } else {
      this.#failures = 0;
      const added: Runner = new Runner({
        isolate: started.isolate,
        clock,
        version: this.#options.version?.() ?? null,
        newCall: this.#options.callNames?.(),
        serve: (sub, action) => this.#serve(sub, { ...action, runner: added }),
        onDone: (runner) => this.#onDone(runner),
        onEnded: (runner, death, unbegun) => {
          if (this.#runners.delete(runner) && death.cause !== "asked") {
            log("warn", "An action runner ended", { cause: death.cause, detail: death.detail });
          }
          if (this.#killed.has(runner)) { for (const { resolve } of unbegun) resolve(notBegun()); }
          else this.#waiting.unshift(...unbegun);
          if (this.#closing) { for (const { resolve } of this.#waiting.splice(0)) resolve(stopping()); }
          this.#dispatch();
        },
      });
      this.#runners.add(added);
      this.#idleLater();
    }
    this.#dispatch();
  }

  /** Calls of an action run with its caller and the access of app code. */
  #serve(
    { kind, udfPath, args }: SubCall,
    { call, depth, tree, ended, runner }: PendingAction & { readonly runner: Runner },
  ): Promise<Outcome> {
    if (tree.ended) return Promise.resolve(treeEnded());
    const { identity, caller, request, lineage, trace } = call;
    const sub: FunctionCall = {
      udfPath,
      args,
      identity,
      origin: "server",
      ...(caller && { caller }),
      ...(request !== undefined && { request }),
      ...(lineage && { lineage }),
      ...(trace && { trace: childTrace(trace) }),
    };
    if (kind === "action" && isCtxPath(udfPath)) {
      return this.#options.serve(kind, { ...sub, calledBy: call.udfPath, callerEnded: ended });
    }
    if (kind !== "action") return this.#options.serve(kind, sub);
    const { descendantsAtOnceMax, descendantsMax } = fairnessLimits;
    if (tree.inFlight >= descendantsAtOnceMax || tree.descendants >= descendantsMax) {
      const most = tree.inFlight >= descendantsAtOnceMax ? `${descendantsAtOnceMax} at once` : descendantsMax;
      return Promise.resolve(failed("internal", `One call has set off more actions than it may: ${most}`));
    }
    if (depth + 1 < functionLimits.nestingMax) {
      tree.descendants++;
      tree.inFlight++;
      return this.#act(sub, { depth: depth + 1, by: runner, tree }).finally(() => tree.inFlight--);
    }
    const message = `Actions are nested more than ${functionLimits.nestingMax} deep`;
    return Promise.resolve(failed("internal", message, { code: "limit" }));
  }

  #onDone(runner: Runner): void {
    if (runner.draining && runner.load === 0) this.#end(runner);
    this.#dispatch();
  }

  #drain(runner: Runner): void {
    runner.draining = true;
    if (runner.load === 0) this.#end(runner);
  }

  #end(runner: Runner): void {
    this.#runners.delete(runner);
    this.#leaving.add(runner);
    void runner.close().finally(() => this.#leaving.delete(runner));
  }

  #heartbeatLater(): void {
    if (this.#closing || ![...this.#runners].some(({ load }) => load > 0)) return;
    this.#heartbeatTimer ??= this.#options.clock.after(HEARTBEAT_MS, () => {
      this.#heartbeatTimer = null;
      for (const runner of this.#runners) {
        if (runner.load > 0) runner.checkTimeouts();
      }
      this.#heartbeatLater();
    });
  }

  #idleLater(): void {
    if (this.#closing || this.#runners.size <= 1) return;
    this.#idleTimer ??= this.#options.clock.after(IDLE_MS, () => {
      this.#idleTimer = null;
      const since = this.#options.clock.now() - IDLE_MS;
      for (const runner of this.#runners) {
        if (this.#runners.size > 1 && runner.load === 0 && runner.idleSince <= since) this.#drain(runner);
      }
      this.#idleLater();
    });
  }
}

function queueKeyOf({ caller }: FunctionCall): string {
  return caller?.queueKey ?? "";
}

/** The outcome of an action ended before it started. It had no effect. */
function notBegun(): Outcome {
  return failed("internal", "The action was ended before it began", { retryable: true });
}

/** The outcome of actions whose root call has ended. */
function treeEnded(): Outcome {
  return failed("internal", "The call that set it off has ended");
}

function kindOf(exchange: RouteExchange | undefined): "action" | "route" {
  return exchange === undefined ? "action" : "route";
}
