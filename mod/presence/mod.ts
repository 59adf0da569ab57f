/** Public API of `mod/presence`: rooms with the ephemeral state of connected clients. */
export { presenceActions } from "./actions.ts";
export { FollowedRooms } from "./followed_rooms.ts";
export type { RoomFollower } from "./room_hub.ts";
export { RoomHub, type RoomSummary } from "./room_hub.ts";
export type {
  FollowerOutput,
  FrameKind,
  PresentMember,
  RoomChange,
  RoomLink,
  RoomLinkEvents,
  Rooms,
} from "./rooms.ts";
export {
  AUTHORIZE_PATH,
  type PresenceContext,
  type PresentSocket,
  SocketPresence,
} from "./socket_presence.ts";
