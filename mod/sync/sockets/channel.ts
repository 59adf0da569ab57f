/** What the hub needs of a socket. Real ones are in socket.ts, tests have pairs flushed by hand. */

/** How much a client is let send ahead of what has been read. */
export type Ahead = "little" | "usual";

export interface Channel {
  /** Sends a text frame, or nothing when the socket is no longer open. */
  send(text: string): void;
  /** Closes with a code and a short reason; what was sent before leaves first. */
  close(code: number, reason: string): void;
  /** Nothing is done where the system cannot do it. */
  letAhead(how: Ahead): void;
  /** Ends the connection at once; what has not left yet is dropped. */
  cut(): void;
  /** Bytes sent that have not left yet. */
  readonly bufferedAmount: number;
  /** Bytes that the other side has acknowledged, `null` when that cannot be known. */
  readonly takenBytes: number | null;
}
