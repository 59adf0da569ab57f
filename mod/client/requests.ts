/**
 * The mutations and actions that are not done yet, in the order they were called. Pure: what to send is handed out.
 *
 * ```text
 *   mutation:  waiting ──sent──▶ sent ──success──▶ answered ──its ts is visible──▶ resolved
 *                 ▲               │ └──failure──▶ rejected
 *                 └──socket lost──┘
 *   action:    waiting ──sent──▶ sent ──▶ resolved or rejected
 *                                  └──socket lost──▶ rejected
 * ```
 */
import type { ActionResponse, MutationResponse } from "../protocol/server_messages.ts";
import { ConnectionLostError, FunctionError } from "./errors.ts";
import type { JsonObject } from "./json_args.ts";
import { clientLimits } from "./limits.ts";

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
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface AnsweredMutation {
  readonly call: PendingCall;
  readonly result: unknown;
  readonly ts: number;
}

export class Requests {
  /** Not on the wire, by rising requestId. Filled by calls and by lost sockets, emptied by takeSendable. */
  #waiting = new Map<number, PendingCall>();
  /** On the wire, in order. */
  readonly #sent = new Map<number, PendingCall>();
  /** Committed, but their writes are not visible in the local results yet. */
  readonly #answered = new Map<number, AnsweredMutation>();
  /** Actions without an answer, among `#waiting` and `#sent`. */
  #actions = 0;
  #nextId = 0;

  /** Adds a call. Throws `RangeError` when too many are unanswered. */
  add(call: Omit<Call, "requestId">): { requestId: number; result: Promise<unknown> } {
    if (this.#waiting.size + this.#sent.size >= clientLimits.unansweredCallsMax) {
      throw new RangeError(
        `Cannot call ${call.udfPath}: ${clientLimits.unansweredCallsMax} calls have no answer yet`,
      );
    }
    const requestId = this.#nextId++;
    if (call.kind === "action") this.#actions++;
    const { promise, resolve, reject } = deferred();
    this.#waiting.set(requestId, { ...call, requestId, resolve, reject });
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
  takeSendable(): Call[] {
    let room = clientLimits.callsInFlightMax - this.#sent.size;
    if (room <= 0 || this.#waiting.size === 0) return [];
    let actionRoom = clientLimits.actionsInFlightMax;
    for (const { kind } of this.#sent.values()) if (kind === "action") actionRoom--;
    const sendable: Call[] = [];
    for (const [requestId, call] of this.#waiting) {
      if (room === 0) break;
      if (call.kind === "action" && actionRoom-- <= 0) continue;
      room--;
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
    for (const call of lost) call.reject(new ConnectionLostError());
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
    this.#answered.set(call.requestId, { call, result: response.result, ts: response.ts });
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
  takeVisible(visibleTs: number): { requestId: number; resolve: () => void }[] {
    const visible: { requestId: number; resolve: () => void }[] = [];
    for (const [requestId, { call, result, ts }] of this.#answered) {
      if (ts > visibleTs) continue;
      this.#answered.delete(requestId);
      visible.push({ requestId, resolve: () => call.resolve(result) });
    }
    return visible;
  }

  /** Rejects everything. */
  closeAll(error: Error): void {
    const calls = [...this.#sent.values(), ...this.#waiting.values()];
    for (const { call } of this.#answered.values()) calls.push(call);
    this.#sent.clear();
    this.#waiting.clear();
    this.#answered.clear();
    this.#actions = 0;
    for (const call of calls) call.reject(error);
  }

  /** Calls without an answer, and when the oldest of them was made. */
  summary(): { mutations: number; actions: number; oldestCalledAt: number | null } {
    let oldest = this.#waiting.values().next().value?.calledAt ?? null;
    for (const { calledAt } of this.#sent.values()) {
      if (oldest === null || calledAt < oldest) oldest = calledAt;
    }
    const total = this.#sent.size + this.#waiting.size;
    return { mutations: total - this.#actions, actions: this.#actions, oldestCalledAt: oldest };
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

function failure(call: Call, { errorMessage, errorData, logLines }: Failure): FunctionError {
  return new FunctionError(errorMessage, { udfPath: call.udfPath, errorData, logLines });
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
