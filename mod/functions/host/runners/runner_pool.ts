/** The action runners: started when first needed, spread thin, ended when idle. */
import type { Log } from "../../../kit/log.ts";
import { functionLimits } from "../../../limits.ts";
import { fairnessLimits } from "../../limits.ts";
import { isolateLimits } from "../../limits.ts";
import type { FunctionCall } from "../../host_port.ts";
import { failed, type Outcome } from "../../outcome.ts";
import { isCtxPath } from "../../system_paths.ts";
import type { SubCall } from "../../wire/messages.ts";
import type { Clock, Timer } from "../../../kit/clock.ts";
import type { IsolateStarter } from "../process/isolate.ts";
import { overloaded, stopping } from "../outcomes.ts";
import { nextRequest, numberError } from "../run_observer.ts";
import { Restarts } from "../process/restarts.ts";
import type { RouteExchange } from "./route_exchange.ts";
import { type CallTree, type PendingAction, Runner } from "./runner.ts";

/** Time between two beats of a busy runner. */
const BEAT_MS = 1_000;
/** A runner beyond the first that had nothing to do for this long ends. */
const IDLE_MS = 60_000;
/** Starts in a row that may fail before the actions that wait are given up. */
const FAILED_STARTS_MAX = 3;

/** How an action, or the request of a route, ended. */
export interface ActionEnd {
  readonly call: FunctionCall;
  readonly outcome: Outcome;
  /** Since it was asked for. */
  readonly ms: number;
  /** Of these, how long it waited for a runner. */
  readonly queuedMs: number;
}

export interface RunnerPoolOptions {
  readonly starter: IsolateStarter;
  readonly clock: Clock;
  readonly log: Log;
  /** Runs the queries and mutations of actions, and the service's own actions behind `ctx`. Never rejects. */
  readonly serve: (kind: "query" | "mutation" | "action", call: FunctionCall) => Promise<Outcome>;
  /** Makes for each runner what names its actions. */
  readonly callNames?: () => () => number;
  /** Told how each action ended, nested ones included, and each request of a route that somebody waited for. */
  readonly onEnd?: (kind: "action" | "route", end: ActionEnd) => void;
  /** Runners at once; the limit of all when absent. */
  readonly runnersMax?: number;
}

export class RunnerPool {
  readonly #options: RunnerPoolOptions;
  readonly #runners = new Set<Runner>();
  readonly #runnersMax: number;
  /** Those that end by themselves, and may still have an action that was over its time. */
  readonly #leaving = new Set<Runner>();
  /** Those that `endAll` has ended. */
  readonly #killed = new WeakSet<Runner>();
  readonly #restarts = new Restarts();
  /** Actions no runner has yet; those of actions stand first. */
  #waiting: PendingAction[] = [];
  /** Actions that runners have, by whose turn they took and by who answers for them. */
  readonly #running = new Map<string, number>();
  #starting = 0;
  /** Advanced by `replace`: runners started before it have other code. */
  #generation = 0;
  #failures = 0;
  #closing = false;
  /** Exists while a runner has actions. */
  #beatTimer: Timer | null = null;
  /** Exists while there are more runners than one. */
  #idleTimer: Timer | null = null;
  readonly #pauses = new Set<Timer>();

  constructor(options: RunnerPoolOptions) {
    this.#options = options;
    this.#runnersMax = options.runnersMax ?? isolateLimits.runnersMax;
  }

  /** Runs an action, or answers the request of a route in its place. Never rejects. */
  act(call: FunctionCall, exchange?: RouteExchange): Promise<Outcome> {
    if (this.#waiting.length >= isolateLimits.queuedActionsMax) {
      const outcome = overloaded(`${this.#waiting.length} actions are waiting`);
      const refused = this.#giveWay(call);
      if (refused === null) {
        this.#options.onEnd?.(kindOf(exchange), { call, outcome, ms: 0, queuedMs: 0 });
        return Promise.resolve(outcome);
      }
      refused.resolve(outcome);
    }
    const tree: CallTree = { descendants: 0, underWay: 0, ended: false };
    return this.#act(call, { depth: 0, by: null, exchange, tree }).finally(() => this.#endTree(tree));
  }

