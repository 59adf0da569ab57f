/** A TCP proxy that treats connections badly: loses answers, stalls, falls silent, breaks in the middle of a frame. */

/**
 * Faults of a connection:
 * `cut` closes both ends at once; `loseAnswers` forwards the client's messages, drops the server's
 * answers, and closes a little later, so that commits stay unanswered; `halve` forwards half of the server's next
 * chunk and closes; `halfOpen` forwards nothing and closes nothing; `stall` delays everything for a while.
 */
export type Fault = "cut" | "loseAnswers" | "halve" | "halfOpen" | "stall";

export const FAULTS: readonly Fault[] = ["cut", "loseAnswers", "halve", "halfOpen", "stall"];

const LOSE_ANSWERS_MS = 30;
const STALL_MS = 60;
const CHUNK_BYTES = 16_384;

/** A connection with its two ends. */
class Link {
  readonly #client: Deno.TcpConn;
  readonly #server: Deno.TcpConn;
  #mode: "carry" | "loseAnswers" | "halve" | "silent" = "carry";
  #stalled: Promise<void> = Promise.resolve();
  #open = true;
  /** Scheduled callbacks, which run immediately when the link closes. */
  readonly #later = new Map<ReturnType<typeof setTimeout>, () => void>();
  readonly done: Promise<unknown>;

  constructor(client: Deno.TcpConn, server: Deno.TcpConn) {
    this.#client = client;
    this.#server = server;
    this.done = Promise.all([this.#carryUp(), this.#carryDown()]);
  }

  get healthy(): boolean {
    return this.#open && this.#mode === "carry";
  }

  suffer(fault: Fault): void {
    switch (fault) {
      case "cut":
        return this.close();
      case "loseAnswers":
        this.#mode = "loseAnswers";
        this.#after(LOSE_ANSWERS_MS, () => this.close());
        return;
      case "halve":
        this.#mode = "halve";
        return;
      case "halfOpen":
        this.#mode = "silent";
        return;
      case "stall":
        this.#stalled = new Promise((resolve) => this.#after(STALL_MS, resolve));
        return;
      default:
        fault satisfies never;
    }
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    for (const [timer, action] of this.#later) {
      clearTimeout(timer);
      action();
    }
    this.#later.clear();
    for (const end of [this.#client, this.#server]) {
      try {
        end.close();
      } catch {
        // The other side closed it first.
      }
    }
  }

  #after(ms: number, action: () => void): void {
    const timer = setTimeout(() => {
      this.#later.delete(timer);
      action();
    }, ms);
    this.#later.set(timer, action);
  }

  async #carryUp(): Promise<void> {
    await this.#carry(this.#client, async (piece) => {
      if (this.#mode !== "silent") await writeAll(this.#server, piece);
    });
  }

  async #carryDown(): Promise<void> {
    await this.#carry(this.#server, async (piece) => {
      if (this.#mode === "carry") return await writeAll(this.#client, piece);
      if (this.#mode !== "halve") return;
      await writeAll(this.#client, piece.subarray(0, piece.length >> 1));
      this.close();
    });
  }

  async #carry(from: Deno.TcpConn, deliver: (piece: Uint8Array) => Promise<void>): Promise<void> {
    const buffer = new Uint8Array(CHUNK_BYTES);
    try {
      for (;;) {
        const length = await from.read(buffer);
        if (length === null) break;
        await this.#stalled;
        if (!this.#open) break;
        await deliver(buffer.subarray(0, length));
      }
    } catch {
      // One side has closed; close the other.
    }
    // In a half-open connection, the other side does not detect the end of this one.
    if (this.#mode !== "silent") this.close();
  }
}

export class FaultProxy implements AsyncDisposable {
  readonly #listener: Deno.TcpListener;
  readonly #serverPort: number;
  readonly #links = new Set<Link>();
  readonly #accepting: Promise<void>;

  /** Carries connections to a port of this machine. */
  constructor(serverPort: number) {
    this.#serverPort = serverPort;
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.#accepting = this.#accept();
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  /** Connections that carry everything. */
  get healthy(): number {
    return [...this.#links].filter((link) => link.healthy).length;
  }

  /** Injects a fault into a healthy connection. `random` is from 0 to below 1. Returns whether there was one. */
  strike(fault: Fault, random: number): boolean {
    const healthy = [...this.#links].filter((link) => link.healthy);
    const link = healthy[Math.floor(random * healthy.length)];
    link?.suffer(fault);
    return link !== undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#accepting;
    const links = [...this.#links];
    for (const link of links) link.close();
    await Promise.all(links.map((link) => link.done));
  }

  async #accept(): Promise<void> {
    try {
      for await (const client of this.#listener) {
        const server = await Deno.connect({ hostname: "127.0.0.1", port: this.#serverPort });
        const link = new Link(client, server);
        this.#links.add(link);
        link.done.then(() => {
          if (!link.healthy) this.#links.delete(link);
        });
      }
    } catch {
      // The listener was closed.
    }
  }
}

async function writeAll(conn: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}
