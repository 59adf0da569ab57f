/**
 * One WebSocket of a sync client, created by the hub. Starts its messages in the order received. Its mutations also commit in
 * that order. Actions run concurrently, and each response is sent when its call completes. A Pong in its usual spelling is
 * handled at once. Calls beyond the limit in flight wait. Too many queued frames or unread responses close the socket.
 */
import type { Caller, FunctionHost, MutationCall } from "../../functions/host_port.ts";
import { anonymous, type Identity } from "../../functions/identity.ts";
import { type CallError, isOutcomeUnknown } from "../../functions/outcome.ts";
import { socketLimits } from "../../limits.ts";
import type {
  Action,
  Authenticate,
  ClientMessage,
  ModifyQuerySet,
  Mutation,
} from "../../protocol/client_messages.ts";
import {
  type Authenticator,
  type AuthErrorText,
  callerOf,
  concerns,
  guestInSession,
  type SessionEnd,
} from "../authenticator.ts";
import { type Channel, closeCodes, type SocketHandle } from "./socket.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import { actionResponseFrame, type FrameMemo, mutationResponseFrame } from "./transition_frame.ts";
import { FrameQueue, type InboundQuota } from "./inbound_frames.ts";
import { SocketHeartbeat } from "./heartbeat.ts";
import { refuseCall } from "../refuse_call.ts";
import type { SharedQueries } from "../queries/shared_queries.ts";
import type { Subscriber, View } from "../queries/shared_query.ts";
import { SocketState } from "./socket_state.ts";
import { Transitions } from "./transitions.ts";
import type { OutboundAccount, OutboundQuota } from "./outbound_quota.ts";

export interface ConnectionPort {
  readonly host: FunctionHost;
  readonly authenticator: Authenticator;
  readonly shared: SharedQueries;
  readonly memo: FrameMemo;
  readonly clock: Clock;
  readonly dev: boolean;
  /** Requests a call of `advance` soon. */
  needsAdvance(connection: SyncConnection): void;
  /** Reports that the client reads too slowly. The hub polls until the buffer has drained. */
  slow(connection: SyncConnection): void;
  deadlinesChanged(connection: SyncConnection): void;
  identityChanged(connection: SyncConnection, before: Identity): void;
  /** While active, the hub forwards every session end to the connection. */
  verifying(connection: SyncConnection, active: boolean): void;
  transitionSent(): void;
  /** Removes the connection. The socket is aborted if it is still open after `closeMs`. */
  ended(connection: SyncConnection, closeMs: number): void;
  /** Reports that the socket is closed, after `ended`. */
  closed(connection: SyncConnection): void;
  readonly outbound: OutboundQuota;
  readonly inbound: InboundQuota;
}

// `closeHostileMs`: close timeout for a hostile or non-reading client.
const { closeHostileMs, frameSendMs, silenceMs } = socketLimits;
const PONG = '{"type":"Pong"}';
const PING = '{"type":"Ping"}';

export class SyncConnection implements View, SocketHandle {
  readonly state: SocketState;
  readonly outbound: OutboundAccount;
  /** Slot in the timer wheel. Set by the wheel. */
  slot = -1;
  /** The last `reachableTs` that was not `null`. Kept by the hub to detect progress. */
  lastReachableTs = 0;
  mutationsInFlight = 0;
  readonly #port: ConnectionPort;
  readonly #channel: Channel;
  readonly #heartbeat: SocketHeartbeat;
  readonly #frames: FrameQueue;
  readonly #transitions: Transitions;
  /** Sessions that ended during token verification. `null` if none is in progress. */
  #sessionsEnded: SessionEnd[] | null = null;
  /** Bytes queued since the last Transition. Bounds unread responses. */
  #bytesSinceTransition = 0;
  #ended = false;
  #closed = false;
  #framesAfterEnd = 0;
  #serving = false;
  /** Caller while no user is signed in. */
  #guest: Caller;
  /** Fair-queue key of its mutations. Unchanged while any is in flight, so that later ones do not overtake. */
  #mutationQueueKey: string;
  readonly #openedAt: number;
  /** Timer that closes the socket after a mutation with an unknown outcome. */
  #unsettled: Timer | null = null;

