/** A client that watches one query by a socket, goes to the next server when it is cut off, and never sees a step back. */
interface Shown {
  readonly total: number;
  readonly done: number;
}

export class SocketView {
  readonly #urls: readonly string[];
  readonly #options: { readonly at: number; readonly total: number; readonly faults: string[] };
  #socket: WebSocket | null = null;
  #connections: number;
  #closed = false;
  /** The most that was ever shown. */
  #done = 0;
  #ts = 0;
  seen = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    urls: readonly string[],
    options: { readonly at: number; readonly total: number; readonly faults: string[] },
  ) {
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
    const url = this.#urls[this.#connections++ % this.#urls.length] ?? "";
    const socket = this.#socket = new WebSocket(`${url.replace(/^http/, "ws")}/api/sync`);
    // One that is frozen does not even say that it is.
    let heard = performance.now();
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
      const modifications = [{ type: "Add", queryId: 0, udfPath: "bank:look", args: {} }];
      socket.send(JSON.stringify({ type: "ModifyQuerySet", baseVersion: 0, newVersion: 1, modifications }));
    };
    socket.onmessage = ({ data }) => {
      heard = performance.now();
      this.#take(JSON.parse(data), url);
    };
    socket.onerror = () => {};
    socket.onclose = () => {
      clearInterval(watch);
      if (this.#socket === socket) this.#timer = setTimeout(() => this.#connect(), 50);
    };
  }

  // deno-lint-ignore no-explicit-any -- messages of many shapes
  #take(message: any, url: string): void {
    if (message.type !== "Transition") return;
    for (const { type, value } of message.modifications) {
      if (type !== "QueryUpdated") continue;
      const { total, done } = value as Shown;
      this.seen++;
      const { ts } = message.endVersion;
      if (total !== this.#options.total && (total !== 0 || done !== 0)) {
        this.#options.faults.push(`${url} shows a total of ${total} at ts ${ts}`);
      }
      if (done < this.#done || ts < this.#ts) {
        this.#options.faults.push(
          `${url} goes back from ${this.#done} at ts ${this.#ts} to ${done} at ts ${ts}`,
        );
      }
      this.#done = Math.max(done, this.#done);
      this.#ts = Math.max(ts, this.#ts);
    }
  }
}
