/**
 * The mutations and actions that are not done yet, in the order they were called. Pure: what to send is handed out.
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
 * While no socket can be had, calls go over HTTP, where the server recognises a mutation as well.
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

/** A call to be put on the wire. */
export interface Call {
  readonly kind: "mutation" | "action";
  /** Unique in the session, rising; a mutation keeps it when it is sent again. */
  readonly requestId: number;
  readonly udfPath: string;
  readonly args: JsonObject;
  /** When it was called, in milliseconds. */
  readonly calledAt: number;
}

interface PendingCall extends Call {
  /** When it was first sent, in milliseconds. */
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

/** A mutation whose writes are shown, or about to be; `resolve` tells the caller. */
export interface VisibleMutation {
  readonly requestId: number;
  readonly resolve: () => void;
}

export class Requests {
  /** Not on the wire, by rising requestId. Filled by calls and by lost sockets, emptied by takeSendable. */
  #waiting = new Map<number, PendingCall>();
  /** On the wire, in order. */
  readonly #sent = new Map<number, PendingCall>();
  /** Under way over HTTP: one mutation at most, and some actions. */
  readonly #overHttp = new Map<number, PendingCall>();
  /** Committed, but their writes are not visible in the local results yet. */
  readonly #answered = new Map<number, AnsweredMutation>();
  /** Actions without an answer, wherever they are. */
  #actions = 0;
  #nextId = 0;

  /** Adds a call. Throws `RangeError` when too many are unanswered. */
  add(call: Omit<Call, "requestId">): { requestId: number; result: Promise<unknown> } {
    if (this.#unanswered >= clientLimits.unansweredCallsMax) {
      throw new RangeError(
        `Cannot call ${call.udfPath}: ${clientLimits.unansweredCallsMax} calls have no answer yet`,
      );
    }
    const requestId = this.#nextId++;
    if (call.kind === "action") this.#actions++;
    const { promise, resolve, reject } = deferred();
    this.#waiting.set(requestId, { ...call, requestId, sentAt: null, resolve, reject });
    return { requestId, result: promise };
  }

  /** Takes back a call that has not been sent; its promise stays unsettled. */
  withdraw(requestId: number): void {
    const call = this.#waiting.get(requestId);
    if (call === undefined) return;
    this.#waiting.delete(requestId);
    if (call.kind === "action") this.#actions--;
  }

  /** Function path of a call on the wire. */
  pathOf(requestId: number): string | undefined {
    return this.#sent.get(requestId)?.udfPath;
  }

  /** Moves calls to the wire as far as there is room there, and returns them in the order to send them. */
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

  /** The socket is gone: actions on the wire fail, mutations on the wire will be sent again before all others. */
  connectionLost(): void {
    const lost = [...this.#sent.values()].filter((call) => call.kind === "action");
    for (const { requestId } of lost) this.#sent.delete(requestId);
    this.#waiting = new Map([...this.#sent, ...this.#waiting].sort(([a], [b]) => a - b));
    this.#sent.clear();
    this.#actions -= lost.length;
    for (const call of lost) call.reject(new ConnectionLostError("action"));
  }

  /** Moves calls to HTTP as far as there is room: the first mutation when none is under way, and actions. */
  takeForHttp(now: number): Call[] {
    const actionsOut = [...this.#overHttp.values(), ...this.#sent.values()]
      .filter(({ kind }) => kind === "action").length;
    // No more than there are, so that nobody looks through all mutations for one.
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

  /** Takes a call back that has no answer over HTTP: it waits again, before all that were made after it. */
  returnFromHttp(requestId: number): void {
    const call = this.#overHttp.get(requestId);
    if (call === undefined) return;
    this.#overHttp.delete(requestId);
    this.#waiting = new Map([...this.#waiting, [requestId, call] as const].sort(([a], [b]) => a - b));
  }

  /**
   * Takes the answer to a call over HTTP. A committed mutation waits for {@linkcode takeVisible}; all else settles. Returns
   * whether an optimistic update of the call has to go.
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

  /** Rejects the mutations that were sent before `sentBefore` and wait again. Returns their ids. */
  giveUpSent(sentBefore: number): number[] {
    const lost = [...this.#waiting.values()].filter(({ sentAt }) => sentAt !== null && sentAt < sentBefore);
    for (const call of lost) {
      this.#waiting.delete(call.requestId);
      call.reject(new ConnectionLostError("mutation"));
    }
    return lost.map(({ requestId }) => requestId);
  }

  /** The newest ts of a mutation that is committed and not visible yet; -1 when there is none. */
  get newestAnsweredTs(): number {
    let newest = -1;
    for (const { ts } of this.#answered.values()) newest = Math.max(newest, ts);
    return newest;
  }

  /**
   * Takes a mutation's answer. A failure rejects at once; a success waits for {@linkcode takeVisible}.
   * An answer to anything but a mutation on the wire is `unknown` and changes nothing.
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

  /** Takes an action's answer and settles it. */
  actionAnswered(response: ActionResponse): void {
    const call = this.#takeSent(response.requestId, "action");
    if (call === undefined) return;
    if (response.success) call.resolve(response.result);
    else call.reject(failure(call, response));
  }

  /**
   * Takes out the committed mutations whose writes the local results show when they are at `visibleTs`. The caller
   * shows the results first and then calls `resolve`.
   */
  takeVisible(visibleTs: number): VisibleMutation[] {
    return this.#takeAnswered(({ ts }) => ts <= visibleTs);
  }

  /** Takes out the mutations that committed over HTTP; the caller goes on as with {@linkcode takeVisible}. */
  takeAnsweredOverHttp(): VisibleMutation[] {
    return this.#takeAnswered(({ overHttp }) => overHttp);
  }

  /** Rejects everything. */
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

  /** Calls without an answer, and when the oldest of them was made. */
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

  /** Mutations run in the order they were called, also when a socket opens while one is under way over HTTP. */
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
