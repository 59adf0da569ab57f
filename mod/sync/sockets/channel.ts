/** What the hub needs of a socket. Real ones are in socket.ts, tests have pairs flushed by hand. */

export interface Channel {
  /** Sends a text frame, or nothing when the socket is no longer open. */
  send(text: string): void;
  /** Closes with a code and a short reason; what was sent before leaves first. */
  close(code: number, reason: string): void;
  /** Bytes sent that have not left yet. */
  readonly bufferedAmount: number;
}
