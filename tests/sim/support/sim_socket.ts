/** One connection of a model client. The simulation moves its two queues of frames and decides when bytes are sent. */
import type { Channel, SocketHandle } from "../../../mod/sync/sockets/socket.ts";
import type { Hub } from "../../../mod/sync/hub.ts";

/** Each character counts as this many bytes, so that short frames fill a buffer. */
const BYTES_PER_CHAR = 400;

export class SimSocket implements Channel {
  readonly #toServer: string[] = [];
  readonly #toClient: string[] = [];
  readonly #handle: SocketHandle | null;
  #charsWaiting = 0;
  /** Whether the server has closed it: earlier messages still arrive. */
  closedWith: number | null = null;
  /** Whether the client has closed it: nothing arrives any more. */
  dropped = false;
  readonly acknowledgedBytes = null;
  /** While set the client does not read. */
  stalled = false;

  /** Where it is connected. */
  readonly hub: Hub;

  constructor(hub: Hub) {
    this.hub = hub;
    this.#handle = hub.connect(this);
  }

  get bufferedAmount(): number {
    return this.#charsWaiting * BYTES_PER_CHAR;
  }

  send(text: string): void {
    if (this.closedWith !== null) throw new Error("The server sends on a socket it has closed");
    this.#toClient.push(text);
    this.#charsWaiting += text.length;
  }

  close(code: number): void {
    this.closedWith ??= code;
    this.#handle?.closed();
  }

  setReceiveWindow(): void {}

  cut(): void {
    this.closedWith ??= 1006;
    this.#toClient.length = 0;
    this.#charsWaiting = 0;
    this.#handle?.closed();
  }

  drop(): void {
    this.dropped = true;
    this.#toServer.length = 0;
    this.#toClient.length = 0;
    this.#handle?.closed();
  }

  push(text: string): void {
    this.#toServer.push(text);
  }

  get busy(): boolean {
    return !this.dropped && (this.#toServer.length > 0 || this.#toClient.length > 0);
  }

  /** The newest frame that has not reached the client. */
  get newestFrame(): string | undefined {
    return this.#toClient.at(-1);
  }

  /** Moves up to `count` frames to the server. */
  deliverToServer(count: number): void {
    for (const text of this.#toServer.splice(0, count)) {
      if (this.closedWith === null) this.#handle?.receive(text);
    }
  }

  /** Returns up to `count` frames that have arrived at the client. */
  takeAtClient(count: number): string[] {
    if (this.dropped) return [];
    const taken = this.#toClient.splice(0, count);
    for (const text of taken) this.#charsWaiting -= text.length;
    return taken;
  }
}