  /** @param ts Newest commit at the time of connecting. */
  constructor(
    outbound: OutboundAccount,
    port: ConnectionPort,
    { guest, ts }: { readonly guest: Caller; readonly ts: number },
  ) {
    const { channel } = outbound;
    const now = port.clock.now();
    this.state = new SocketState(ts);
    this.#openedAt = now;
    this.#guest = guest;
    this.#mutationQueueKey = guest.turn;
    this.#channel = channel;
    this.#port = port;
    this.outbound = outbound;
    this.#frames = new FrameQueue({
      quota: port.inbound,
      now,
      onOverload: () =>
        this.fatal("the server's inbound buffers are full", closeCodes.overloaded, closeHostileMs),
      setReceiveWindow: (window) => channel.setReceiveWindow(window),
    });
    this.#heartbeat = new SocketHeartbeat(now);
    this.#transitions = new Transitions({
      state: this.state,
      shared: port.shared,
      memo: port.memo,
      dev: port.dev,
      send: (frame) => this.#sendTransition(frame),
      tooLarge: (chars) =>
        this.fatal(
          `the results of one Transition have ${chars} characters, the limit is ${socketLimits.transitionCharsMax}`,
          closeCodes.protocol,
        ),
      slow: () => this.#ended || channel.bufferedAmount > socketLimits.bufferedBytesMax,
      canSend: (chars) => port.outbound.canSend(chars),
    });
  }

  /** Caller that its queries are attributed to. */
  get caller(): Caller {
    return callerOf(this.state.queryIdentity, this.#guest);
  }

  get subscribers(): Iterable<Subscriber> {
    return this.state.queries;
  }

  /** Newest ts at which all results are known, or `null`. */
  get reachableTs(): number | null {
    return this.#transitions.reachableTs;
  }

  /** Whether no Transition can be sent: the client reads too slowly, or the outbound quota is exhausted. */
  get slow(): boolean {
    const { waitingChars } = this.#transitions;
    return this.#channel.bufferedAmount > socketLimits.bufferedBytesMax ||
      (waitingChars > 0 && !this.#port.outbound.canSend(waitingChars));
  }

  /** When `checkDeadlines` is due at the latest, milliseconds since the epoch. */
  get nextDeadline(): number {
    return this.#heartbeat.nextAt;
  }

  needsAdvance(): void {
    this.#port.needsAdvance(this);
  }

  /** Handles a text frame. */
  receive(text: string): void {
    if (this.#ended) return this.#receivedAfterEnd();
    const now = this.#port.clock.now();
    this.#heartbeat.received(now);
    // The usual spelling of a Pong. It needs no parsing and does not queue.
    if (text === PONG) return this.#pong(now);
    const exceeded = this.#frames.push(text, now);
    if (exceeded === null) return this.#serve();
    if (exceeded === "rate") return this.fatal("too many frames", closeCodes.protocol, closeHostileMs);
    this.fatal("too many frames are queued behind running calls", closeCodes.protocol);
  }

  refuse(fault: string, closeCode: number): void {
    this.fatal(fault, closeCode);
  }

  closed(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.end();
    this.#port.closed(this);
  }

  /** Sends the Transitions that are ready. */
  advance(): void {
    if (this.#ended) return;
    this.#transitions.advance();
    if (this.#ended) return;
    if (this.slow) this.#port.slow(this);
    if (this.#frames.blocked !== null) this.#serve();
  }

  /** Lowers the minimum to the newest commit: the ts its client has seen was not reached in time (SG12). */
  lowerMinTs(): void {
    const { ts } = this.#port.shared;
    if (this.state.minTs <= ts) return;
    this.state.minTs = ts;
    this.needsAdvance();
  }

  /** Sends due pings, or ends the socket. */
  checkDeadlines(now: number): void {
    if (this.#ended) return;
    const { protocol } = closeCodes;
    const event = this.#heartbeat.check(now, {
      blocked: this.#frames.blocked !== null,
      verifying: this.#sessionsEnded !== null,
      bufferedBytes: this.#channel.bufferedAmount,
    });
    switch (event) {
      case null:
        return;
      case "ping":
        this.#send(PING);
        return;
      case "silent":
        this.fatal(`no message from the client for ${silenceMs / 1_000} s`, protocol);
        return;
      case "stuck":
        this.fatal(`a frame took more than ${frameSendMs / 1_000} s to send`, protocol);
        return;
      case "expired":
        this.authError("access token expired");
        return;
      default:
        event satisfies never;
    }
  }

  /** Handles the end of a session, perhaps that of the token being verified. */
  sessionEnded(ended: SessionEnd): void {
    this.#sessionsEnded?.push(ended);
    if (concerns(ended, this.state.identity)) this.authError("session has ended");
  }

  fatal(fault: string, closeCode: number, closeMs: number = socketLimits.closeMs): void {
    if (this.#ended) return;
    this.#channel.send(JSON.stringify({ type: "FatalError", error: fault }));
    this.#channel.close(closeCode, "fatal error");
    this.end(closeMs);
  }

  authError(error: AuthErrorText): void {
    if (this.#ended) return;
    this.#channel.send(JSON.stringify({ type: "AuthError", error }));
    this.close(closeCodes.protocol, "auth error");
  }

  close(code: number, reason: string): void {
    if (this.#ended) return;
    this.#channel.close(code, reason);
    this.end();
  }

  /** Releases what the socket holds, except the quota of calls in flight. The caller closes the channel first. */
  end(closeMs: number = socketLimits.closeMs): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#unsettled?.cancel();
    this.#frames.release(this.state.argsChars);
    this.#frames.close();
    this.#transitions.end();
    const notReading = this.#channel.bufferedAmount > socketLimits.bufferedBytesMax;
    this.#port.ended(this, notReading ? Math.min(closeMs, closeHostileMs) : closeMs);
  }

  /** A closing socket still reads and could block others. Aborts it after a number of frames. */
  #receivedAfterEnd(): void {
    if (++this.#framesAfterEnd === socketLimits.framesAfterEndMax) {
      this.#port.outbound.cut(this.outbound);
    }
  }

  /** Handles frames until one has to wait. */
  #serve(): void {
    if (this.#serving) return;
    this.#serving = true;
    while (!this.#ended && this.#sessionsEnded === null) {
      const frame = this.#frames.next();
      if (frame === null) break;
      if (!frame.ok) {
        this.#frames.release(this.#frames.takenChars);
        this.fatal(frame.fault, frame.closeCode);
      } else if (this.#mayServe(frame.message)) {
        this.#handle(frame.message, this.#frames.takenChars);
      } else {
        this.#frames.hold(frame.message);
        break;
      }
    }
    this.#serving = false;
    if (!this.#ended) this.#frames.adaptReceiveWindow();
  }

  #mayServe(message: ClientMessage): boolean {
    switch (message.type) {
      case "Mutation":
      case "Action":
        return this.state.callsInFlight < socketLimits.callsInFlightMax;
      case "ModifyQuerySet":
        return this.state.steps.length === 0 ||
          this.state.trackedQueries + message.modifications.length <= socketLimits.queriesTrackedMax;
      default:
        return true;
    }
  }

  /** `chars` stay reserved until the call ends or the message is handled. */
  #handle(message: ClientMessage, chars: number): void {
    switch (message.type) {
      case "Mutation":
        this.#mutate(message, chars);
        return;
      case "Action":
        this.#act(message, chars);
        return;
      default:
        this.#frames.release(chars);
        return this.#handleControl(message);
    }
  }

  #handleControl(message: Exclude<ClientMessage, Mutation | Action>): void {
    switch (message.type) {
      case "Connect":
        this.#refuse(this.state.connect(message));
        this.#guest = guestInSession(this.#guest, message.sessionId);
        return this.needsAdvance();
      case "ModifyQuerySet":
        this.#modifyQuerySet(message);
        return;
      case "Authenticate":
        this.#authenticate(message);
        return;
      case "Pong":
        return this.#pong(this.#port.clock.now());
      default:
        message satisfies never;
    }
  }

  #pong(now: number): void {
    if (this.#frames.takeIdle(now)) return;
    this.fatal("too many idle frames", closeCodes.protocol, closeHostileMs);
  }

  #modifyQuerySet(message: ModifyQuerySet): void {
    const before = this.state.argsChars;
    const refusal = this.state.modifyQuerySet(message, this);
    const more = this.state.argsChars - before;
    if (more > 0) this.#frames.reserve(more);
    else this.#frames.release(-more);
    this.#refuse(refusal);
    this.needsAdvance();
  }

  #refuse(refusal: { readonly refused: string } | null): void {
    if (refusal !== null) this.fatal(refusal.refused, closeCodes.protocol);
  }

  async #mutate({ requestId, udfPath, args }: Mutation, chars: number): Promise<void> {
    const { host, dev } = this.#port;
    const { identity, sessionId } = this.state;
    const refusal = refuseCall({ udfPath, args });
    if (refusal !== null && sessionId === null) {
      this.#frames.release(chars);
      const answer = { outcome: refusal, ts: host.ts, replayed: false };
      this.#send(mutationResponseFrame(requestId, { answer, dev, errorIds: this.state.errorIds }));
      return;
    }
    const { turn, blame } = callerOf(identity, this.#guest);
    if (this.mutationsInFlight === 0) this.#mutationQueueKey = turn;
    const whose = { identity, origin: "client", caller: { turn: this.#mutationQueueKey, blame } } as const;
    const call: MutationCall = refusal?.ok === false
      // Omits path and arguments, which may be what is too large.
      ? { udfPath: "", args: {}, ...whose, failedWith: refusal.error }
      : { udfPath, args, ...whose };
    this.state.callsInFlight++;
    this.mutationsInFlight++;
    const answer = await host.mutate(
      sessionId === null ? call : { ...call, replay: { sessionId, requestId } },
    );
    this.#callEnded(chars);
    this.mutationsInFlight--;
    if (this.#ended) return;
    if (!answer.outcome.ok && this.state.isUnsettled(answer.outcome.error)) {
      this.#closeUnsettled(answer.outcome.error);
      return this.#serve();
    }
    this.#send(mutationResponseFrame(requestId, { answer, dev, errorIds: this.state.errorIds }));
    if (answer.outcome.ok) {
      this.state.owedTs = Math.max(this.state.owedTs ?? 0, answer.ts);
      this.needsAdvance();
    }
    this.#serve();
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
    const { clock } = this.#port;
    const closeAt = this.#openedAt + socketLimits.unsettledCloseMs;
    this.#unsettled ??= clock.after(Math.max(0, closeAt - clock.now()), () => this.close(code, reason));
  }

  async #act({ requestId, udfPath, args }: Action, chars: number): Promise<void> {
    const { host, dev } = this.#port;
    const refusal = refuseCall({ udfPath, args });
    if (refusal !== null) {
      this.#frames.release(chars);
      this.#send(actionResponseFrame(requestId, { outcome: refusal, dev, errorIds: this.state.errorIds }));
      return;
    }
    this.state.callsInFlight++;
    const { identity } = this.state;
    const caller = callerOf(identity, this.#guest);
    const outcome = await host.act({ udfPath, args, identity, origin: "client", caller });
    this.#callEnded(chars);
    if (this.#ended) return;
    this.#send(actionResponseFrame(requestId, { outcome, dev, errorIds: this.state.errorIds }));
    this.#serve();
  }

  #callEnded(chars: number): void {
    this.state.callsInFlight--;
    this.#frames.release(chars);
  }

  /** Frames after an Authenticate wait for the verification: their calls use the new identity. */
  async #authenticate({ baseVersion, token }: Authenticate): Promise<void> {
    const refusal = this.state.mayAuthenticate(baseVersion);
    if (refusal !== null) return this.#refuse(refusal);
    if (token === null) return this.#accept(anonymous, null);
    const ended: SessionEnd[] = [];
    this.#sessionsEnded = ended;
    this.#port.verifying(this, true);
    const verification = await this.#port.authenticator.verify(token).catch(() => null);
    this.#sessionsEnded = null;
    this.#port.verifying(this, false);
    if (this.#ended) return;
    if (verification === null) {
      this.fatal("Server Error", closeCodes.internal);
    } else if (!verification.ok) {
      this.authError(verification.error);
    } else if (ended.some((end) => concerns(end, verification.identity))) {
      this.authError("session has ended");
    } else if (verification.expiresAt !== null && verification.expiresAt <= this.#port.clock.now()) {
      this.authError("access token expired");
    } else {
      this.#accept(verification.identity, verification.expiresAt);
      this.#serve();
    }
  }

  #accept(identity: Identity, expiresAt: number | null): void {
    const before = this.state.identity;
    this.state.authenticate(identity);
    this.#heartbeat.expiresAt = expiresAt;
    this.#port.identityChanged(this, before);
    this.#port.deadlinesChanged(this);
    this.needsAdvance();
  }

  /** Does not check the outbound quota: `advance` has. */
  #sendTransition(frame: string): void {
    if (this.#ended) return;
    this.#queue(frame);
    this.#bytesSinceTransition = 0;
    this.#port.transitionSent();
  }

  #queue(frame: string): number {
    const before = this.#channel.bufferedAmount;
    this.#channel.send(frame);
    const bytes = this.#channel.bufferedAmount - before;
    this.#heartbeat.queued(bytes);
    this.#port.outbound.queued(this.outbound, bytes);
    return bytes;
  }

  #send(frame: string): void {
    if (this.#ended) return;
    this.#bytesSinceTransition += this.#queue(frame);
    const waiting = Math.min(this.#channel.bufferedAmount, this.#bytesSinceTransition);
    if (waiting > socketLimits.bufferedBytesFatal) {
      this.fatal("the client does not read its responses", closeCodes.protocol);
    }
  }
}
