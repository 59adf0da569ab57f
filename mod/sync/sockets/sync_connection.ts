/**
 * One WebSocket of a sync client, created by the hub. Sends results as Transitions, and answers as calls end. Starts its
 * messages in the order received; mutations also commit in that order, but one resent on another socket may commit later. A
 * message waits until there is room for its call or queries, or until an earlier token is verified, and later messages wait
 * behind it. Other exceeded limits close the socket.
 */
import type { Caller, FunctionCall } from "../../functions/host_port.ts";
import { anonymous, type Identity } from "../../functions/identity.ts";
import type { Outcome } from "../../functions/outcome.ts";
import { socketLimits } from "../../limits.ts";
import { refuseKey } from "../../functions/key_scope.ts";
import { AUTHORIZE_PATH, type PresenceContext, SocketPresence } from "../../presence/mod.ts";
import { presenceLimits } from "../../presence/limits.ts";
import type {
  Action,
  Authenticate,
  ClientMessage,
  LeaveRoom,
  ModifyQuerySet,
  Mutation,
  SetPresence,
} from "../../protocol/client_messages.ts";
import { type AuthErrorText, concerns, type SessionEnd, type Verification } from "../authenticator.ts";
import type { SharedQueries } from "../queries/shared_queries.ts";
import type { Subscriber } from "../queries/shared_query.ts";
import type { AdvanceSchedule, AdvancingSocket } from "./advance_schedule.ts";
import { SocketHeartbeat } from "./heartbeat.ts";
import { FrameQueue, FrameRateLimiter, type InboundQuota } from "./inbound_frames.ts";
import type { OutboundQuota, SocketOutput } from "./outbound_quota.ts";
import { type Refusal, RequestedState, type Step } from "./requested_state.ts";
import type { SessionIndex, SessionSocket } from "./session_index.ts";
import { type Channel, closeCodes, leavingCodes, type SocketHandle } from "./socket.ts";
import { type CallContext, SocketCalls } from "./socket_calls.ts";
import type { SocketTimers, TimedSocket } from "./socket_timers.ts";
import type { FrameMemo } from "./transition_frame.ts";
import { Transitions } from "./transitions.ts";

/** Shared by all sockets of a hub. */
export interface SocketContext extends CallContext {
  readonly shared: SharedQueries;
  readonly memo: FrameMemo;
  readonly outbound: OutboundQuota;
  readonly inbound: InboundQuota;
  readonly advances: AdvanceSchedule;
  readonly timers: SocketTimers;
  readonly sessions: SessionIndex;
  /** `null` if sockets cannot join rooms. */
  readonly presence: PresenceContext | null;
  /** Runs a query once. Never rejects. */
  readonly query: (call: FunctionCall) => Promise<Outcome>;
  readonly transitionSent: () => void;
  /** Called once when a socket ends. It is aborted if it is still open after `closeMs`. */
  readonly ended: (socket: SyncConnection, closeMs: number) => void;
  /** Called once when a socket is closed, after `ended`. */
  readonly closed: (socket: SyncConnection) => void;
}

// `closeHostileMs`: close timeout for a hostile or non-reading client.
const { closeHostileMs, frameSendMs, silenceMs } = socketLimits;
const PONG = '{"type":"Pong"}';
const PING = '{"type":"Ping"}';

export class SyncConnection implements AdvancingSocket, SessionSocket, SocketHandle, TimedSocket {
  readonly requested: RequestedState;
  readonly output: SocketOutput;
  /** Slot in the timer wheel. Set by the wheel. */
  slot = -1;
  readonly #context: SocketContext;
  readonly #heartbeat: SocketHeartbeat;
  readonly #frames: FrameQueue;
  readonly #calls: SocketCalls;
  readonly #transitions: Transitions;
  /** Whether a token is being verified. */
  #verifying = false;
  #serving = false;
  #closed = false;
  #framesAfterEnd = 0;
  /** Its rooms; `null` before the first. */
  #presence: SocketPresence | null = null;
  #presenceRate: FrameRateLimiter | null = null;
  /** Whether its client may return as the same member of its rooms. */
  #mayReturn = true;

