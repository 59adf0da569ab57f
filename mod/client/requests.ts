/**
 * Unfinished mutations and actions in call order. Pure: returns what to send.
 *
 * ```text
 *   mutation:  waiting ──sent──▶ sent ──success──▶ answered ──its ts is visible──▶ resolved
 *                 ▲               │ └──failure──▶ rejected
 *                 └──socket lost──┘
 *                  after 9 minutes: rejected
 *   action:    waiting ──sent──▶ sent ──▶ resolved or rejected
 *                                  └──socket lost──▶ rejected
 * ```
 *
 * Without a socket, calls are sent over HTTP, where the server also deduplicates mutations.
 *
 * ```text
 *   mutation:  waiting ──one at a time, in order──▶ over HTTP ──success──▶ answered ──▶ resolved
 *                 ▲                                  │ └──failure──▶ rejected
 *                 └──no answer, or token refused─────┘
 * ```
 */
import type { ActionResponse, MutationResponse } from "../protocol/server_messages.ts";
import { ConnectionLostError, FunctionError } from "./errors.ts";
import type { JsonObject } from "./json_args.ts";
import * as clientLimits from "./limits.ts";

/** A call to send. */
export interface Call {
  readonly kind: "mutation" | "action";
  /** Unique in the session and increasing; kept when a mutation is resent. */
  readonly requestId: number;
  readonly udfPath: string;
  readonly args: JsonObject;
  /** Time of the call in milliseconds. */
  readonly calledAt: number;
}

interface PendingCall extends Call {
  /** Time of the first send in milliseconds. */
  sentAt: number | null;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface AnsweredMutation {
  readonly call: PendingCall;
  readonly result: unknown;
  readonly ts: number;
  readonly overHttp: boolean;
}

/** A mutation whose writes are visible, or about to be. `resolve` settles the caller's promise. */
export interface VisibleMutation {
  readonly requestId: number;
  readonly resolve: () => void;
}

export class Requests {
  /** Queued calls by increasing requestId. Filled by calls and lost sockets, emptied by takeSendable. */
  #waiting = new Map<number, PendingCall>();
  /** Calls in flight on the socket, in order. */
  readonly #sent = new Map<number, PendingCall>();
  /** Calls in flight over HTTP: at most one mutation, and some actions. */
  readonly #overHttp = new Map<number, PendingCall>();
  /** Committed mutations whose writes are not visible in the local results yet. */
  readonly #answered = new Map<number, AnsweredMutation>();
  /** Actions without a response. */
  #actions = 0;
  #nextId = 0;

  /** Adds a call. Throws `RangeError` if too many have no response. */
  add(call: Omit<Call, "requestId">): { requestId: number; result: Promise<unknown> } {
    if (this.#unanswered >= clientLimits.unansweredCallsMax) {
      throw new RangeError(
        `Cannot call ${call.udfPath}: ${clientLimits.unansweredCallsMax} calls have no response yet`,
      );
    }
    const requestId = this.#nextId++;
    if (call.kind === "action") this.#actions++;
    const { promise, resolve, reject } = deferred();
    this.#waiting.set(requestId, { ...call, requestId, sentAt: null, resolve, reject });
    return { requestId, result: promise };
  }

  /** Removes a call that has not been sent; its promise stays unsettled. */
  withdraw(requestId: number): void {
    const call = this.#waiting.get(requestId);
    if (call === undefined) return;
    this.#waiting.delete(requestId);
    if (call.kind === "action") this.#actions--;
  }

  /** Returns the function path of a call in flight. */
  pathOf(requestId: number): string | undefined {
    return this.#sent.get(requestId)?.udfPath;
  }

