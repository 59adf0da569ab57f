/** Rooms of connected clients: in this process on a server that leads, at the leader on its followers. */
import { FollowedRooms, presenceActions, RoomHub, type RoomLink, type Rooms } from "../../presence/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";

export interface PresenceFeature extends Feature {
  readonly rooms: Rooms;
  /** `null` on a server that follows: actions run at the leader. */
  readonly hub: RoomHub | null;
}

export function startPresence(
  _: FeatureContext,
  { leaderRooms }: { readonly leaderRooms: RoomLink | null },
): PresenceFeature {
  if (leaderRooms !== null) {
    const rooms = new FollowedRooms(leaderRooms);
    return { rooms, hub: null, [Symbol.asyncDispose]: () => Promise.resolve(rooms[Symbol.dispose]()) };
  }
  const hub = new RoomHub();
  return {
    rooms: hub,
    hub,
    ctxActions: presenceActions(hub),
    [Symbol.asyncDispose]: () => Promise.resolve(hub[Symbol.dispose]()),
  };
}
