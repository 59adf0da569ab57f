/**
 * The calls of one socket. Its mutations enter one queue in the order received, so that they commit in that order; actions run
 * concurrently. Each response is sent when its call ends. After a failure that may still be committed, the socket closes instead.
 */
import type { RequestSpans } from "../../functions/call_trace.ts";
import type { FunctionHost, MutationCall } from "../../functions/host_port.ts";
import { type CallError, isDiskFullFailure, isOutcomeUnknown } from "../../functions/outcome.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import { socketLimits } from "../../limits.ts";
import type { Action, Mutation } from "../../protocol/client_messages.ts";
import { refuseKey } from "../../functions/key_scope.ts";
import { refuseCall } from "../refuse_call.ts";
import type { FrameQueue } from "./inbound_frames.ts";
import type { RequestedState } from "./requested_state.ts";
import { closeCodes } from "./socket.ts";
import { actionResponseFrame, mutationResponseFrame } from "./transition_frame.ts";

export interface CallContext {
  readonly host: FunctionHost;
  readonly clock: Clock;
  readonly dev: boolean;
  readonly spans?: RequestSpans;
}

interface CallingSocket {
  readonly isOpen: boolean;
  readonly requested: RequestedState;
  /** Sends a response. `ts`: a commit that the next Transition has to include. */
  respond(frame: string, ts: number | null): void;
  /** Called when a call has ended. Messages that waited for it may be handled. */
  serve(): void;
  close(code: number, reason: string): void;
}

export class SocketCalls {
  /** Mutations and actions in flight. */
  inFlight = 0;
  mutationsInFlight = 0;
  readonly #context: CallContext;
  readonly #socket: CallingSocket;
  readonly #frames: FrameQueue;
  readonly #openedAt: number;
  /** Fair-queue key of its mutations. Unchanged while any is in flight, so that later ones do not overtake. */
  #queueKey = "";
  /** Timer that closes the socket after a mutation with an unknown outcome. */
  #unsettled: Timer | null = null;

  /** A call releases the memory of its frame in `frames` when it ends. */
  constructor(context: CallContext, { socket, frames }: {
    readonly socket: CallingSocket;
    readonly frames: FrameQueue;
  }) {
    this.#context = context;
    this.#socket = socket;
    this.#frames = frames;
    this.#openedAt = context.clock.now();
  }

  /** `chars` stay reserved until the call ends. Never rejects. */
  async mutate({ requestId, udfPath, args }: Mutation, chars: number): Promise<void> {
    const { host, dev, spans } = this.#context;
    const { requested } = this.#socket;
    const { identity, client: { sessionId } } = requested;
    const span = spans?.start("socket mutation");
    const { queueKey, blame } = requested.callerOf(identity);
    if (this.mutationsInFlight === 0) this.#queueKey = queueKey;
    const whose = {
      identity,
      origin: "client",
      caller: { queueKey: this.#queueKey, blame },
      ...(span && { trace: span.trace }),
    } as const;
    const refusal = refuseCall({ udfPath, args }) ?? refuseKey(identity, "mutation", udfPath);
    const call: MutationCall = refusal?.ok === false
      // Omits path and arguments, which may be what is too large.
      ? { udfPath: "", args: {}, ...whose, failedWith: refusal.error }
      : { udfPath, args, ...whose };
    this.inFlight++;
    this.mutationsInFlight++;
    const answer = await host.mutate(
      sessionId === null ? call : { ...call, replay: { sessionId, requestId } },
    );
    this.mutationsInFlight--;
    span?.end(null);
    const { outcome, ts } = answer;
    if (this.#socket.isOpen && !outcome.ok && this.isUnsettled(outcome.error)) {
      this.#closeUnsettled(outcome.error);
    } else if (this.#socket.isOpen) {
      const { errorIds } = requested.client;
      const frame = mutationResponseFrame(requestId, { answer, dev, errorIds });
      this.#socket.respond(frame, outcome.ok ? ts : null);
    }
    this.#callEnded(chars);
  }

  /** `chars` stay reserved until the call ends. Never rejects. */
  async act({ requestId, udfPath, args }: Action, chars: number): Promise<void> {
    const { host, dev, spans } = this.#context;
    const { requested } = this.#socket;
    const { identity } = requested;
    const span = spans?.start("socket action");
    const whose = { identity, origin: "client", caller: requested.callerOf(identity) } as const;
    this.inFlight++;
    const outcome = refuseCall({ udfPath, args }) ?? refuseKey(identity, "action", udfPath) ??
      await host.act({ udfPath, args, ...whose, ...(span && { trace: span.trace }) });
    span?.end(null);
    if (this.#socket.isOpen) {
      const { errorIds } = requested.client;
      this.#socket.respond(actionResponseFrame(requestId, { outcome, dev, errorIds }), null);
    }
    this.#callEnded(chars);
  }

  /** Whether a failed mutation may still be committed, directly or by an earlier copy. Clients take failures as rollbacks. */
  isUnsettled(error: CallError): boolean {
    const { mayResend } = this.#socket.requested.client;
    return isOutcomeUnknown(error) || (mayResend && error.retryable === true && !isDiskFullFailure(error));
  }

  /** The socket has ended. */
  end(): void {
    this.#unsettled?.cancel();
  }

  #callEnded(chars: number): void {
    this.inFlight--;
    this.#frames.release(chars);
    this.#socket.serve();
  }

  /**
   * Withholds the response and closes the socket, at the earliest `unsettledCloseMs` after it opened. The client then resends
   * unsettled mutations on a new socket. The first reason wins. Messages are served until then.
   */
  #closeUnsettled(error: CallError): void {
    const isOverload = !isOutcomeUnknown(error) && error.data?.code !== "unavailable";
    const [code, reason] = isOverload
      ? [closeCodes.overloaded, "overloaded"] as const
      : [closeCodes.restart, "outcome unknown"] as const;
    const { clock } = this.#context;
    const closeAt = this.#openedAt + socketLimits.unsettledCloseMs;
    this.#unsettled ??= clock.after(
      Math.max(0, closeAt - clock.now()),
      () => this.#socket.close(code, reason),
    );
  }
}