  /** Moves queued calls to the socket, up to the limits, and returns them in order. */
  takeSendable(now: number): Call[] {
    let room = clientLimits.callsInFlightMax - this.#sent.size;
    if (room <= 0 || this.#waiting.size === 0) return [];
    let actionRoom = clientLimits.actionsInFlightMax;
    for (const { kind } of this.#sent.values()) if (kind === "action") actionRoom--;
    const mutationsWait = this.#mutatesOverHttp;
    const sendable: Call[] = [];
    for (const [requestId, call] of this.#waiting) {
      if (room === 0) break;
      if (call.kind === "action" ? actionRoom-- <= 0 : mutationsWait) continue;
      room--;
      call.sentAt ??= now;
      this.#waiting.delete(requestId);
      this.#sent.set(requestId, call);
      sendable.push(call);
    }
    return sendable;
  }

  /** The socket is gone: actions in flight fail, mutations in flight are resent first. */
  connectionLost(): void {
    const lost = [...this.#sent.values()].filter((call) => call.kind === "action");
    for (const { requestId } of lost) this.#sent.delete(requestId);
    this.#waiting = new Map([...this.#sent, ...this.#waiting].sort(([a], [b]) => a - b));
    this.#sent.clear();
    this.#actions -= lost.length;
    for (const call of lost) call.reject(new ConnectionLostError("action"));
  }

  /** Moves queued calls to HTTP, up to the limits: the first mutation if none is in flight, and actions. */
  takeForHttp(now: number): Call[] {
    const actionsOut = [...this.#overHttp.values(), ...this.#sent.values()]
      .filter(({ kind }) => kind === "action").length;
    // Stop early instead of searching all mutations for an action.
    let actionRoom = Math.min(clientLimits.actionsOverHttpMax, this.#actions) - actionsOut;
    let mutationRoom = this.#mutatesOverHttp ? 0 : 1;
    const calls: Call[] = [];
    for (const [requestId, call] of this.#waiting) {
      if (actionRoom <= 0 && mutationRoom <= 0) break;
      if (call.kind === "action" ? actionRoom-- <= 0 : mutationRoom-- <= 0) continue;
      call.sentAt ??= now;
      this.#waiting.delete(requestId);
      this.#overHttp.set(requestId, call);
      calls.push(call);
    }
    return calls;
  }

  /** Queues a call without a response over HTTP again, before all later calls. */
  returnFromHttp(requestId: number): void {
    const call = this.#overHttp.get(requestId);
    if (call === undefined) return;
    this.#overHttp.delete(requestId);
    this.#waiting = new Map([...this.#waiting, [requestId, call] as const].sort(([a], [b]) => a - b));
  }

  /**
   * Handles the response to a call over HTTP. A committed mutation waits for {@linkcode takeVisible}; others settle. Returns
   * whether an optimistic update must be dropped.
   */
  answeredOverHttp(requestId: number, answer: { value: unknown; ts: number } | Error): boolean {
    const call = this.#overHttp.get(requestId);
    if (call === undefined) return false;
    this.#overHttp.delete(requestId);
    if (call.kind === "action") this.#actions--;
    if (answer instanceof Error) call.reject(answer);
    else if (call.kind === "action") call.resolve(answer.value);
    else this.#answered.set(requestId, { call, result: answer.value, ts: answer.ts, overHttp: true });
    return answer instanceof Error;
  }

  /** Rejects queued mutations that were sent before `sentBefore`. Returns their ids. */
  rejectSent(sentBefore: number): number[] {
    const lost = [...this.#waiting.values()].filter(({ sentAt }) => sentAt !== null && sentAt < sentBefore);
    for (const call of lost) {
      this.#waiting.delete(call.requestId);
      call.reject(new ConnectionLostError("mutation"));
    }
    return lost.map(({ requestId }) => requestId);
  }

  /** The highest ts of a committed mutation that is not visible yet; -1 if there is none. */
  get newestAnsweredTs(): number {
    let newest = -1;
    for (const { ts } of this.#answered.values()) newest = Math.max(newest, ts);
    return newest;
  }

  /**
   * Handles the response to a mutation. A failure rejects immediately; a success waits for {@linkcode takeVisible}. A response to
   * anything but a mutation in flight is `unknown` and ignored.
   */
  mutationAnswered(response: MutationResponse): "unknown" | "failed" | "committed" {
    const call = this.#takeSent(response.requestId, "mutation");
    if (call === undefined) return "unknown";
    if (!response.success) {
      call.reject(failure(call, response));
      return "failed";
    }
    this.#answered.set(call.requestId, { call, result: response.result, ts: response.ts, overHttp: false });
    return "committed";
  }

  /** Handles the response to an action and settles it. */
  actionAnswered(response: ActionResponse): void {
    const call = this.#takeSent(response.requestId, "action");
    if (call === undefined) return;
    if (response.success) call.resolve(response.result);
    else call.reject(failure(call, response));
  }

  /**
   * Removes and returns the committed mutations that are visible at `visibleTs`. The caller shows the results first and then
   * calls `resolve`.
   */
  takeVisible(visibleTs: number): VisibleMutation[] {
    return this.#takeAnswered(({ ts }) => ts <= visibleTs);
  }

  /** Removes and returns the mutations committed over HTTP; the caller continues as with {@linkcode takeVisible}. */
  takeAnsweredOverHttp(): VisibleMutation[] {
    return this.#takeAnswered(({ overHttp }) => overHttp);
  }

  /** Rejects all calls. */
  closeAll(error: Error): void {
    const calls = [...this.#sent.values(), ...this.#overHttp.values(), ...this.#waiting.values()];
    for (const { call } of this.#answered.values()) calls.push(call);
    this.#sent.clear();
    this.#overHttp.clear();
    this.#waiting.clear();
    this.#answered.clear();
    this.#actions = 0;
    for (const call of calls) call.reject(error);
  }

  /** Returns the number of calls without a response, and the time of the oldest. */
  summary(): { mutations: number; actions: number; oldestCalledAt: number | null } {
    let oldest = this.#waiting.values().next().value?.calledAt ?? null;
    for (const calls of [this.#sent, this.#overHttp]) {
      for (const { calledAt } of calls.values()) {
        if (oldest === null || calledAt < oldest) oldest = calledAt;
      }
    }
    return { mutations: this.#unanswered - this.#actions, actions: this.#actions, oldestCalledAt: oldest };
  }

  get #unanswered(): number {
    return this.#sent.size + this.#overHttp.size + this.#waiting.size;
  }

  /** Mutations run in call order, even if a socket opens while one is in flight over HTTP. */
  get #mutatesOverHttp(): boolean {
    for (const { kind } of this.#overHttp.values()) if (kind === "mutation") return true;
    return false;
  }

  #takeAnswered(isTaken: (answered: AnsweredMutation) => boolean): VisibleMutation[] {
    const taken: VisibleMutation[] = [];
    for (const [requestId, answered] of this.#answered) {
      if (!isTaken(answered)) continue;
      this.#answered.delete(requestId);
      const { call, result } = answered;
      taken.push({ requestId, resolve: () => call.resolve(result) });
    }
    return taken;
  }

  #takeSent(requestId: number, kind: Call["kind"]): PendingCall | undefined {
    const call = this.#sent.get(requestId);
    if (call === undefined || call.kind !== kind) return undefined;
    this.#sent.delete(requestId);
    if (kind === "action") this.#actions--;
    return call;
  }
}

type Failure =
  | Extract<MutationResponse, { success: false }>
  | Extract<ActionResponse, { success: false }>;

function failure({ udfPath }: Call, failed: Failure): FunctionError {
  return new FunctionError(failed.errorMessage, { ...failed, udfPath });
}

function deferred() {
  let resolve: (result: unknown) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<unknown>((onResult, onError) => {
    resolve = onResult;
    reject = onError;
  });
  return { promise, resolve, reject };
}
