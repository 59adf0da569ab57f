/**
 * The rooms of one socket. A function of the app authorizes each of them, again whenever the identity of the socket changes. Its
 * result is shown to the other members.
 */
import { createHash } from "node:crypto";
import type { Identity } from "../functions/identity.ts";
import { type CallError, failed, type Outcome, publicError } from "../functions/outcome.ts";
import type { Clock } from "../kit/clock.ts";
import { presenceLimits } from "./limits.ts";
import type { RoomFrame, RoomSubscriber } from "./room.ts";
import type { Rooms } from "./rooms.ts";

/** Path of the app's function, which is called with `{ room }`. It refuses by throwing. */
export const AUTHORIZE_PATH = "presence:authorize";

/** Shared by all sockets. */
export interface PresenceContext {
  readonly rooms: Rooms;
  readonly clock: Pick<Clock, "after">;
  /** Sends original error messages. */
  readonly dev: boolean;
}

export interface PresentSocket {
  /** Identity of the socket now. */
  identity(): Identity;
  /** Calls the app's function for a room. Never rejects. */
  authorize(room: string): Promise<Outcome>;
  /** Returns `false` if the client reads too slowly for further frames. */
  send(frame: string): boolean;
  /** Counts characters kept in memory; negative if they are released. */
  keep(chars: number): void;
}

/** Declarations of the socket's Connect. */
interface SocketClient {
  readonly sessionId: string;
  readonly connectionCount: number;
}

interface Membership {
  /** JSON. */
  state: string;
  /** `refused` ones stay known: they are authorized again with the next identity. */
  status: "waiting" | "joined" | "refused";
  /** Whether the client was sent its id. */
  isAnnounced: boolean;
  /** Number of the newest authorization. */
  run: number;
  /** Whether the app's function runs for it. */
  isRunning: boolean;
}

export class SocketPresence implements RoomSubscriber {
  readonly #context: PresenceContext;
  readonly #socket: PresentSocket;
  /** The same for all sockets of a session, so that a member keeps its id when it reconnects. */
  readonly #id: string;
  readonly #connection: number;
  readonly #memberships = new Map<string, Membership>();
  #principal: string | null;
  /** Calls of the app's function in flight, including those for rooms that it has left. */
  #authorizations = 0;
  #ended = false;

  constructor(context: PresenceContext, { sessionId, connectionCount }: SocketClient, socket: PresentSocket) {
    this.#context = context;
    this.#socket = socket;
    this.#id = memberId(sessionId);
    this.#connection = connectionCount;
    this.#principal = socket.identity().principal;
  }

  /** Joins a room, or replaces the member's state in it. */
  set(room: string, value: Readonly<Record<string, unknown>>): void {
    const known = this.#memberships.get(room);
    const state = JSON.stringify(value);
    const { stateCharsMax, roomsMax, authorizationsMax } = presenceLimits;
    if (state.length > stateCharsMax) {
      return this.#refuse(
        room,
        `The state has ${state.length} characters of JSON, more than the limit of ${stateCharsMax}`,
      );
    }
    if (known === undefined && this.#memberships.size >= roomsMax) {
      return this.#refuse(room, `A client may be in ${roomsMax} rooms at once`);
    }
    if (known === undefined && this.#authorizations >= authorizationsMax) {
      return this.#refuse(room, `A client may wait for ${authorizationsMax} authorizations at once`);
    }
    if (known !== undefined) {
      const more = state.length - known.state.length;
      known.state = state;
      // May end the socket, which releases the characters of all memberships.
      this.#socket.keep(more);
      if (known.status === "joined") this.#context.rooms.update(room, this.#id, state, this);
      return;
    }
    const membership: Membership = { state, status: "waiting", isAnnounced: false, run: 0, isRunning: false };
    this.#memberships.set(room, membership);
    this.#socket.keep(room.length + state.length);
    if (!this.#ended) void this.#authorize(room, membership);
  }

  leave(room: string): void {
    const known = this.#memberships.get(room);
    if (known === undefined) return;
    this.#memberships.delete(room);
    this.#socket.keep(-(room.length + known.state.length));
    if (known.status === "joined") this.#leave(room, false);
  }

  /** Authorizes all rooms again. A member with another principal leaves first. */
  identityChanged(): void {
    const { principal } = this.#socket.identity();
    const isOther = principal !== this.#principal;
    this.#principal = principal;
    for (const [room, membership] of this.#memberships) {
      if (isOther && membership.status === "joined") {
        membership.status = "waiting";
        membership.isAnnounced = false;
        this.#leave(room, false);
      }
      void this.#authorize(room, membership);
    }
  }

