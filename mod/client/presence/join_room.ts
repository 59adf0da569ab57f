/** Joins rooms over the socket of a client. */
import type { RoomMember, RoomMessage } from "../../protocol/server_messages.ts";
import type { SynclineClient } from "../client.ts";
import { FunctionError, reportUnhandled } from "../errors.ts";
import type { PresentClient, RoomHandle, RoomOptions, RoomState, RoomView } from "./room_types.ts";

const THROTTLE_MS = 100;

const emptyView: RoomView = Object.freeze({ members: [], others: [], self: null, error: null });

/** A room that the client is in, or wants to be in. */
class JoinedRoom {
  readonly handles = new Set<Handle>();
  readonly #name: string;
  readonly #send: (message: object) => boolean;
  readonly #members = new Map<string, PresentClient>();
  #self: string | null = null;
  #error: FunctionError | null = null;
  /** The state that was sent on this socket, as JSON; `null` if none was. */
  #sent: string | null = null;
  #sentAt = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #view: RoomView | null = emptyView;

  constructor(name: string, send: (message: object) => boolean) {
    this.#name = name;
    this.#send = send;
  }

  get view(): RoomView {
    return this.#view ??= this.#createView();
  }

  /** Sends the state if it has changed, at the latest after the throttle interval. */
  update(): void {
    if (this.#timer !== undefined) return;
    const throttleMs = Math.min(...Array.from(this.handles, (handle) => handle.throttleMs));
    const waitMs = this.#sentAt + throttleMs - Date.now();
    // A clock that was set back must not stop updates.
    if (waitMs <= 0 || waitMs > throttleMs) return this.#sendState();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#sendState();
    }, waitMs);
  }

  /** A new socket is open, or the last one was lost. */
  socketChanged(): void {
    this.#sent = null;
    this.#sentAt = -Infinity;
    this.stop();
    this.#sendState();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  receive(message: RoomMessage): void {
    switch (message.type) {
      case "RoomJoined":
        this.#self = message.self;
        this.#error = null;
        return;
      case "RoomState":
        this.#members.clear();
        this.#put(message.members);
        break;
      case "RoomChanged":
        this.#put(message.joined);
        for (const [id, state] of Object.entries(message.states ?? {})) {
          const member = this.#members.get(id);
          if (member !== undefined) this.#members.set(id, { ...member, state: state as RoomState });
        }
        for (const id of message.left ?? []) this.#members.delete(id);
        break;
      case "RoomRefused": {
        const { errorMessage, errorData } = message;
        const call = { udfPath: "presence:authorize", errorData, logLines: [] };
        this.#error = new FunctionError(errorMessage, call);
        if (!message.isMember) this.#members.clear();
        break;
      }
    }
    this.#changed();
  }

  #put(members: Readonly<Record<string, RoomMember>> = {}): void {
    for (const [id, member] of Object.entries(members)) {
      this.#members.set(id, { id, ...member } as PresentClient);
    }
  }

  #sendState(): void {
    const state = Object.assign({}, ...Array.from(this.handles, (handle) => handle.state));
    const text = JSON.stringify(state);
    if (text === this.#sent || !this.#send({ type: "SetPresence", room: this.#name, state })) return;
    this.#sent = text;
    this.#sentAt = Date.now();
    // A member's error is about an earlier state.
    if (this.#error === null || this.#members.size === 0) return;
    this.#error = null;
    this.#changed();
  }

  #changed(): void {
    this.#view = null;
    for (const handle of [...this.handles]) handle.notify();
  }

  #createView(): RoomView {
    const members = [...this.#members.values()];
    const self = this.#members.get(this.#self ?? "") ?? null;
    return { members, others: members.filter((member) => member !== self), self, error: this.#error };
  }
}

/** The rooms of one client. */
class ClientRooms {
  readonly #rooms = new Map<string, JoinedRoom>();
  readonly #send: (message: object) => boolean;
  /** Attempt that opened the current socket; `null` without a socket. */
  #socket: number | null = null;

  constructor(client: SynclineClient) {
    this.#send = client.extend((message) => {
      const { type, room } = message as RoomMessage;
      if (/^Room/.test(type)) this.#rooms.get(room)?.receive(message as RoomMessage);
    });
    const changed = () => {
      const { transport, connectionCount } = client.connectionState();
      const socket = transport === "webSocket" ? connectionCount : null;
      if (socket === this.#socket) return;
      this.#socket = socket;
      for (const room of this.#rooms.values()) room.socketChanged();
    };
    client.onConnectionState(changed);
    changed();
  }

  join(name: string, handle: Handle): JoinedRoom {
    let room = this.#rooms.get(name);
    if (room === undefined) this.#rooms.set(name, room = new JoinedRoom(name, this.#send));
    room.handles.add(handle);
    room.update();
    return room;
  }

  leave(name: string, handle: Handle): void {
    const room = this.#rooms.get(name);
    if (room?.handles.delete(handle) !== true) return;
    if (room.handles.size > 0) return room.update();
    room.stop();
    this.#rooms.delete(name);
    this.#send({ type: "LeaveRoom", room: name });
  }
}

class Handle implements RoomHandle {
  state: RoomState;
  readonly throttleMs: number;
  readonly #rooms: ClientRooms;
  readonly #name: string;
  readonly #room: JoinedRoom;
  readonly #listeners = new Set<() => void>();

  constructor(
    rooms: ClientRooms,
    name: string,
    { state, throttleMs }: { state: RoomState; throttleMs: number },
  ) {
    this.state = state;
    this.throttleMs = throttleMs;
    this.#rooms = rooms;
    this.#name = name;
    this.#room = rooms.join(name, this);
  }

  get view(): RoomView {
    return this.#room.view;
  }

  update(state: RoomState): void {
    this.state = state;
    if (this.#room.handles.has(this)) this.#room.update();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  leave(): void {
    this.#listeners.clear();
    this.#rooms.leave(this.#name, this);
  }

  notify(): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener();
      } catch (error) {
        reportUnhandled(error);
      }
    }
  }
}

const roomsOf = new WeakMap<SynclineClient, ClientRooms>();

/**
 * Joins a room with a state that the other clients in it see at once. The client stays in the room over reconnects, until
 * {@linkcode RoomHandle.leave} or its end. The app's function `presence:authorize` decides which clients may join.
 *
 * @example
 * ```ts
 * const room = joinRoom(client, "board 7", { cursor: null as { x: number; y: number } | null });
 * room.onChange(() => showCursors(room.view.others));
 * board.onpointermove = ({ x, y }) => room.update({ cursor: { x, y } });
 * ```
 */
export function joinRoom<State extends RoomState, Info = unknown>(
  client: SynclineClient,
  room: string,
  state: State,
  { throttleMs = THROTTLE_MS }: RoomOptions = {},
): RoomHandle<State, Info> {
  let rooms = roomsOf.get(client);
  if (rooms === undefined) roomsOf.set(client, rooms = new ClientRooms(client));
  return new Handle(rooms, room, { state, throttleMs }) as unknown as RoomHandle<State, Info>;
}
