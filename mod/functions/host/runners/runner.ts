/** One action runner: the actions it has, the calls they make, and whether it is still alive. */
import { functionLimits } from "../../../limits.ts";
import type { FunctionCall } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";
import type { RunAction, SubCall, WireOutcome } from "../../wire/messages.ts";
import type { Clock } from "../../../kit/clock.ts";
import type { Death, Isolate, IsolateFrame } from "../process/isolate.ts";
import type { RouteExchange } from "./route_exchange.ts";
import { endedIsolate, fromWire, tookTooLong, toWire } from "../outcomes.ts";

/** A busy runner that has not answered a beat for this long is stuck in a loop. */
export const BEAT_ANSWER_MS_MAX = 5_000;

/** Runners an action may lose before it has begun. */
const RUNNERS_LOST_MAX = 3;

/** A call from outside and what it has set off. */
export interface CallTree {
  /** Actions it has set off. */
  descendants: number;
  /** Those of them that have not ended. */
  underWay: number;
  /** Whether the call has ended, and all below it with it. */
  ended: boolean;
}

export interface PendingAction {
  readonly call: FunctionCall;
  readonly tree: CallTree;
  /** Calls of runAction it is nested in; 0 for one from outside. */
  readonly depth: number;
  /** The runner whose action asked for it; `null` for one from outside. */
  readonly by: Pick<Runner, "gone"> | null;
  readonly resolve: (outcome: Outcome) => void;
  /** The request of a route, which is answered in an action's place. */
  readonly exchange?: RouteExchange;
  /** Called when a runner has it no more. */
  left?: () => void;
  /** Runners lost before it had begun. The runner counts; past a bound it is given up. */
  runnersLost: number;
  /** When a runner got it. The runner sets it. */
  begunAt: number | null;
}

/** An action in a runner. */
interface Running {
  /** How many the runner was given up to this one. */
  readonly order: number;
  readonly action: PendingAction;
  readonly startedAt: number;
  /** Whether it has called back: then it has begun, and may not run again. */
  called: boolean;
}

export interface RunnerOptions {
  readonly isolate: Isolate;
  readonly clock: Clock;
  /** Runs what an action asks for. Never rejects. */
  readonly serve: (sub: SubCall, action: PendingAction) => Promise<Outcome>;
  /** Called when an action has ended. */
  readonly onDone: (runner: Runner) => void;
  /** Called once when the isolate has ended, with the actions that had not begun. */
  readonly onEnded: (runner: Runner, death: Death, unbegun: PendingAction[]) => void;
  /** Makes names of actions; those that nobody can guess unless given. */
  readonly newCall?: (() => number) | undefined;
}