  /** The socket has ended. With `grace`, its client may come back as the same member. */
  end({ grace }: { readonly grace: boolean }): void {
    this.#ended = true;
    for (const [room, { state, status }] of this.#memberships) {
      this.#socket.keep(-(room.length + state.length));
      if (status === "joined") this.#leave(room, grace);
    }
    this.#memberships.clear();
  }

  send(room: string, { text }: RoomFrame): boolean {
    const membership = this.#memberships.get(room);
    if (membership === undefined) return true;
    if (!membership.isAnnounced) {
      const joined = JSON.stringify({ type: "RoomJoined", room, self: this.#id });
      if (!this.#socket.send(joined)) return false;
      membership.isAnnounced = true;
    }
    return this.#socket.send(text);
  }

  full(room: string): void {
    const membership = this.#memberships.get(room);
    if (membership === undefined) return;
    this.#reject(room, membership, `The room has ${presenceLimits.membersMax} members, which is the limit`);
  }

  #leave(room: string, grace: boolean): void {
    this.#context.rooms.leave(room, this.#id, { subscriber: this, grace });
  }

  /** One call of a room runs at a time: a later request repeats it afterwards, with the identity of that moment. */
  async #authorize(room: string, membership: Membership): Promise<void> {
    membership.run++;
    if (membership.isRunning) return;
    membership.isRunning = true;
    this.#authorizations++;
    let isCurrent = false;
    while (!isCurrent && !this.#ended && this.#memberships.get(room) === membership) {
      const { run } = membership;
      const outcome = checked(await this.#socket.authorize(room));
      isCurrent = membership.run === run;
      if (!this.#ended && this.#memberships.get(room) === membership) {
        this.#apply(room, { membership, outcome, isCurrent });
      }
    }
    membership.isRunning = false;
    this.#authorizations--;
  }

  #apply(room: string, { membership, outcome, isCurrent }: {
    readonly membership: Membership;
    readonly outcome: Outcome;
    /** Whether the identity is still the one that was authorized. */
    readonly isCurrent: boolean;
  }): void {
    const isRefused = !outcome.ok && outcome.error.retryable !== true;
    if (isRefused && membership.status === "joined") {
      membership.status = "waiting";
      membership.isAnnounced = false;
      this.#leave(room, false);
    }
    if (!isCurrent) return;
    if (outcome.ok) {
      const { userId } = this.#socket.identity();
      membership.status = "joined";
      const member = { userId, info: outcome.value, state: membership.state, connection: this.#connection };
      return this.#context.rooms.join(room, this.#id, member, this);
    }
    if (isRefused) return this.#reject(room, membership, outcome.error);
    const { run } = membership;
    this.#context.clock.after(presenceLimits.authorizeAgainMs, () => {
      const isLatest = this.#memberships.get(room) === membership && membership.run === run;
      if (isLatest) void this.#authorize(room, membership);
    });
  }

  /** Refuses a membership until the identity of the socket changes. */
  #reject(room: string, membership: Membership, why: string | CallError): void {
    membership.status = "refused";
    membership.isAnnounced = false;
    this.#refuse(room, why);
  }

  #refuse(room: string, why: string | CallError): void {
    const refusal = typeof why === "string"
      ? { errorMessage: why, errorData: null }
      : publicError(why, { dev: this.#context.dev });
    const isMember = this.#memberships.get(room)?.status === "joined";
    // A client that reads too slowly for it notices by the missing members.
    this.#socket.send(JSON.stringify({ type: "RoomRefused", room, isMember, ...refusal }));
  }
}

/** The id of a client's members. Derived from the secret id of its session, which it does not reveal. */
function memberId(sessionId: string): string {
  return createHash("sha256").update(sessionId).digest("base64url").slice(0, 12);
}

function checked(outcome: Outcome): Outcome {
  if (!outcome.ok) {
    return outcome.error.kind === "unknown_function"
      ? failed(
        "unknown_function",
        `No client may join a room: the app has no function "${AUTHORIZE_PATH}"`,
      )
      : outcome;
  }
  const { infoCharsMax } = presenceLimits;
  return outcome.value.length <= infoCharsMax ? outcome : failed(
    "internal",
    `The result of "${AUTHORIZE_PATH}" has ${outcome.value.length} characters of JSON, more than the limit of ${infoCharsMax}`,
  );
}
