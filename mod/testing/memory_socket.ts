/** In-memory sockets between a client and a hub in one process. Frames arrive in order, one an event loop tick. */
import type { WebSocketFactory, WebSocketLike } from "../client/mod.ts";
import type { Hub, SocketHandle } from "../sync/mod.ts";

/** Returns a `WebSocket` class whose sockets connect to a hub. */
export function memorySockets(hub: Hub): WebSocketFactory {
  return class MemorySocket implements WebSocketLike {
    onopen: ((event: never) => void) | null = null;
    onmessage: ((event: never) => void) | null = null;
    onclose: ((event: never) => void) | null = null;
    onerror: ((event: never) => void) | null = null;
    /** The hub's end of an open socket. */
    #handle: SocketHandle | null = null;
    #closed = false;

    constructor(_url: string) {
      queueMicrotask(() => {
        if (this.#closed) return;
        this.#handle = hub.connect({
          bufferedAmount: 0,
          acknowledgedBytes: null,
          setReceiveWindow: () => {},
          cut: () => this.#later(() => this.#end(1006, "")),
          send: (text) => this.#later(() => this.onmessage?.({ data: text } as never)),
          close: (code, reason) => this.#later(() => this.#end(code, reason)),
        });
        if (this.#handle !== null) this.onopen?.({} as never);
      });
    }

    send(text: string): void {
      this.#later(() => this.#handle?.receive(text));
    }

    close(code = 1000, reason = ""): void {
      this.#end(code, reason);
    }

    #later(run: () => void): void {
      queueMicrotask(() => {
        if (!this.#closed) run();
      });
    }

    #end(code: number, reason: string): void {
      if (this.#closed) return;
      this.#closed = true;
      this.#handle?.closed();
      queueMicrotask(() => this.onclose?.({ code, reason } as never));
    }
  };
}
