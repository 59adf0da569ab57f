/** Sockets of a test in Node, connected to the hub of a server in another process. */
import type { WebSocketFactory, WebSocketLike } from "../../client/mod.ts";
import type { ServersProcess } from "./servers_process.ts";

/** Returns a `WebSocket` class whose sockets connect to a server. */
export function tunnelSockets(servers: ServersProcess, server: number): WebSocketFactory {
  return class TunnelSocket implements WebSocketLike {
    onopen: ((event: never) => void) | null = null;
    onmessage: ((event: never) => void) | null = null;
    onclose: ((event: never) => void) | null = null;
    onerror: ((event: never) => void) | null = null;
    readonly #number = servers.number();
    #closed = false;

    constructor(_url: string) {
      servers.addSocket(this.#number, {
        received: (text) => {
          if (!this.#closed) this.onmessage?.({ data: text } as never);
        },
        closed: (code, reason) => this.#end(code, reason),
      });
      servers.send("socketOpen", { server, socket: this.#number });
      queueMicrotask(() => {
        if (!this.#closed) this.onopen?.({} as never);
      });
    }

    send(text: string): void {
      if (!this.#closed) servers.send("socketSend", { socket: this.#number, text });
    }

    close(code = 1000, reason = ""): void {
      if (this.#closed) return;
      servers.send("socketClose", { socket: this.#number });
      this.#end(code, reason);
    }

    #end(code: number, reason: string): void {
      if (this.#closed) return;
      this.#closed = true;
      servers.removeSocket(this.#number);
      queueMicrotask(() => this.onclose?.({ code, reason } as never));
    }
  };
}
