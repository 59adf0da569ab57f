/** One action runner: its actions, their calls, and liveness checks. */
import { functionLimits } from "../../../limits.ts";
import type { FunctionCall } from "../../host_port.ts";
import type { Outcome } from "../../outcome.ts";
import type { RunAction, SubCall, WireOutcome } from "../../wire/messages.ts";
import type { Clock } from "../../../kit/clock.ts";
import type { Death, Isolate, IsolateFrame } from "../process/isolate.ts";
import type { RouteExchange } from "./route_exchange.ts";
import { endedIsolate, fromWire, tookTooLong, toWire } from "../outcomes.ts";

/** Interval of heartbeats to a busy runner. */
export const HEARTBEAT_MS = 1_000;
/**
 * A busy runner that has not answered for this number of heartbeats is stuck. Heartbeats are counted rather than timed, so a
 * pause of main, such as on a suspended machine, counts as one.
 */
const MISSED_HEARTBEATS_MAX = 10;

/** Runners that may be lost before an action has started, until it is given up. */
const RUNNERS_LOST_MAX = 3;

/** A call from outside and the actions it caused. */
export interface CallTree {
  /** Actions started so far. */
  descendants: number;
  /** Actions still running. */
  inFlight: number;
  ended: boolean;
}

export interface PendingAction {
  readonly call: FunctionCall;
  readonly tree: CallTree;
  /** Nesting depth of `runAction`. 0 for a call from outside. */
  readonly depth: number;
  /** The runner of the calling action. `null` for a call from outside. */
  readonly by: Pick<Runner, "gone"> | null;
  readonly resolve: (outcome: Outcome) => void;
  /** Resolves with the outcome. */
  readonly ended: Promise<unknown>;
  /** The route request to handle instead of an action. */
  readonly exchange?: RouteExchange;
  left?: () => void;
  /** Runners lost before it started. Counted by the runner. */
  runnersLost: number;
  /** When it was assigned. Set by the runner. */
  begunAt: number | null;
  /** Hash of the version of its runner. Set by the runner. */
  version?: string | null;
}

/** An action assigned to a runner. */
interface Running {
  /** Number of actions assigned to the runner so far, including this one. */
  readonly order: number;
  readonly action: PendingAction;
  readonly startedAt: number;
  /** Whether it has called back. Then it has started and must not run again. */
  called: boolean;
}

export interface RunnerOptions {
  readonly isolate: Isolate;
  readonly clock: Clock;
  /** Hash of the version that the isolate loaded. */
  readonly version: string | null;
  /** Runs a call of an action. Never rejects. */
  readonly serve: (sub: SubCall, action: PendingAction) => Promise<Outcome>;
  /** Called when an action has ended. */
  readonly onDone: (runner: Runner) => void;
  /** Called once when the isolate has ended, with the actions that had not started. */
  readonly onEnded: (runner: Runner, death: Death, unbegun: PendingAction[]) => void;
  /** Creates action ids. Random by default. */
  readonly newCall?: (() => number) | undefined;
}

export class Runner {
  readonly #options: RunnerOptions;
  readonly #running = new Map<number, Running>();
  readonly #newCall: () => number;
  /** Actions assigned so far. */
  #given = 0;
  /** Heartbeats since the last answer. */
  #missedHeartbeats = 0;
  /** Set when it is ended for not answering a heartbeat. */
  #stuck = false;
  /** When it last became idle. */
  idleSince: number;
  /** It gets no more actions and ends with its last one. */
  draining = false;
  /** Set when it is killed or has ended. Calls that still arrive are not started. */
  #gone = false;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#newCall = options.newCall ?? unguessable;
    this.idleSince = options.clock.now();
    options.isolate.receive((frame) => this.#onFrame(frame));
    options.isolate.ended.then((death) => this.#onEnded(death));
  }

  /** Assigned actions. */
  get load(): number {
    return this.#running.size;
  }

  /** Whether no calls of its actions are pending. */
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
    action.version = this.#options.version;
    this.#running.set(call, { action, order, startedAt, called: false });
    if (action.exchange !== undefined) return this.#begin({ call, order }, action.exchange);
    const { udfPath, args, identity, origin } = action.call;
    const message: RunAction = { type: "RunAction", call, order, udfPath, args, identity, origin };
    this.#options.isolate.send(message);
  }

  /** Called at each heartbeat while busy: sends it, and ends the runner or actions on timeouts. */
  checkTimeouts(): void {
    const now = this.#options.clock.now();
    if (this.#missedHeartbeats === MISSED_HEARTBEATS_MAX) {
      this.#stuck = true;
      return this.kill();
    }
    // It answers the first one when it can.
    if (this.#missedHeartbeats++ === 0) this.#options.isolate.send({ type: "KeepAlive" });
    for (const [call, { action, startedAt }] of this.#running) {
      if (now - startedAt < functionLimits.actionTimeoutMs) continue;
      // One action cannot be stopped alone. It is answered with an error, and the runner ends after its other actions.
      this.#running.delete(call);
      action.left?.();
      this.draining = true;
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

  /** The body is sent immediately, so the request has started. */
  #begin(name: { readonly call: number; readonly order: number }, exchange: RouteExchange): void {
    const running = this.#running.get(name.call);
    if (running !== undefined) running.called = true;
    exchange.begin(this.#options.isolate, name);
  }

  #onFrame({ message, segments, bytes }: IsolateFrame): void {
    switch (message.type) {
      case "KeepAlive":
        this.#missedHeartbeats = 0;
        return;
      case "ActionDone":
        return this.#onDone(message.call, message.outcome, segments);
      case "SubCall":
        return this.#onSubCall(message);
      case "Bytes":
      case "BodyCredit":
      case "BodyCanceled":
      case "ResponseHead":
        // Ignored for an action that timed out.
        return this.#running.get(message.call)?.action.exchange?.receive(message, bytes);
      default:
        throw new TypeError(`A runner does not send ${message.type}`);
    }
  }

  #onDone(call: number, wire: WireOutcome, segments: readonly string[]): void {
    const outcome = fromWire(wire, segments);
    const running = this.#running.get(call);
    // Already answered after a timeout.
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

  /** Actions that had not started run again elsewhere. Others cannot, because their effects are unknown. */
  #onEnded(death: Death): void {
    this.#gone = true;
    const entered = death.progress?.position ?? 0;
    const detail = this.#stuck
      ? `busy for ${MISSED_HEARTBEATS_MAX * HEARTBEAT_MS / 1000} s without a pause`
      : death.detail;
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

/** A random 53-bit integer. */
function unguessable(): number {
  const [bits = 0n] = crypto.getRandomValues(new BigUint64Array(1));
  return Number(bits >> 11n);
}
