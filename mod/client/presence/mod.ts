/**
 * `syncline/presence`: rooms with the ephemeral state of connected clients, such as cursors and typing indicators. Browser-safe, and
 * apart from the core so that apps without it do not load it.
 *
 * @module
 */
export { joinRoom } from "./join_room.ts";
export type { PresentClient, RoomHandle, RoomOptions, RoomState, RoomView } from "./room_types.ts";
