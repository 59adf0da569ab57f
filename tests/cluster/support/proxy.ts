/** A proxy in front of a cluster: connections go to ready servers, and sockets to one after the other. */
import { closeQuietly } from "../../../mod/kit/local_socket.ts";

const LOOK_MS = 250;
const CHUNK_BYTES = 65_536;

/** Start of a socket request. */
const SYNC = "GET /api/sync";

interface Server {
  readonly name: string;
  /** Its public port. */
  readonly url: string;
}

export class Proxy<To extends Server> implements AsyncDisposable {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #servers: readonly To[];
  readonly #pairs = new Set<Deno.Conn[]>();
  readonly #carrying = new Set<Promise<void>>();
  readonly #loop: Promise<void>;
  readonly #looking: Promise<void>;
  /** Servers that were ready at the last check. */
  ready: readonly To[] = [];
  #next = 0;
  #closed = false;
  /** Servers of the open sockets, in the order in which they connected. */
  readonly sockets: To[] = [];

  constructor(servers: readonly To[]) {
    this.#servers = servers;
    this.#loop = this.#accept();
    this.#looking = this.#look();
  }

  get url(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}/`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    closeQuietly(this.#listener);
    for (const conn of [...this.#pairs].flat()) closeQuietly(conn);
    await Promise.all([this.#loop, this.#looking, ...this.#carrying]);
  }

  async #look(): Promise<void> {
    while (!this.#closed) {
      const ready = await Promise.all(this.#servers.map(async ({ url }) => {
        const signal = AbortSignal.timeout(2_000);
        const answer = await fetch(`${url}/api/health/ready`, { signal }).catch(() => null);
        await answer?.body?.cancel();
        return answer?.ok === true;
      }));
      this.ready = this.#servers.filter((_, at) => ready[at]);
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  async #accept(): Promise<void> {
    try {
      for await (const near of this.#listener) {
        const carrying = this.#carry(near).finally(() => this.#carrying.delete(carrying));
        this.#carrying.add(carrying);
      }
    } catch (error) {
      if (!this.#closed) throw error;
    }
  }

  /** Never rejects: the end of one side ends the other. */
  async #carry(near: Deno.Conn): Promise<void> {
    const pair = [near];
    this.#pairs.add(pair);
    let socketAt: To | undefined;
    try {
      const chunk = new Uint8Array(CHUNK_BYTES);
      const length = await near.read(chunk);
      const server = this.ready[this.#next % this.ready.length];
      if (length === null || server === undefined) return;
      const begin = new TextDecoder().decode(chunk.subarray(0, SYNC.length));
      if (begin === SYNC) {
        this.#next++;
        this.sockets.push(socketAt = server);
      }
      const far = await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(server.url).port) });
      pair.push(far);
      await write(far, chunk.subarray(0, length));
      await Promise.race([pass(near, far), pass(far, near)]);
    } catch {
      // The client reconnects.
    } finally {
      if (socketAt !== undefined) this.sockets.splice(this.sockets.indexOf(socketAt), 1);
      this.#pairs.delete(pair);
      for (const conn of pair) closeQuietly(conn);
    }
  }
}

async function pass(from: Deno.Conn, to: Deno.Conn): Promise<void> {
  const chunk = new Uint8Array(CHUNK_BYTES);
  for (;;) {
    const length = await from.read(chunk).catch(() => null);
    if (length === null) return;
    await write(to, chunk.subarray(0, length)).catch(() => closeQuietly(to));
  }
}

async function write(to: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await to.write(bytes.subarray(sent));
}
