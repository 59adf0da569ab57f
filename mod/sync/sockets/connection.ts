/** One socket's loop: what each message does, in the order received, until the socket ends. */
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
import type { Authenticator, AuthErrorText, SessionEnd } from "../authenticator.ts";
import { callerOf, guestInSession } from "../caller.ts";
import type { Ahead, Channel } from "./channel.ts";
import type { Clock, Timer } from "../../kit/clock.ts";
import { closeCodes } from "./close_codes.ts";
import type { FrameMemo } from "./frame_memo.ts";
import { FrameAllowance } from "./frame_allowance.ts";
import type { HeldAccount, HeldBudget } from "./held_budget.ts";
import { Inbound } from "./inbound.ts";
import { Pulse } from "./pulse.ts";
import { refuseCall } from "../refuse_call.ts";
import type { SharedQueries } from "../queries/shared_queries.ts";
import type { Subscriber, View } from "../queries/shared_query.ts";
import { SocketState } from "./socket_state.ts";
import { actionResponseFrame, mutationResponseFrame } from "./transition_frame.ts";
import { Transitions } from "./transitions.ts";
import type { UnsentAccount, UnsentBudget } from "./unsent_budget.ts";

/** What a connection needs of the hub. */
export interface ConnectionPort {
  readonly host: FunctionHost;
  readonly authenticator: Authenticator;
  readonly shared: SharedQueries;
  readonly memo: FrameMemo;
  readonly clock: Clock;
  readonly dev: boolean;
  /** Its `advance` has to be called soon. */
  touched(connection: Connection): void;
  /** It reads too slowly; the hub looks whether its buffer has drained. */
  slow(connection: Connection): void;
  /** Its deadlines have changed. */
  retimed(connection: Connection): void;
  identityChanged(connection: Connection, before: Identity): void;
  /** It verifies a token, or has done so: until then it is told of every session that ends. */
  verifying(connection: Connection, underWay: boolean): void;
  /** It has sent a Transition. */
  transitionSent(): void;
  /** It has ended: it may be forgotten, and its socket cut off when it is not closed after so long. */
  ended(connection: Connection, closeMs: number): void;
  readonly unsent: UnsentBudget;
  readonly held: HeldBudget;
}

/** How long a socket is let close that does harm as long as it is open. */
const HOSTILE = socketLimits.closeHostileMs;

const PONG = '{"type":"Pong"}';
const PING = '{"type":"Ping"}';

export class Connection implements View {
  readonly state: SocketState;
  /** Slot of the deadline wheel, set by it. */
  slot = -1;
  /** The last `reach` that was not `null`. Kept by the hub, to see whether the socket gets on. */
  lastReach = 0;
  readonly #port: ConnectionPort;
  readonly #channel: Channel;
  readonly #pulse: Pulse;
  readonly #unsent: UnsentAccount;
  readonly #held: HeldAccount;
  readonly #inbound: Inbound;
  readonly #frames: FrameAllowance;
  readonly #idleFrames: FrameAllowance;
  readonly #transitions: Transitions;
  /** Sessions that ended while a token is being verified; `null` when none is. */
  #endedMeanwhile: SessionEnd[] | null = null;
  /** Handed over since the last Transition. */
  #bytesSinceTransition = 0;
  #ended = false;
  #framesAfterEnd = 0;
  /** Little as long as many of its frames wait. */
  #ahead: Ahead = "usual";
  #serving = false;
  /** Who it is while nobody is signed in. */
  #guest: Caller;
  /** Whose turn its mutations take. It stays as long as some are under way, or later ones could overtake them. */
  #turn: string;
  #mutationsInFlight = 0;
  readonly #openedAt: number;
  /** Closes the socket; set when the outcome of a mutation is unknown. */
  #unsettled: Timer | null = null;

