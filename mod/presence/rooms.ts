/** The rooms as sockets use them, and the messages between a follower and the rooms of its leader. */
import type { Member, RoomSubscriber } from "./room.ts";

/** Implemented by {@linkcode RoomHub} on a server that leads, and by {@linkcode FollowedRooms} on its followers. */
export interface Rooms {
  /**
   * Adds a member, or replaces it with all its fields and takes it over from another subscriber. Has no effect if a newer connection
   * of its client owns it.
   */
  join(room: string, id: string, member: Member, subscriber: RoomSubscriber): void;
  /** Has no effect if the member does not belong to the subscriber. */
  update(room: string, id: string, state: string, subscriber: RoomSubscriber): void;
  /** Removes a member of the subscriber. With `grace`, its client has a few seconds to come back. */
  leave(room: string, id: string, { subscriber, grace }: LeaveOptions): void;
}

export interface LeaveOptions {
  readonly subscriber: RoomSubscriber;
  readonly grace: boolean;
}

/** A change of a follower's member. `needsWhole`: the follower lacks the other members of the room. */
export type RoomChange =
  | (
    & { readonly t: "join"; readonly room: string; readonly id: string; readonly needsWhole: boolean }
    & Member
  )
  | { readonly t: "update"; readonly room: string; readonly id: string; readonly state: string }
  | { readonly t: "leave"; readonly room: string; readonly id: string; readonly grace: boolean };

/**
 * The kind of a frame for a follower. `merge` contains all members that a new leader knows so far: others may belong to servers
 * that have not connected yet.
 */
export type FrameKind = "change" | "whole" | "merge";

/** The connection of a follower to the rooms of its leader. */
export interface RoomLink {
  /** Sets the recipient; `null` when its server stops. */
  attach(rooms: RoomLinkEvents | null): void;
  /** Whether the leader reads so slowly that changes should wait for their successors. */
  readonly isBusy: boolean;
  /** Returns `false` if there is no leader now: all members are sent again when there is one. */
  send(changes: readonly RoomChange[]): boolean;
}

export interface RoomLinkEvents {
  /** A link to a leader has opened. */
  opened(): void;
  frame(room: string, kind: FrameKind, text: string): void;
  full(room: string, id: string): void;
}

/** Sends frames of rooms to one follower. */
export interface FollowerOutput {
  /** Returns `false` if too much is queued. */
  frame(room: string, kind: FrameKind, text: string): boolean;
  full(room: string, id: string): void;
}

/** A member as actions and the dashboard read it. */
export interface PresentMember {
  readonly id: string;
  readonly userId: string | null;
  readonly info: unknown;
  readonly state: unknown;
}
