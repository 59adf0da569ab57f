/** The socket interface of the hub. Implemented by socket.ts and by test doubles. */

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