  /** `ts`: of the newest commit when it connected. */
  constructor(
    unsent: UnsentAccount,
    port: ConnectionPort,
    { guest, ts }: { readonly guest: Caller; readonly ts: number },
  ) {
    const { channel } = unsent;
    const now = port.clock.now();
    this.state = new SocketState(ts);
    this.#openedAt = now;
    this.#guest = guest;
    this.#turn = guest.turn;
    this.#channel = channel;
    this.#port = port;
    this.#unsent = unsent;
    this.#held = port.held.open(() =>
      this.fatal("the server holds too much that clients have sent", closeCodes.overloaded, HOSTILE)
    );
    this.#inbound = new Inbound(port.held, this.#held);
    this.#frames = new FrameAllowance(socketLimits.frames, now);
    this.#idleFrames = new FrameAllowance(socketLimits.idleFrames, now);
    this.#pulse = new Pulse(now);
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
      hasRoom: (chars) => port.unsent.hasRoom(chars),
    });
  }

  /** Who stands in line for its queries. */
  get caller(): Caller {
    return callerOf(this.state.queryIdentity, this.#guest);
  }

  get subscribers(): Iterable<Subscriber> {
    return this.state.queries;
  }

  /** Newest ts at which everything shown is known, `null` when there is none. */
  get reach(): number | null {
    return this.#transitions.reach;
  }

  /** Whether it cannot be sent a Transition: it reads too slowly, or there is no room for what it is to get. */
  get slow(): boolean {
    const { waitingChars } = this.#transitions;
    return this.#channel.bufferedAmount > socketLimits.bufferedBytesMax ||
      (waitingChars > 0 && !this.#port.unsent.hasRoom(waitingChars));
  }

  /** When `watch` has to be called at the latest, milliseconds since the epoch. */
  get nextAt(): number {
    return this.#pulse.nextAt;
  }

  touch(): void {
    this.#port.touched(this);
  }

  /** A text frame came. */
  receive(text: string): void {
    if (this.#ended) return this.#heardAfterEnd();
    const now = this.#port.clock.now();
    this.#pulse.heard(now);
    // As every client writes it: not worth a look at what else it could be, and it waits for nothing.
    if (text === PONG) {
      this.#pong(now);
    } else if (!this.#frames.take(now)) {
      this.fatal("too many frames", closeCodes.protocol, HOSTILE);
    } else if (!this.#inbound.push(text)) {
      this.fatal("too many frames wait behind running calls", closeCodes.protocol);
    } else {
      this.#serve();
      if (this.#inbound.fullness > 1) this.#letAhead("little");
    }
  }

  /**
   * The runtime reads all that has come of a socket before others have a turn: of one that is not served anyway that has to
   * be little.
   */
  #letAhead(how: Ahead): void {
    if (how === this.#ahead) return;
    this.#ahead = how;
    this.#channel.letAhead(how);
  }

  /** Sends the Transitions that can be sent. */
  advance(): void {
    if (this.#ended) return;
    this.#transitions.advance();
    if (this.#ended) return;
    if (this.slow) this.#port.slow(this);
    if (this.#inbound.held !== null) this.#serve();
  }

  /** The ts its client has seen was not reached in time: it is shown the newest state there is (SG12). */
  lowerFloor(): void {
    const { ts } = this.#port.shared;
    if (this.state.floorTs <= ts) return;
    this.state.floorTs = ts;
    this.touch();
  }

  /** Does what is due: pings, or ends the socket. */
  watch(now: number): void {
    if (this.#ended) return;
    const event = this.#pulse.check(now, {
      held: this.#inbound.held !== null,
      verifying: this.#endedMeanwhile !== null,
      bufferedBytes: this.#channel.bufferedAmount,
    });
    switch (event) {
      case null:
        return;
      case "ping":
        this.#send(PING);
        return;
      case "silent":
        this.fatal("nothing heard from the client for 45 s", closeCodes.protocol);
        return;
      case "stuck":
        this.fatal("a frame took more than 30 s to send", closeCodes.protocol);
        return;
      case "expired":
        this.authError("access token expired");
        return;
      default:
        event satisfies never;
    }
  }

  /** A session has ended, perhaps the one whose token is being verified. */
  sessionEnded(ended: SessionEnd): void {
    this.#endedMeanwhile?.push(ended);
    if (concerns(ended, this.state.identity)) this.authError("session has ended");
  }

  /** Ends the socket with a FatalError that names the fault. */
  fatal(fault: string, closeCode: number, closeMs: number = socketLimits.closeMs): void {
    if (this.#ended) return;
    this.#channel.send(JSON.stringify({ type: "FatalError", error: fault }));
    this.#channel.close(closeCode, "fatal error");
    this.end(closeMs);
  }

  /** Ends the socket with an AuthError. */
  authError(error: AuthErrorText): void {
    if (this.#ended) return;
    this.#channel.send(JSON.stringify({ type: "AuthError", error }));
    this.close(closeCodes.protocol, "auth error");
  }

  /** Ends the socket with a close frame. */
  close(code: number, reason: string): void {
    if (this.#ended) return;
    this.#channel.close(code, reason);
    this.end();
  }

  /** The socket is gone: nothing is sent any more, and the queries are let go. Calls under way go on. */
  end(closeMs: number = socketLimits.closeMs): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#unsettled?.cancel();
    this.#inbound.clear();
    this.#port.held.release(this.#held, this.state.argsChars);
    this.#port.held.close(this.#held);
    this.#transitions.end();
    const deaf = this.#channel.bufferedAmount > socketLimits.bufferedBytesMax;
    this.#port.ended(this, deaf ? Math.min(closeMs, HOSTILE) : closeMs);
  }

  /** A socket that is closing still reads, and nothing else gets its turn while one is flooded. */
  #heardAfterEnd(): void {
    if (++this.#framesAfterEnd === socketLimits.framesAfterEndMax) this.#port.unsent.cut(this.#unsent);
  }

  /** Serves frames until one has to wait. */
  #serve(): void {
    if (this.#serving) return;
    this.#serving = true;
    while (!this.#ended && this.#endedMeanwhile === null) {
      const frame = this.#inbound.next();
      if (frame === null) break;
      if (!frame.ok) {
        this.#port.held.release(this.#held, this.#inbound.takenChars);
        this.fatal(frame.fault, frame.closeCode);
      } else if (this.#mayServe(frame.message)) {
        this.#handle(frame.message, this.#inbound.takenChars);
      } else {
        this.#inbound.hold(frame.message);
        break;
      }
    }
    this.#serving = false;
    if (this.#ahead === "little" && !this.#ended && this.#inbound.fullness < 0.25) this.#letAhead("usual");
  }

  #mayServe(message: ClientMessage): boolean {
    switch (message.type) {
      case "Mutation":
      case "Action":
        return this.state.callsInFlight < socketLimits.callsInFlightMax;
      case "ModifyQuerySet":
        return this.state.steps.length === 0 ||
          this.state.queriesKept + message.modifications.length <= socketLimits.queriesKeptMax;
      default:
        return true;
    }
  }

  /** `chars` are held for the message: until its call has ended, or it has been served. */
  #handle(message: ClientMessage, chars: number): void {
    switch (message.type) {
      case "Mutation":
        this.#mutate(message, chars);
        return;
      case "Action":
        this.#act(message, chars);
        return;
      default:
        this.#port.held.release(this.#held, chars);
        return this.#take(message);
    }
  }

  #take(message: Exclude<ClientMessage, Mutation | Action>): void {
    switch (message.type) {
      case "Connect":
        this.#refuse(this.state.connect(message));
        this.#guest = guestInSession(this.#guest, message.sessionId);
        return this.touch();
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
    if (this.#idleFrames.take(now)) return;
    this.fatal("too many frames that say nothing", closeCodes.protocol, HOSTILE);
  }

  #modifyQuerySet(message: ModifyQuerySet): void {
    const before = this.state.argsChars;
    const refusal = this.state.modifyQuerySet(message, this);
    const more = this.state.argsChars - before;
    if (more > 0) this.#port.held.hold(this.#held, more);
    else this.#port.held.release(this.#held, -more);
    this.#refuse(refusal);
    this.touch();
  }

  #refuse(refusal: { readonly refused: string } | null): void {
    if (refusal !== null) this.fatal(refusal.refused, closeCodes.protocol);
  }

  async #mutate({ requestId, udfPath, args }: Mutation, chars: number): Promise<void> {
    const { host, dev } = this.#port;
    const { identity, sessionId } = this.state;
    const refusal = refuseCall({ udfPath, args });
    if (refusal !== null && sessionId === null) {
      this.#port.held.release(this.#held, chars);
      const answer = { outcome: refusal, ts: host.ts, replayed: false };
      this.#send(mutationResponseFrame(requestId, { answer, dev, errorIds: this.state.errorIds }));
      return;
    }
    const { turn, blame } = callerOf(identity, this.#guest);
    if (this.#mutationsInFlight === 0) this.#turn = turn;
    const whose = { identity, origin: "client", caller: { turn: this.#turn, blame } } as const;
    const call: MutationCall = refusal?.ok === false
      // Path and arguments stay here: they may be what is too large.
      ? { udfPath: "", args: {}, ...whose, failedWith: refusal.error }
      : { udfPath, args, ...whose };
    this.state.callsInFlight++;
    this.#mutationsInFlight++;
    const answer = await host.mutate(
      sessionId === null ? call : { ...call, replay: { sessionId, requestId } },
    );
    this.#callEnded(chars);
    this.#mutationsInFlight--;
    if (this.#ended) return;
    if (!answer.outcome.ok && this.state.isUnsettled(answer.outcome.error)) {
      this.#closeUnsettled(answer.outcome.error);
      return this.#serve();
    }
    this.#send(mutationResponseFrame(requestId, { answer, dev, errorIds: this.state.errorIds }));
    if (answer.outcome.ok) {
      this.state.owedTs = Math.max(this.state.owedTs ?? 0, answer.ts);
      this.touch();
    }
    this.#serve();
  }

  /** Has the client send what is unsettled again, on a new socket. */
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
      this.#port.held.release(this.#held, chars);
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
    this.#port.held.release(this.#held, chars);
  }

  /** Frames behind an Authenticate wait until its token is verified: calls among them are made in the new name. */
  async #authenticate({ baseVersion, token }: Authenticate): Promise<void> {
    const refusal = this.state.mayAuthenticate(baseVersion);
    if (refusal !== null) return this.#refuse(refusal);
    if (token === null) return this.#accept(anonymous, null);
    const ended: SessionEnd[] = [];
    this.#endedMeanwhile = ended;
    this.#port.verifying(this, true);
    const verification = await this.#port.authenticator.verify(token).catch(() => null);
    this.#endedMeanwhile = null;
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
    this.#pulse.expiresAt = expiresAt;
    this.#port.identityChanged(this, before);
    this.#port.retimed(this);
    this.touch();
  }

  /** Whatever its size: `advance` sends one only when next to nothing waits. */
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
    this.#pulse.queued(bytes);
    this.#port.unsent.queued(this.#unsent, bytes);
    return bytes;
  }

  #send(frame: string): void {
    if (this.#ended) return;
    this.#bytesSinceTransition += this.#queue(frame);
    const waiting = Math.min(this.#channel.bufferedAmount, this.#bytesSinceTransition);
    if (waiting > socketLimits.bufferedBytesFatal) {
      this.fatal("the client does not read what it asked for", closeCodes.protocol);
    }
  }
}

function concerns(ended: SessionEnd, { sessionId, principal }: Identity): boolean {
  if ("sessionId" in ended) return ended.sessionId === sessionId;
  return ended.principal === principal && (ended.withoutSession !== true || sessionId === null);
}