  /** Takes out the newest action of the caller with the most that wait, if this one's has less than half of that. */
  #giveWay({ caller }: FunctionCall): PendingAction | null {
    const counts = new Map<string, number>();
    for (const { call } of this.#waiting) counts.set(turnOf(call), (counts.get(turnOf(call)) ?? 0) + 1);
    const [most, count] = [...counts].reduce((a, b) => b[1] > a[1] ? b : a, ["", 0]);
    if (2 * ((counts.get(caller?.turn ?? "") ?? 0) + 1) >= count) return null;
    const at = this.#waiting.findLastIndex(({ call, depth }) => depth === 0 && turnOf(call) === most);
    return this.#waiting.splice(at, at < 0 ? 0 : 1)[0] ?? null;
  }

  /** What a call has set off ends with it: what waits is not begun, and what runs can call nothing more. */
  #endTree(tree: CallTree): void {
    tree.ended = true;
    if (tree.underWay === 0) return;
    const left = this.#waiting.filter((action) => action.tree === tree);
    this.#waiting = this.#waiting.filter((action) => action.tree !== tree);
    for (const { resolve } of left) resolve(treeEnded());
  }

  /** New actions get runners with new code; the old ones end with their last action. */
  replace(): void {
    this.#generation++;
    for (const runner of this.#runners) this.#retire(runner);
    this.#dispatch();
  }

  /**
   * Ends what runs, at once and for good: also an action that was answered because it was over its time, and what waits. What
   * had not begun is answered as what may be asked again. Resolves when nothing of it can go on; what comes then is run.
   */
  async endAll(): Promise<void> {
    for (const { resolve } of this.#waiting.splice(0)) resolve(notBegun());
    const runners = [...this.#runners, ...this.#leaving];
    for (const runner of runners) {
      this.#killed.add(runner);
      runner.retired = true;
      runner.kill();
    }
    await Promise.all(runners.map(({ ended }) => ended));
  }

  /** Ends all runners; what they had is answered with an error. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const timer of [this.#beatTimer, this.#idleTimer, ...this.#pauses]) timer?.cancel();
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
    // What it calls belongs to the same request.
    const call = asked.request === undefined ? { ...asked, request: nextRequest() } : asked;
    const action: PendingAction = {
      call,
      depth,
      by,
      tree,
      resolve: (outcome) => {
        // A client that has gone is no fault of the function, whatever it threw about it.
        const now = clock.now();
        const ended = { call, outcome, ms: now - since, queuedMs: (action.begunAt ?? now) - since };
        if (call.request !== undefined) numberError(outcome, call.request);
        if (!exchange?.canceled) onEnd?.(kindOf(exchange), ended);
        resolve(outcome);
      },
      runnersLost: 0,
      begunAt: null,
      ...(exchange === undefined ? {} : { exchange }),
    };
    const least = this.#leastLoaded();
    // A nested action never waits for room: what holds the room may be waiting for it.
    if (depth > 0 && least !== null && this.#size >= this.#runnersMax) {
      this.#run(least, action);
      return promise;
    }
    if (depth > 0) this.#waiting.unshift(action);
    else this.#waiting.push(action);
    this.#dispatch();
    return promise;
  }

  /** Runners that take actions, now or soon. */
  get #size(): number {
    return this.#starting + this.#takers().length;
  }

  #takers(): Runner[] {
    return [...this.#runners].filter(({ retired, gone }) => !retired && !gone);
  }

  #leastLoaded(): Runner | null {
    return this.#takers().reduce<Runner | null>(
      (least, runner) => least === null || runner.load < least.load ? runner : least,
      null,
    );
  }

  /** An empty runner if there is one, else a new one, else the one with the fewest actions. */
  #dispatch(): void {
    while (this.#waiting.length > 0) {
      const least = this.#leastLoaded();
      if (least === null || least.load > 0) {
        // As many as are being started will be taken by those.
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
    this.#beatLater();
  }

  /**
   * The action whose turn is next: one that an action waits for, else one of the caller who has the fewest with the runners.
   * `null` when all that wait have as many as they may.
   */
  #takeNext(): PendingAction | null {
    const most = fairnessLimits.actionShareMax * this.#runnersMax * isolateLimits.actionsPerRunnerMax;
    let next = -1;
    let fewest = Infinity;
    for (const [at, { call, depth }] of this.#waiting.entries()) {
      if (depth > 0) {
        next = at;
        break;
      }
      const has = this.#running.get(turnOf(call)) ?? 0;
      const { caller } = call;
      if (caller !== undefined && (this.#running.get(`by ${caller.blame}`) ?? 0) >= most) continue;
      if (has < fewest) [next, fewest] = [at, has];
      if (has === 0) break;
    }
    return next < 0 ? null : this.#waiting.splice(next, 1)[0] ?? null;
  }

  #run(runner: Runner, action: PendingAction): void {
    const { caller } = action.call;
    const keys = [turnOf(action.call), ...(caller === undefined ? [] : [`by ${caller.blame}`])];
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

  /** `false` when as many are being started as may be: one at a time when starts fail. */
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
    if (started.ok && generation !== this.#generation) {
      // It has loaded the code before the present one.
      started.isolate.kill();
    } else if (!started.ok) {
      this.#failures++;
      log("error", "Cannot start an action runner", { message: started.message });
      if (this.#failures >= FAILED_STARTS_MAX && this.#takers().length === 0) {
        const outcome = failed("internal", `The app cannot be started: ${started.message}`, {
          retryable: true,
        });
        for (const { resolve } of this.#waiting.splice(0)) resolve(outcome);
      }
    } else if (this.#closing) {
      started.isolate.kill();
    } else {
      this.#failures = 0;
      const added: Runner = new Runner({
        isolate: started.isolate,
        clock,
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

  /** What an action calls runs as the action's caller, with the reach of the app's own code. */
  #serve(
    { kind, udfPath, args }: SubCall,
    { call, depth, tree, runner }: PendingAction & { readonly runner: Runner },
  ): Promise<Outcome> {
    if (tree.ended) return Promise.resolve(treeEnded());
    const { identity, caller, request, lineage } = call;
    const sub: FunctionCall = {
      udfPath,
      args,
      identity,
      origin: "server",
      ...(caller && { caller }),
      ...(request !== undefined && { request }),
      ...(lineage && { lineage }),
    };
    if (kind !== "action" || isCtxPath(udfPath)) return this.#options.serve(kind, sub);
    const { descendantsAtOnceMax, descendantsMax } = fairnessLimits;
    if (tree.underWay >= descendantsAtOnceMax || tree.descendants >= descendantsMax) {
      const most = tree.underWay >= descendantsAtOnceMax ? `${descendantsAtOnceMax} at once` : descendantsMax;
      return Promise.resolve(failed("internal", `One call has set off more actions than it may: ${most}`));
    }
    if (depth + 1 < functionLimits.nestingMax) {
      tree.descendants++;
      tree.underWay++;
      return this.#act(sub, { depth: depth + 1, by: runner, tree }).finally(() => tree.underWay--);
    }
    const message = `Actions are nested more than ${functionLimits.nestingMax} deep`;
    return Promise.resolve(failed("internal", message, { code: "limit" }));
  }

  #onDone(runner: Runner): void {
    if (runner.retired && runner.load === 0) this.#end(runner);
    this.#dispatch();
  }

  #retire(runner: Runner): void {
    runner.retired = true;
    if (runner.load === 0) this.#end(runner);
  }

  #end(runner: Runner): void {
    this.#runners.delete(runner);
    this.#leaving.add(runner);
    void runner.close().finally(() => this.#leaving.delete(runner));
  }

  #beatLater(): void {
    if (this.#closing || ![...this.#runners].some(({ load }) => load > 0)) return;
    this.#beatTimer ??= this.#options.clock.after(BEAT_MS, () => {
      this.#beatTimer = null;
      for (const runner of this.#runners) {
        if (runner.load > 0) runner.beat();
      }
      this.#beatLater();
    });
  }

  #idleLater(): void {
    if (this.#closing || this.#runners.size <= 1) return;
    this.#idleTimer ??= this.#options.clock.after(IDLE_MS, () => {
      this.#idleTimer = null;
      const since = this.#options.clock.now() - IDLE_MS;
      for (const runner of this.#runners) {
        if (this.#runners.size > 1 && runner.load === 0 && runner.idleSince <= since) this.#retire(runner);
      }
      this.#idleLater();
    });
  }
}

function turnOf({ caller }: FunctionCall): string {
  return caller?.turn ?? "";
}

/** The outcome of an action that was ended before it began: nothing has happened. */
function notBegun(): Outcome {
  return failed("internal", "The action was ended before it began", { retryable: true });
}

/** The outcome of what a call had set off when it ended. */
function treeEnded(): Outcome {
  return failed("internal", "The call that set it off has ended");
}

function kindOf(exchange: RouteExchange | undefined): "action" | "route" {
  return exchange === undefined ? "action" : "route";
}
