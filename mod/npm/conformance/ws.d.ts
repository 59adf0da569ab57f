/** The part of the package ws that the scripted server uses. */
import type { Buffer } from "node:buffer";
import type { Server } from "node:http";

export class WebSocket {
  on(event: "message", listener: (data: Buffer, isBinary: boolean) => void): this;
  on(event: "close", listener: () => void): this;
  on(event: "pong", listener: (data: Buffer) => void): this;
  on(event: "error", listener: (error: Error) => void): this;
  send(data: string, options?: { readonly fin: boolean }): void;
  ping(data: string): void;
  close(code: number, reason: string): void;
  /** Ends the connection without a close frame. */
  terminate(): void;
}

export class WebSocketServer {
  constructor(options: { readonly server: Server; readonly path: string });
  on(event: "connection", listener: (socket: WebSocket) => void): this;
  close(): void;
}
