/** The rooms of a follower over its link: connects those of its current backend with those of the current leader. */
import { presenceLimits } from "../presence/limits.ts";
import type { RoomChange, RoomLink, RoomLinkEvents } from "../presence/mod.ts";
import type { LeaderConnection } from "./leader_connection.ts";

type RoomConnection = Pick<LeaderConnection, "changeRooms" | "ended" | "unsentBytes">;

export class LeaderRooms implements RoomLink {
  #rooms: RoomLinkEvents | null = null;
  #connection: RoomConnection | null = null;

  attach(rooms: RoomLinkEvents | null): void {
    this.#rooms = rooms;
    if (this.#connection !== null) rooms?.opened();
  }

  /** A connection to a leader has opened. Returns the handlers of its messages. A later connection replaces it. */
  use(connection: RoomConnection): Pick<RoomLinkEvents, "frame" | "full"> {
    this.#connection = connection;
    connection.ended.then(() => {
      if (this.#connection === connection) this.#connection = null;
    });
    this.#rooms?.opened();
    const current = () => this.#connection === connection ? this.#rooms : null;
    return {
      frame: (room, kind, text) => current()?.frame(room, kind, text),
      full: (room, id) => current()?.full(room, id),
    };
  }

  get isBusy(): boolean {
    return (this.#connection?.unsentBytes ?? 0) > presenceLimits.linkBytesMax;
  }

  send(changes: readonly RoomChange[]): boolean {
    return this.#connection?.changeRooms(changes) ?? false;
  }
}