export class Runner {
  readonly #options: RunnerOptions;
  readonly #running = new Map<number, Running>();
  readonly #newCall: () => number;
  /** Actions it was given. */
  #given = 0;
  /** When the oldest unanswered beat was sent; `null` when none is. */
  #beatAt: number | null = null;
  /** Set when it is ended for answering no beat. */
  #stuck = false;
  /** When it last had nothing to do. */
  idleSince: number;
  /** It gets no more actions and ends with its last. */
  retired = false;
  /** Set when it is killed or has ended. What it had asked for by then may still arrive: nothing of that is begun. */
  #gone = false;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#newCall = options.newCall ?? unguessable;
    this.idleSince = options.clock.now();
    options.isolate.receive((frame) => this.#onFrame(frame));
    options.isolate.ended.then((death) => this.#onEnded(death));
  }

  /** Actions it has. */
  get load(): number {
    return this.#running.size;
  }

  /** Whether nobody waits any more for what its actions have asked for. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Resolves when its process is gone. */
  get ended(): Promise<unknown> {
    return this.#options.isolate.ended;
  }

  run(action: PendingAction): void {
    const call = this.#newCall();
    const order = ++this.#given;
    const startedAt = this.#options.clock.now();
    action.begunAt ??= startedAt;
    this.#running.set(call, { action, order, startedAt, called: false });
    if (action.exchange !== undefined) return this.#begin({ call, order }, action.exchange);
    const { udfPath, args, identity, origin } = action.call;
    const message: RunAction = { type: "RunAction", call, order, udfPath, args, identity, origin };
    this.#options.isolate.send(message);
  }

  /** Once a second while it has actions: asks whether it lives, ends it when it does not, ends actions over their time. */
  beat(): void {
    const now = this.#options.clock.now();
    if (this.#beatAt !== null && now - this.#beatAt >= BEAT_ANSWER_MS_MAX) {
      this.#stuck = true;
      return this.kill();
    }
    if (this.#beatAt === null) {
      this.#beatAt = now;
      this.#options.isolate.send({ type: "Beat" });
    }
    for (const [call, { action, startedAt }] of this.#running) {
      if (now - startedAt < functionLimits.actionTimeoutMs) continue;
      // It cannot be stopped alone: its caller gets the error, the runner gets no more actions and ends with the others.
      this.#running.delete(call);
      action.left?.();
      this.retired = true;
      action.resolve(tookTooLong("action", functionLimits.actionTimeoutMs));
      this.#options.onDone(this);
    }
  }

  async close(): Promise<void> {
    await this.#options.isolate.close();
  }

  kill(): void {
    this.#gone = true;
    this.#options.isolate.kill();
  }

  /** Its body begins to leave at once, so it has begun. */
  #begin(name: { readonly call: number; readonly order: number }, exchange: RouteExchange): void {
    const running = this.#running.get(name.call);
    if (running !== undefined) running.called = true;
    exchange.begin(this.#options.isolate, name);
  }

  #onFrame({ message, segments, bytes }: IsolateFrame): void {
    switch (message.type) {
      case "Beat":
        this.#beatAt = null;
        return;
      case "ActionDone":
        return this.#onDone(message.call, message.outcome, segments);
      case "SubCall":
        return this.#onSubCall(message);
      case "Bytes":
      case "BodyTaken":
      case "BodyUnwanted":
      case "ResponseHead":
        // Of one that was over its time nobody wants to hear any more.
        return this.#running.get(message.call)?.action.exchange?.receive(message, bytes);
      default:
        throw new TypeError(`A runner does not send ${message.type}`);
    }
  }

  #onDone(call: number, wire: WireOutcome, segments: readonly string[]): void {
    const outcome = fromWire(wire, segments);
    const running = this.#running.get(call);
    // One that was over its time has been answered already.
    if (running === undefined) return;
    this.#running.delete(call);
    running.action.left?.();
    if (this.load === 0) this.idleSince = this.#options.clock.now();
    running.action.resolve(outcome);
    this.#options.onDone(this);
  }

  #onSubCall(sub: SubCall): void {
    const running = this.#running.get(sub.call);
    if (running === undefined) return;
    running.called = true;
    if (this.#gone) return;
    this.#options.serve(sub, running.action).then((outcome) => {
      const { wire, segments } = toWire(outcome);
      this.#options.isolate.send(
        { type: "SubAnswer", call: sub.call, sub: sub.sub, outcome: wire },
        segments,
      );
    });
  }

  /** Actions the isolate never came to run again elsewhere; the others cannot, nobody knows what they did. */
  #onEnded(death: Death): void {
    this.#gone = true;
    const entered = death.progress?.position ?? 0;
    const detail = this.#stuck ? `busy for ${BEAT_ANSWER_MS_MAX / 1000} s without a pause` : death.detail;
    const unbegun: PendingAction[] = [];
    for (const { action, order, called } of this.#running.values()) {
      action.left?.();
      if (order > entered && !called && ++action.runnersLost < RUNNERS_LOST_MAX) unbegun.push(action);
      else action.resolve(endedIsolate("action, or another one beside it,", detail));
    }
    this.#running.clear();
    this.#options.onEnded(this, death, unbegun);
  }
}

/** A whole number of 53 random bits. */
function unguessable(): number {
  const [bits = 0n] = crypto.getRandomValues(new BigUint64Array(1));
  return Number(bits >> 11n);
}
