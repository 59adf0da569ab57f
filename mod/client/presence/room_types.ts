/** Types of rooms. */
import type { FunctionError } from "../errors.ts";
import type { JsonObject } from "../json_args.ts";

/** The state of a client in a room: a small JSON object, at most 2,048 characters. */
export type RoomState = JsonObject;

/** A client in a room. */
export interface PresentClient<State = RoomState, Info = unknown> {
  /** It keeps the id when it reconnects. */
  readonly id: string;
  /** Id of the signed-in user, or `null`. */
  readonly userId: string | null;
  /** Result of the app's function `presence:authorize` for this client. */
  readonly info: Info;
  /** State that the client has set. The server does not check it. */
  readonly state: State;
}

/** A room as one client sees it. The same object until something changes. */
export interface RoomView<State = RoomState, Info = unknown> {
  /** All clients in the room, with this one. Empty until it has joined. */
  readonly members: readonly PresentClient<State, Info>[];
  /** The other clients in the room. */
  readonly others: readonly PresentClient<State, Info>[];
  /** This client as the others see it; `null` until it has joined. */
  readonly self: PresentClient<State, Info> | null;
  /** Why the server refused this client or its newest state; `null` if it did not. */
  readonly error: FunctionError | null;
}

export interface RoomOptions {
  /** Shortest time between two updates, in milliseconds. Default: 100. */
  readonly throttleMs?: number;
}

/** One use of a room. */
export interface RoomHandle<State = RoomState, Info = unknown> {
  readonly view: RoomView<State, Info>;
  /**
   * Replaces the state. Changes within the throttle interval are sent together. If a page uses a room several times, the others see
   * the fields of all its states.
   */
  update(state: State): void;
  /** Calls `listener` after each change of `view`. Returns a function that removes it. */
  onChange(listener: () => void): () => void;
  /** Ends this use. The client leaves the room after its last one. */
  leave(): void;
}
