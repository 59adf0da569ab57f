/**
 * The rooms of a server that leads, with the members of all servers. Everything is in memory: when another server leads, its
 * followers send their members to it.
 */
import { type Clock, steadyClock, type Timer } from "../kit/clock.ts";
import { FrameTimers } from "./frame_timers.ts";
import { presenceLimits } from "./limits.ts";
import { type Member, Room, type RoomFrame, type RoomSubscriber } from "./room.ts";
import type { FollowerOutput, LeaveOptions, PresentMember, RoomChange, Rooms } from "./rooms.ts";

interface HubMember extends Member {
  /** The socket or follower that the member belongs to; `null` while its client may come back. */
  readonly owner: RoomSubscriber | null;
}

interface Absence {
  readonly room: Room<HubMember>;
  readonly id: string;
  readonly endsAt: number;
}

/** Totals, and the largest rooms with their first members. */
export interface RoomSummary {
  readonly rooms: number;
  readonly members: number;
  readonly largest: readonly {
    readonly room: string;
    readonly size: number;
    readonly members: readonly PresentMember[];
  }[];
}

export class RoomHub implements Rooms, Disposable {
  readonly #clock: Clock;
  readonly #rooms = new Map<string, Room<HubMember>>();
  readonly #frames: FrameTimers;
  /** Members whose connection was lost. A member that has come back is another object. */
  readonly #absent = new Map<HubMember, Absence>();
  #absenceCheck: Timer | null = null;
  /** Set until followers of an earlier leader have had time to connect. */
  #settling: Timer | null;

  constructor(clock: Clock = steadyClock) {
    this.#clock = clock;
    this.#frames = new FrameTimers(clock, (room) => this.#forgetUnused(room));
    this.#settling = clock.after(presenceLimits.graceMs, () => this.#settle());
  }

  join(name: string, id: string, member: Member, subscriber: RoomSubscriber): void {
    const room = this.#rooms.get(name) ?? new Room<HubMember>(name);
    const known = room.members.get(id);
    if (known !== undefined && known.connection > member.connection) return;
    if (known === undefined && room.members.size >= presenceLimits.membersMax) {
      return subscriber.full(name, id);
    }
    this.#rooms.set(name, room);
    if (known !== undefined) this.#absent.delete(known);
    if (known?.owner !== subscriber) {
      if (known !== undefined && known.owner !== null) room.unsubscribe(known.owner);
      room.subscribe(subscriber);
    }
    const { userId, info, state, connection } = member;
    room.put(id, { userId, info, state, connection, owner: subscriber });
    this.#frames.schedule(room);
  }

  update(name: string, id: string, state: string, subscriber: RoomSubscriber): void {
    const room = this.#rooms.get(name);
    const member = room?.members.get(id);
    if (room === undefined || member?.owner !== subscriber) return;
    room.put(id, { ...member, state });
    this.#frames.schedule(room);
  }

  leave(name: string, id: string, { subscriber, grace }: LeaveOptions): void {
    const room = this.#rooms.get(name);
    const member = room?.members.get(id);
    if (room === undefined || member?.owner !== subscriber) return;
    room.unsubscribe(subscriber);
    if (grace) this.#expectBack(room, id, member);
    else this.#remove(room, id);
  }

  /** Adds a follower. */
  connect(output: FollowerOutput): RoomFollower {
    return new RoomFollower(this, output);
  }

  /** Whether members of followers may be missing, because this server became the leader a short time ago. */
  get isSettling(): boolean {
    return this.#settling !== null;
  }

  /** Sends a follower all members of a room next. */
  resend(name: string, follower: RoomFollower): void {
    this.#rooms.get(name)?.resend((subscriber) => subscriber === follower);
  }

  /** Handles the end of a follower's link: the clients of its members may come back. */
  lost(follower: RoomFollower): void {
    for (const room of this.#rooms.values()) {
      if (!room.hasSubscriber(follower)) continue;
      for (const [id, { owner }] of [...room.members]) {
        if (owner === follower) this.leave(room.name, id, { subscriber: follower, grace: true });
      }
    }
  }

