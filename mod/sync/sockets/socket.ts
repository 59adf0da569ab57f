/** The sockets of the hub: their interface, close codes, and the implementation on a WebSocket. */

/** How much data a client may send before the server has read it. */
export type ReceiveWindow = "small" | "normal";

export interface Channel {
  /** Sends a text frame. No-op if the socket is no longer open. */
  send(text: string): void;
  /** Closes with a code and a short reason, after all frames sent before. */
  close(code: number, reason: string): void;
  /** No-op where the platform does not support it. */
  setReceiveWindow(how: ReceiveWindow): void;
  /** Aborts the connection. Drops unsent data. */
  cut(): void;
  /** Bytes sent but not yet transmitted. */
  readonly bufferedAmount: number;
  /** Bytes acknowledged by the peer, `null` if unknown. */
  readonly acknowledgedBytes: number | null;
}

/** Close codes used by the server (RFC 6455, section 7.4.1). Except for 1012, clients go by the message before the close. */
export const closeCodes = {
  unsupported: 1003,
  malformed: 1007,
  /** A protocol violation, an exceeded limit or an invalid token. */
  protocol: 1008,
  /** A frame over the size limit. */
  tooLong: 1009,
  /** A server error. */
  internal: 1011,
  /** Shutdown or takeover. Clients reconnect immediately. */
  restart: 1012,
  /** Too many sockets. */
  overloaded: 1013,
} as const;

/** Close codes of clients that do not come back at once: they closed the socket, or their page was closed. */
export const leavingCodes: ReadonlySet<number | undefined> = new Set([1000, 1001, 1005]);

/** The transport connection of a socket, as far as the platform exposes it. */
export interface SocketConnection {
  /** Aborts it. Returns whether that was possible. */
  cut(): boolean;
  /** Bytes acknowledged by the peer, `null` if unknown. */
  acknowledgedBytes(): number | null;
  /** Sets how much data the peer may send before the server has read it. */
  setReceiveWindow(how: ReceiveWindow): void;
}

/** Events of one open socket, reported by its owner. */
export interface SocketHandle {
  /** Reports a text frame. */
  receive(text: string): void;
  /** Reports an unsupported frame. */
  refuse(fault: string, closeCode: number): void;
  /** `code`: the close code that the client sent, 1006 if the connection was lost. */
  closed(code?: number): void;
}

/** Connects an upgraded WebSocket, open or connecting, to the hub. */
export function acceptSocket(
  socket: WebSocket,
  { connection, connect }: {
    readonly connection: SocketConnection;
    readonly connect: (channel: Channel) => SocketHandle | null;
  },
): void {
  let handle: SocketHandle | null = null;
  const open = () => {
    handle = connect(new WebSocketChannel(socket, connection));
  };
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") handle?.receive(data);
    else handle?.refuse("binary frame: every frame is JSON text", closeCodes.unsupported);
  };
  // Every error is followed by a close event.
  socket.onerror = () => {};
  socket.onclose = ({ code }) => handle?.closed(code);
  if (socket.readyState === WebSocket.OPEN) open();
  else socket.onopen = open;
}

class WebSocketChannel implements Channel {
  readonly #socket: WebSocket;
  readonly #connection: SocketConnection;

  constructor(socket: WebSocket, connection: SocketConnection) {
    this.#socket = socket;
    this.#connection = connection;
  }

  get acknowledgedBytes(): number | null {
    return this.#connection.acknowledgedBytes();
  }

  setReceiveWindow(how: ReceiveWindow): void {
    this.#connection.setReceiveWindow(how);
  }

  cut(): void {
    // Without access to the connection, the runtime drops it after unanswered pings.
    if (!this.#connection.cut()) this.close(closeCodes.overloaded, "cut off");
  }

  get bufferedAmount(): number {
    return this.#socket.bufferedAmount;
  }

  send(text: string): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text);
  }

  close(code: number, reason: string): void {
    // Deferred: the runtime ends a connection without a close frame if frames received with the current one are pending.
    setTimeout(() => {
      if (this.#socket.readyState === WebSocket.OPEN) this.#socket.close(code, reason);
    }, 0);
  }
}
