/** The rooms of a follower: the members of its own sockets go to the leader, whose frames contain those of all servers. */
import { type Clock, steadyClock, type Timer } from "../kit/clock.ts";
import { FrameTimers } from "./frame_timers.ts";
import { presenceLimits } from "./limits.ts";
import { type Member, Room, type RoomSubscriber } from "./room.ts";
import type { FrameKind, LeaveOptions, RoomChange, RoomLink, RoomLinkEvents, Rooms } from "./rooms.ts";

interface OwnMember extends Member {
  readonly subscriber: RoomSubscriber;
}

interface FollowedRoom {
  readonly room: Room;
  /** Members of this server. */
  readonly own: Map<string, OwnMember>;
  /** Whether the leader has sent its members. */
  isKnown: boolean;
}

export class FollowedRooms implements Rooms, RoomLinkEvents, Disposable {
  readonly #link: RoomLink;
  readonly #clock: Clock;
  readonly #rooms = new Map<string, FollowedRoom>();
  readonly #frames: FrameTimers;
  /** The newest unsent change of each member. */
  readonly #unsent = new Map<string, RoomChange>();
  #sending: Timer | null = null;

  constructor(link: RoomLink, clock: Clock = steadyClock) {
    this.#link = link;
    this.#clock = clock;
    this.#frames = new FrameTimers(clock, () => {});
    link.attach(this);
  }

  join(name: string, id: string, member: Member, subscriber: RoomSubscriber): void {
    let followed = this.#rooms.get(name);
    if (followed === undefined) {
      followed = { room: new Room(name), own: new Map(), isKnown: false };
      this.#rooms.set(name, followed);
    }
    const { room, own, isKnown } = followed;
    const known = own.get(id);
    if (known !== undefined && known.connection > member.connection) return;
    if (known?.subscriber !== subscriber) {
      if (known !== undefined) room.unsubscribe(known.subscriber);
      room.subscribe(subscriber);
    }
    const { userId, info, state, connection } = member;
    own.set(id, { userId, info, state, connection, subscriber });
    this.#report({ t: "join", room: name, id, userId, info, state, connection, needsWhole: !isKnown });
    if (isKnown) this.#frames.schedule(room);
  }

  update(name: string, id: string, state: string, subscriber: RoomSubscriber): void {
    const own = this.#rooms.get(name)?.own;
    const member = own?.get(id);
    if (own === undefined || member?.subscriber !== subscriber) return;
    own.set(id, { ...member, state });
    this.#report({ t: "update", room: name, id, state });
  }

  leave(name: string, id: string, { subscriber, grace }: LeaveOptions): void {
    const followed = this.#rooms.get(name);
    if (followed?.own.get(id)?.subscriber !== subscriber) return;
    this.#forget(followed, id);
    this.#report({ t: "leave", room: name, id, grace });
  }

  /** A link to a leader has opened. The leader knows none of these members, or counts them as absent. */
  opened(): void {
    this.#unsent.clear();
    for (const [room, { own }] of this.#rooms) {
      for (const [id, { userId, info, state, connection }] of own) {
        this.#report({ t: "join", room, id, userId, info, state, connection, needsWhole: true });
      }
    }
  }

  frame(name: string, kind: FrameKind, text: string): void {
    const followed = this.#rooms.get(name);
    if (followed === undefined) return;
    const { room } = followed;
    const { members = {}, joined = {}, states = {}, left = [] } = JSON.parse(text) as ParsedFrame;
    if (kind === "whole") {
      for (const id of [...room.members.keys()]) if (!Object.hasOwn(members, id)) room.remove(id);
    }
    for (const [id, member] of Object.entries({ ...members, ...joined })) room.put(id, memberOf(member));
    for (const [id, state] of Object.entries(states)) {
      const known = room.members.get(id);
      if (known !== undefined) room.put(id, { ...known, state: JSON.stringify(state) });
    }
    for (const id of left) room.remove(id);
    if (kind !== "change") followed.isKnown = true;
    if (followed.isKnown) this.#frames.send(room);
  }

  full(name: string, id: string): void {
    const followed = this.#rooms.get(name);
    const member = followed?.own.get(id);
    if (followed === undefined || member === undefined) return;
    this.#forget(followed, id);
    member.subscriber.full(name, id);
  }

  [Symbol.dispose](): void {
    this.#link.attach(null);
    this.#sending?.cancel();
    this.#frames[Symbol.dispose]();
  }

  #forget({ room, own }: FollowedRoom, id: string): void {
    const member = own.get(id);
    if (member === undefined) return;
    own.delete(id);
    room.unsubscribe(member.subscriber);
    // The leader sends no frames for it any more.
    if (own.size === 0) this.#rooms.delete(room.name);
  }

  #report(change: RoomChange): void {
    const key = JSON.stringify([change.room, change.id]);
    const before = this.#unsent.get(key);
    const { state } = change.t === "update" ? change : { state: "" };
    this.#unsent.set(key, before?.t === "join" && change.t === "update" ? { ...before, state } : change);
    this.#sendSoon();
  }

  #sendSoon(): void {
    this.#sending ??= this.#clock.after(presenceLimits.followerMs, () => this.#send());
  }

  #send(): void {
    this.#sending = null;
    // While the leader reads slowly, newer states replace the unsent ones. With too many, the link ends at its own limit.
    if (this.#link.isBusy && this.#unsent.size < presenceLimits.unsentChangesMax) return this.#sendSoon();
    const changes = [...this.#unsent.values()];
    this.#unsent.clear();
    // Without a leader they are dropped: `opened` sends all members.
    this.#link.send(changes);
  }
}

interface ParsedMember {
  readonly userId: string | null;
  readonly info: unknown;
  readonly state: unknown;
}

/** A `RoomState` or a `RoomChanged`. */
interface ParsedFrame {
  readonly members?: Readonly<Record<string, ParsedMember>>;
  readonly joined?: Readonly<Record<string, ParsedMember>>;
  readonly states?: Readonly<Record<string, unknown>>;
  readonly left?: readonly string[];
}

function memberOf({ userId, info, state }: ParsedMember): Member {
  return { userId, info: JSON.stringify(info), state: JSON.stringify(state), connection: 0 };
}