  /** Returns the members of a room. */
  list(name: string): PresentMember[] {
    return presentMembers(this.#rooms.get(name)?.members ?? new Map());
  }

  get totals(): Pick<RoomSummary, "rooms" | "members"> {
    const sizes = Array.from(this.#rooms.values(), ({ members }) => members.size).filter((size) => size > 0);
    return { rooms: sizes.length, members: sizes.reduce((sum, size) => sum + size, 0) };
  }

  get summary(): RoomSummary {
    const { shownRoomsMax, shownMembersMax } = presenceLimits;
    const rooms = [...this.#rooms.values()].filter(({ members }) => members.size > 0);
    const largest = rooms.toSorted((a, b) => b.members.size - a.members.size).slice(0, shownRoomsMax);
    return {
      ...this.totals,
      largest: largest.map(({ name, members }) => ({
        room: name,
        size: members.size,
        members: presentMembers(members.entries().take(shownMembersMax)),
      })),
    };
  }

  [Symbol.dispose](): void {
    this.#settling?.cancel();
    this.#absenceCheck?.cancel();
    this.#frames[Symbol.dispose]();
  }

  #remove(room: Room<HubMember>, id: string): void {
    room.remove(id);
    this.#frames.schedule(room);
  }

  #expectBack(room: Room<HubMember>, id: string, member: HubMember): void {
    const absent = { ...member, owner: null };
    room.put(id, absent);
    this.#absent.set(absent, { room, id, endsAt: this.#clock.now() + presenceLimits.graceMs });
    this.#absenceCheck ??= this.#clock.every(presenceLimits.graceCheckMs, () => this.#endAbsences());
  }

  #endAbsences(): void {
    const now = this.#clock.now();
    for (const [member, { room, id, endsAt }] of this.#absent) {
      // In the order of their ends.
      if (endsAt > now) break;
      this.#absent.delete(member);
      this.#remove(room, id);
    }
    if (this.#absent.size > 0) return;
    this.#absenceCheck?.cancel();
    this.#absenceCheck = null;
  }

  #settle(): void {
    this.#settling = null;
    for (const room of this.#rooms.values()) {
      room.resend((subscriber) => subscriber instanceof RoomFollower);
      this.#frames.schedule(room);
    }
  }

  #forgetUnused(room: Room): void {
    if (room.isUnused && this.#rooms.get(room.name) === room) this.#rooms.delete(room.name);
  }
}

/** A server that follows: its members belong to it, and it receives the frames of their rooms. */
export class RoomFollower implements RoomSubscriber {
  readonly #hub: RoomHub;
  readonly #output: FollowerOutput;

  constructor(hub: RoomHub, output: FollowerOutput) {
    this.#hub = hub;
    this.#output = output;
  }

  receive(changes: readonly RoomChange[]): void {
    const hub = this.#hub;
    for (const change of changes) {
      const { room, id } = change;
      if (change.t === "join") {
        hub.join(room, id, change, this);
        if (change.needsWhole) hub.resend(room, this);
      } else if (change.t === "update") hub.update(room, id, change.state, this);
      else hub.leave(room, id, { subscriber: this, grace: change.grace });
    }
  }

  send(room: string, { whole, text }: RoomFrame): boolean {
    const kind = !whole ? "change" : this.#hub.isSettling ? "merge" : "whole";
    return this.#output.frame(room, kind, text);
  }

  full(room: string, id: string): void {
    this.#output.full(room, id);
  }

  /** The link has ended. */
  close(): void {
    this.#hub.lost(this);
  }
}

function presentMembers(members: Iterable<[string, Member]>): PresentMember[] {
  return Array.from(members, ([id, { userId, info, state }]) => ({
    id,
    userId,
    info: JSON.parse(info),
    state: JSON.parse(state),
  }));
}