  /** @param ts Newest commit at the time of connecting. */
  constructor(
    channel: Channel,
    context: SocketContext,
    { guest, ts }: { readonly guest: Caller; readonly ts: number },
  ) {
    const now = context.clock.now();
    const { shared, memo, dev, transitionSent } = context;
    this.#context = context;
    this.requested = new RequestedState(guest);
    this.output = context.outbound.open(channel);
    this.#heartbeat = new SocketHeartbeat(now);
    this.#frames = new FrameQueue({
      quota: context.inbound,
      now,
      onOverload: () =>
        this.fatal("the server's inbound buffers are full", closeCodes.overloaded, closeHostileMs),
      setReceiveWindow: (window) => channel.setReceiveWindow(window),
    });
    this.#calls = new SocketCalls(context, { socket: this, frames: this.#frames });
    this.#transitions = new Transitions({
      ...{ shared, memo, dev, transitionSent, ts },
      requested: this.requested,
      output: this.output,
      tooLarge: (chars) =>
        this.fatal(
          `the results of one Transition have ${chars} characters, the limit is ${socketLimits.transitionCharsMax}`,
          closeCodes.protocol,
        ),
    });
  }

  /** Whether messages are handled and frames sent. */
  get isOpen(): boolean {
    return this.output.isOpen;
  }

  get mutationsInFlight(): number {
    return this.#calls.mutationsInFlight;
  }

  get identity(): Identity {
    return this.#transitions.identity;
  }

  /** Caller that its queries are attributed to. */
  get caller(): Caller {
    return this.requested.callerOf(this.#transitions.identity);
  }

  get subscribers(): ReadonlySet<Subscriber> {
    return this.#transitions.queries;
  }

  get reachableTs(): number | null {
    return this.#transitions.reachableTs;
  }

  get awaitedTs(): number | null {
    return this.#transitions.awaitedTs;
  }

  get blocked(): boolean {
    return this.#transitions.blocked;
  }

  get nextDeadline(): number {
    return this.#heartbeat.nextAt;
  }

  needsAdvance(): void {
    this.#context.advances.add(this);
  }

  /** Handles a text frame. */
  receive(text: string): void {
    if (!this.isOpen) return this.#receivedAfterEnd();
    const now = this.#context.clock.now();
    this.#heartbeat.received(now);
    // The usual spelling of a Pong. It needs no parsing and does not queue.
    if (text === PONG) return this.#pong(now);
    const exceeded = this.#frames.push(text, now);
    if (exceeded === null) return this.serve();
    if (exceeded === "rate") return this.fatal("too many frames", closeCodes.protocol, closeHostileMs);
    this.fatal("too many frames are queued behind running calls", closeCodes.protocol);
  }

  refuse(fault: string, closeCode: number): void {
    this.fatal(fault, closeCode);
  }

  closed(code?: number): void {
    if (this.#closed) return;
    this.#closed = true;
    if (leavingCodes.has(code)) this.#mayReturn = false;
    this.#end();
    this.#context.closed(this);
  }

  advance(): void {
    if (!this.isOpen) return;
    this.#transitions.advance();
    if (!this.isOpen) return;
    if (this.blocked) this.#context.timers.pollUntilFree(this);
    if (this.#frames.blocked !== null) this.serve();
  }

  lowerMinTs(): void {
    if (this.#transitions.lowerMinTs(this.#context.shared.ts)) this.needsAdvance();
  }

  /** Sends due pings, or ends the socket. */
  checkDeadlines(now: number): void {
    if (!this.isOpen) return;
    const { protocol } = closeCodes;
    const event = this.#heartbeat.check(now, {
      blocked: this.#frames.blocked !== null,
      verifying: this.#verifying,
      output: this.output,
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

  sessionEnded(ended: SessionEnd): void {
    if (concerns(ended, this.requested.identity)) this.authError("session has ended");
  }

  /** Sends a response. The next Transition has to include the commit `ts`. */
  respond(frame: string, ts: number | null): void {
    this.#send(frame);
    if (ts === null) return;
    this.#transitions.owe(ts);
    this.needsAdvance();
  }

  /** Handles messages until one has to wait. */
  serve(): void {
    if (this.#serving) return;
    this.#serving = true;
    while (this.isOpen && !this.#verifying) {
      const frame = this.#frames.next();
      if (frame === null) break;
      if (!frame.ok) {
        this.#frames.release(this.#frames.takenChars);
        this.fatal(frame.fault, frame.closeCode);
      } else if (this.#mayHandle(frame.message)) {
        this.#handle(frame.message, this.#frames.takenChars);
      } else {
        this.#frames.hold(frame.message);
        break;
      }
    }
    this.#serving = false;
    if (this.isOpen) this.#frames.adaptReceiveWindow();
  }

  fatal(fault: string, closeCode: number, closeMs: number = socketLimits.closeMs): void {
    if (!this.isOpen) return;
    const { channel } = this.output;
    channel.send(JSON.stringify({ type: "FatalError", error: fault }));
    channel.close(closeCode, "fatal error");
    this.#end(closeMs);
  }

  authError(error: AuthErrorText): void {
    if (!this.isOpen) return;
    this.#mayReturn = false;
    this.output.channel.send(JSON.stringify({ type: "AuthError", error }));
    this.close(closeCodes.protocol, "auth error");
  }

  close(code: number, reason: string): void {
    if (!this.isOpen) return;
    this.output.channel.close(code, reason);
    this.#end();
  }

  /** Returns the number of its subscriptions. Throws if the state is inconsistent. For tests. */
  validate(): number {
    return this.#transitions.validate();
  }

  /** Releases what the socket holds, except the quota of calls in flight. The caller closes the channel first. */
  #end(closeMs: number = socketLimits.closeMs): void {
    if (!this.isOpen) return;
    this.output.isOpen = false;
    this.#presence?.end({ grace: this.#mayReturn });
    this.#calls.end();
    this.#frames.release(this.requested.argsChars);
    this.#frames.close();
    this.#transitions.end();
    this.#context.ended(this, this.output.isSlow ? Math.min(closeMs, closeHostileMs) : closeMs);
  }

  /** A closing socket still reads and could block others. Aborts it after a number of frames. */
  #receivedAfterEnd(): void {
    if (++this.#framesAfterEnd === socketLimits.framesAfterEndMax) this.#context.outbound.cut(this.output);
  }

  #mayHandle(message: ClientMessage): boolean {
    switch (message.type) {
      case "Mutation":
      case "Action":
        return this.#calls.inFlight < socketLimits.callsInFlightMax;
      case "ModifyQuerySet":
        return this.#transitions.hasRoomFor(message.modifications.length);
      default:
        return true;
    }
  }

  /** `chars` stay reserved until the call ends or the message is handled. */
  #handle(message: ClientMessage, chars: number): void {
    switch (message.type) {
      case "Mutation":
        void this.#calls.mutate(message, chars);
        return;
      case "Action":
        void this.#calls.act(message, chars);
        return;
      default:
        this.#frames.release(chars);
        return this.#handleControl(message);
    }
  }

  #handleControl(message: Exclude<ClientMessage, Mutation | Action>): void {
    switch (message.type) {
      case "Connect":
        this.#refuse(this.requested.connect(message));
        this.#transitions.observed(message.maxObservedTs ?? 0);
        return this.needsAdvance();
      case "ModifyQuerySet":
        return this.#modifyQuerySet(message);
      case "Authenticate":
        return this.#authenticate(message);
      case "SetPresence":
      case "LeaveRoom":
        return this.#changePresence(message);
      case "Pong":
        return this.#pong(this.#context.clock.now());
      default:
        message satisfies never;
    }
  }

  #pong(now: number): void {
    if (this.#frames.takeIdle(now)) return;
    this.fatal("too many idle frames", closeCodes.protocol, closeHostileMs);
  }

  #changePresence(message: SetPresence | LeaveRoom): void {
    const { presence: context, clock } = this.#context;
    const { sessionId, connectionCount, presence: isAllowed } = this.requested.client;
    if (context === null || sessionId === null || !isAllowed) {
      const fault = `${message.type}: the Connect of this socket does not name the feature "presence"`;
      return this.fatal(fault, closeCodes.protocol);
    }
    this.#presenceRate ??= new FrameRateLimiter(presenceLimits.updates, clock.now());
    if (!this.#presenceRate.take(clock.now())) {
      const fault = `more than ${presenceLimits.updates.perSecond} presence messages a second`;
      return this.fatal(fault, closeCodes.protocol, closeHostileMs);
    }
    const presence = this.#presence ??= new SocketPresence(context, { sessionId, connectionCount }, {
      identity: () => this.requested.identity,
      authorize: (room) => this.#authorizeRoom(room),
      send: (frame) => this.#sendRoomFrame(frame),
      keep: (chars) => chars > 0 ? this.#frames.reserve(chars) : this.#frames.release(-chars),
    });
    if (message.type === "SetPresence") presence.set(message.room, message.state);
    else presence.leave(message.room);
  }

  #authorizeRoom(room: string): Promise<Outcome> {
    const { identity } = this.requested;
    const refusal = refuseKey(identity, "query", AUTHORIZE_PATH);
    if (refusal !== null) return Promise.resolve(refusal);
    const caller = this.requested.callerOf(identity);
    return this.#context.query({
      udfPath: AUTHORIZE_PATH,
      args: { room },
      identity,
      caller,
      origin: "system",
    });
  }

  #sendRoomFrame(frame: string): boolean {
    if (!this.isOpen) return true;
    if (this.output.isSlow || !this.output.canSend(frame.length)) return false;
    this.#send(frame);
    return true;
  }

  #modifyQuerySet(message: ModifyQuerySet): void {
    const before = this.requested.argsChars;
    const step = this.#transitions.isFull ? TOO_MANY_STEPS : this.requested.modifyQuerySet(message, this);
    const more = this.requested.argsChars - before;
    if (more > 0) this.#frames.reserve(more);
    else this.#frames.release(-more);
    this.#take(step);
  }

  #authenticate({ baseVersion, token }: Authenticate): void {
    const refusal = this.#transitions.isFull ? TOO_MANY_STEPS : this.requested.mayAuthenticate(baseVersion);
    if (refusal !== null) return this.#refuse(refusal);
    if (token === null) return this.#accept(anonymous, null);
    // Frames after it wait, because their calls use the new identity.
    this.#verifying = true;
    void this.#context.sessions.verify(token, (verification) => {
      this.#verifying = false;
      this.#verified(verification);
    }, this.requested.callerOf(anonymous).blame);
  }

  #verified(verification: Verification | null): void {
    if (verification === null) {
      this.fatal("Server Error", closeCodes.internal);
    } else if (!verification.ok) {
      this.authError(verification.error);
    } else if (verification.expiresAt !== null && verification.expiresAt <= this.#context.clock.now()) {
      this.authError("access token expired");
    } else if (this.isOpen) {
      this.#accept(verification.identity, verification.expiresAt);
      this.serve();
    }
  }

  #accept(identity: Identity, expiresAt: number | null): void {
    const { sessions, timers } = this.#context;
    sessions.remove(this, this.requested.identity);
    const step = this.requested.authenticate(identity);
    sessions.add(this, identity);
    this.#heartbeat.expiresAt = expiresAt;
    timers.schedule(this);
    this.#take(step);
    this.#presence?.identityChanged();
  }

  #take(step: Step | Refusal): void {
    if ("refused" in step) return this.#refuse(step);
    this.#transitions.add(step);
    this.needsAdvance();
  }

  #refuse(refusal: Refusal | null): void {
    if (refusal !== null) this.fatal(refusal.refused, closeCodes.protocol);
  }

  #send(frame: string): void {
    if (!this.output.send(frame)) {
      this.fatal("the client does not read its responses", closeCodes.protocol);
    }
  }
}

const TOO_MANY_STEPS: Refusal = {
  refused:
    `more than ${socketLimits.unansweredTransitionsMax} ModifyQuerySet and Authenticate messages await their Transition`,
};
