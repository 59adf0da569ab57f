/** A client that watches one query over a socket and connects to the next server when it is cut off. */
export interface SocketViewOptions<Shown> {
  /** The first server. */
  readonly at: number;
  /** A query without arguments. */
  readonly udfPath: string;
  /** Called with each result. */
  readonly look: (shown: Shown, at: ShownAt) => void;
}

export interface ShownAt {
  readonly url: string;
  readonly ts: number;
  /** Counts its connections. */
  readonly connection: number;
  /** Time since the connection was requested. */
  readonly ageMs: number;
}

export class SocketView<Shown> {
  readonly #urls: readonly string[];
  readonly #options: SocketViewOptions<Shown>;
  #socket: WebSocket | null = null;
  #connections: number;
  #closed = false;
  seen = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(urls: readonly string[], options: SocketViewOptions<Shown>) {
    this.#urls = urls;
    this.#options = options;
    this.#connections = options.at;
    this.#connect();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    const socket = this.#socket;
    if (socket === null || socket.readyState === WebSocket.CLOSED) return;
    const closed = new Promise((resolve) => socket.addEventListener("close", resolve));
    socket.close();
    await closed;
  }

  #connect(): void {
    if (this.#closed) return;
    const connection = this.#connections++;
    const url = this.#urls[connection % this.#urls.length] ?? "";
    const socket = this.#socket = new WebSocket(`${url.replace(/^http/, "ws")}/api/sync`);
    // A frozen server does not report its state.
    const from = performance.now();
    let heard = from;
    const watch = setInterval(() => {
      if (performance.now() - heard > 5_000) socket.close();
    }, 500);
    socket.onopen = () => {
      socket.send(JSON.stringify({
        type: "Connect",
        sessionId: crypto.randomUUID(),
        connectionCount: 0,
        lastCloseReason: null,
        clientVersion: "test",
      }));
      const { udfPath } = this.#options;
      const modifications = [{ type: "Add", queryId: 0, udfPath, args: {} }];
      socket.send(JSON.stringify({ type: "ModifyQuerySet", baseVersion: 0, newVersion: 1, modifications }));
    };
    socket.onmessage = ({ data }) => {
      heard = performance.now();
      this.#take(JSON.parse(data), { url, connection, ageMs: heard - from });
    };
    socket.onerror = () => {};
    socket.onclose = () => {
      clearInterval(watch);
      if (this.#socket === socket) this.#timer = setTimeout(() => this.#connect(), 50);
    };
  }

  // deno-lint-ignore no-explicit-any -- messages of many shapes
  #take(message: any, at: Omit<ShownAt, "ts">): void {
    if (message.type !== "Transition") return;
    for (const { type, value } of message.modifications) {
      if (type !== "QueryUpdated") continue;
      this.seen++;
      const { ts } = message.endVersion;
      this.#options.look(value as Shown, { ...at, ts });
    }
  }
}
