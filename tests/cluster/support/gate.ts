/**
 * A TCP proxy that can be shut: data then waits until it is open again, like on a network that drops all packets. Neither side
 * detects the failure.
 */
import { closeQuietly } from "../../../mod/kit/local_socket.ts";

const CHUNK_BYTES = 65_536;

export class Gate implements AsyncDisposable {
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #to: number;
  /** Both ends of each connection. */
  readonly #pairs = new Set<readonly Deno.TcpConn[]>();
  /** Connections that are shut permanently. */
  readonly #held = new Map<readonly Deno.TcpConn[], PromiseWithResolvers<void>>();
  readonly #carrying = new Set<Promise<void>>();
  readonly #accepting: Promise<void>;
  /** Resolved while it is open. */
  #opened = Promise.withResolvers<void>();
  #closed = false;

  constructor(to: number) {
    this.#to = to;
    this.#opened.resolve();
    this.#accepting = this.#accept();
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#pairs.size;
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  shut(): void {
    this.#opened = Promise.withResolvers();
  }

  open(): void {
    this.#opened.resolve();
  }

  /** Shuts only the connection from this port. Returns whether there is one. */
  hold(port: number): boolean {
    const pair = [...this.#pairs].find(([, far]) => far?.localAddr.port === port);
    if (pair !== undefined) this.#held.set(pair, Promise.withResolvers());
    return pair !== undefined;
  }

  /** Closes all connections. New ones are accepted. */
  breakOff(): void {
    for (const conn of [...this.#pairs].flat()) closeQuietly(conn);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    closeQuietly(this.#listener);
    this.open();
    for (const { resolve } of this.#held.values()) resolve();
    this.breakOff();
    await this.#accepting;
    await Promise.all(this.#carrying);
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
  async #carry(near: Deno.TcpConn): Promise<void> {
    const pair: Deno.TcpConn[] = [near];
    this.#pairs.add(pair);
    try {
      await this.#opened.promise;
      const far = await Deno.connect({ hostname: "127.0.0.1", port: this.#to });
      pair.push(far);
      near.setNoDelay();
      far.setNoDelay();
      if (this.#closed) return;
      const held = async () => void await this.#held.get(pair)?.promise;
      await Promise.all([this.#pass([near, far], held), this.#pass([far, near], held)]);
    } catch {
      await this.#opened.promise;
    } finally {
      this.#pairs.delete(pair);
      for (const conn of pair) closeQuietly(conn);
    }
  }

  async #pass([from, to]: readonly [Deno.Conn, Deno.Conn], held: () => Promise<void>): Promise<void> {
    const chunk = new Uint8Array(CHUNK_BYTES);
    for (;;) {
      const length = await from.read(chunk);
      await this.#opened.promise;
      await held();
      if (length === null) return await to.closeWrite();
      for (let sent = 0; sent < length;) sent += await to.write(chunk.subarray(sent, length));
    }
  }
}
