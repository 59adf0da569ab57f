/** The real WebSocket behind a connection. */
import type { Channel } from "./channel.ts";
import { closeCodes } from "./close_codes.ts";
import type { SocketHandle } from "../hub.ts";

/** Connects an upgraded WebSocket, open or about to open, to the hub. */
export function acceptSocket(socket: WebSocket, connect: (channel: Channel) => SocketHandle | null): void {
  let handle: SocketHandle | null = null;
  const open = () => {
    handle = connect(new WebSocketChannel(socket));
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

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  get bufferedAmount(): number {
    return this.#socket.bufferedAmount;
  }

  send(text: string): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text);
  }

  close(code: number, reason: string): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.close(code, reason);
  }
}
