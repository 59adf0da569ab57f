/** A proxy that carries HTTP and refuses WebSockets, as some networks do, until a test allows them. */

export class SocketBlocker implements AsyncDisposable {
  readonly #target: string;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #bridges = new Set<WebSocket>();
  /** Whether WebSockets are refused. */
  blocked = true;
  /** WebSockets that were refused. */
  refused = 0;

  /** `target` is the address of the server. */
  constructor(target: string) {
    this.#target = target;
    this.#server = Deno.serve(
      // A client that disconnects during a request is expected.
      {
        hostname: "127.0.0.1",
        port: 0,
        onListen: () => {},
        onError: () => new Response(null, { status: 502 }),
      },
      (request) => this.#handle(request),
    );
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Closes all WebSockets. */
  cut(): void {
    for (const socket of this.#bridges) socket.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await this.#server.shutdown();
  }

  #handle(request: Request): Response | Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const address = `${this.#target}${pathname}${search}`;
    if (request.headers.get("upgrade") === null) return fetch(new Request(address, request));
    if (this.blocked) {
      this.refused++;
      return new Response("blocked", { status: 403 });
    }
    const { socket, response } = Deno.upgradeWebSocket(request);
    const behind = new WebSocket(address.replace("http", "ws"));
    const held: string[] = [];
    socket.onmessage = ({ data }) => behind.readyState === behind.OPEN ? behind.send(data) : held.push(data);
    behind.onopen = () => held.splice(0).forEach((data) => behind.send(data));
    behind.onmessage = ({ data }) => socket.readyState === socket.OPEN && socket.send(data);
    socket.onclose = () => behind.close();
    behind.onclose = () => socket.close();
    for (const end of [socket, behind]) end.addEventListener("close", () => this.#bridges.delete(end));
    this.#bridges.add(socket).add(behind);
    return response;
  }
}
