/** The real WebSocket behind a connection. */
import type { Ahead, Channel } from "./channel.ts";
import { closeCodes } from "./close_codes.ts";

/** The connection below a socket, as far as it can be reached. */
export interface SocketConnection {
  /** Ends it at once. Returns whether that was possible. */
  cut(): boolean;
  /** Bytes that the other side has acknowledged, `null` when that cannot be known. */
  takenBytes(): number | null;
  /** How much the other side is let send ahead of what has been read. */
  letAhead(how: Ahead): void;
}

/** One open socket as its owner drives it. */
export interface SocketHandle {
  /** A text frame came. */
  receive(text: string): void;
  /** Something else than a text frame came. */
  refuse(fault: string, closeCode: number): void;
  /** The socket is closed, by whichever side. */
  closed(): void;
}

/** Connects an upgraded WebSocket, open or about to open, to the hub. */
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
  // A close event follows every error; what went wrong is the network's or the client's affair.
  socket.onerror = () => {};
  socket.onclose = () => handle?.closed();
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

  get takenBytes(): number | null {
    return this.#connection.takenBytes();
  }

  letAhead(how: Ahead): void {
    this.#connection.letAhead(how);
  }

  cut(): void {
    // Where the connection cannot be reached, the runtime lets go of it when its pings are not answered.
    if (!this.#connection.cut()) this.close(closeCodes.overloaded, "cut off");
  }

  get bufferedAmount(): number {
    return this.#socket.bufferedAmount;
  }

  send(text: string): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text);
  }

  close(code: number, reason: string): void {
    // In a turn of its own: the runtime ends a connection without a close frame when it still holds frames that came
    // with the one that is being handled.
    setTimeout(() => {
      if (this.#socket.readyState === WebSocket.OPEN) this.#socket.close(code, reason);
    }, 0);
  }
}
