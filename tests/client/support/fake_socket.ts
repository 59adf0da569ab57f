/** WebSockets in memory: the test plays the server. */
import type { ClientMessage } from "../../../mod/protocol/client_messages.ts";
import type { ServerMessage } from "../../../mod/protocol/server_messages.ts";
import type { WebSocketFactory, WebSocketLike } from "../../../mod/client/connection/socket_driver.ts";

export class FakeSocket implements WebSocketLike {
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;
  onerror: ((event: never) => void) | null = null;
  readonly url: string;
  /** Messages the client has sent, oldest first. */
  readonly sent: ClientMessage[] = [];
  /** Whether the client has closed it. */
  dropped = false;
  /** Set to make sending fail. */
  sendError: Error | null = null;
  #taken = 0;

  constructor(url: string) {
    this.url = url;
  }

  send(data: string): void {
    if (this.sendError !== null) throw this.sendError;
    this.sent.push(JSON.parse(data));
  }

  close(): void {
    this.dropped = true;
  }

  /** Returns the messages the client has sent since the last call. */
  take(): ClientMessage[] {
    const messages = this.sent.slice(this.#taken);
    this.#taken = this.sent.length;
    return messages;
  }

  open(): void {
    this.#emit(this.onopen, {});
  }

  receive(message: ServerMessage): void {
    this.receiveData(JSON.stringify(message));
  }

  /** Sends any frame, also an unknown one. */
  receiveData(data: unknown): void {
    this.#emit(this.onmessage, { data });
  }

  closeWith(code: number, reason = ""): void {
    this.#emit(this.onclose, { code, reason });
  }

  #emit(handler: ((event: never) => void) | null, event: unknown): void {
    handler?.(event as never);
  }
}

/** A factory whose sockets are available to the test. */
export class FakeSockets {
  readonly all: FakeSocket[] = [];
  readonly factory: WebSocketFactory;
  /** Set to make the factory throw. */
  refuse: Error | null = null;

  constructor() {
    const made = (url: string): FakeSocket => {
      if (this.refuse !== null) throw this.refuse;
      const socket = new FakeSocket(url);
      this.all.push(socket);
      return socket;
    };
    this.factory = class {
      constructor(url: string) {
        return made(url);
      }
    } as unknown as WebSocketFactory;
  }

  /** The newest socket. */
  get last(): FakeSocket {
    const socket = this.all.at(-1);
    if (socket === undefined) throw new Error("The client has opened no socket");
    return socket;
  }
}
