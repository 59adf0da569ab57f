/** All sockets from their start to their close event: limits their number, and aborts those that do not close in time. */
import type { Clock } from "../../kit/clock.ts";
import { httpLimits } from "../../limits.ts";
import type { OutboundQuota, SocketOutput } from "./outbound_quota.ts";
import { closeCodes } from "./socket.ts";

interface ClosingSocket {
  readonly output: SocketOutput;
  close(code: number, reason: string): void;
}

export interface OpenSocketsOptions {
  readonly outbound: OutboundQuota;
  readonly clock: Clock;
  readonly socketsMax: number;
}

export class OpenSockets<Socket extends ClosingSocket> implements Iterable<Socket> {
  readonly #options: OpenSocketsOptions;
  readonly #serving = new Set<Socket>();
  /** Sockets that the server has closed, with the time at which they are aborted. */
  readonly #closing = new Map<SocketOutput, number>();
  /** Sockets without a close event so far. Includes aborted ones. */
  #count = 0;
  #shutDown = false;
  #onAllClosed: (() => void) | null = null;

  constructor(options: OpenSocketsOptions) {
    this.#options = options;
  }

  /** Sockets that are served, without those being closed. */
  get size(): number {
    return this.#serving.size;
  }

  /** Whether no socket is served or has to be aborted later. */
  get isIdle(): boolean {
    return this.#serving.size === 0 && this.#closing.size === 0;
  }

  [Symbol.iterator](): Iterator<Socket> {
    return this.#serving.values();
  }

  /** Returns why no more sockets are accepted, or `null`. */
  get refusal(): { readonly code: number; readonly reason: string } | null {
    if (this.#shutDown) return { code: closeCodes.restart, reason: "server restart" };
    if (this.#count < this.#options.socketsMax) return null;
    return { code: closeCodes.overloaded, reason: "too many sockets" };
  }

  add(socket: Socket): void {
    this.#serving.add(socket);
    this.#count++;
  }

  /** The server has closed a socket. It is aborted if it is still open after `closeMs`. */
  ended(socket: Socket, closeMs: number): void {
    this.#serving.delete(socket);
    this.#closing.set(socket.output, this.#options.clock.now() + closeMs);
  }

  /** A socket is closed, after `ended`. */
  closed({ output }: Socket): void {
    this.#options.outbound.close(output);
    this.#closing.delete(output);
    if (--this.#count === 0) this.#onAllClosed?.();
  }

  /** Aborts sockets that should have closed. */
  tick(now: number): void {
    for (const [output, cutAt] of this.#closing) if (cutAt <= now) this.#abort(output);
  }

  /** Closes all with 1012. Resolves when close frames are answered, when answers stop, or after `httpLimits.drainMs`. */
  async shutdown(): Promise<void> {
    this.#shutDown = true;
    for (const socket of [...this]) socket.close(closeCodes.restart, "server restart");
    if (this.#count > 0) await this.#allClosed();
    for (const output of this.#closing.keys()) this.#abort(output);
  }

  #abort(output: SocketOutput): void {
    this.#closing.delete(output);
    this.#options.outbound.cut(output);
  }

  async #allClosed(): Promise<void> {
    const { clock } = this.#options;
    await new Promise<void>((resolve) => {
      const endAt = clock.now() + httpLimits.drainMs;
      let countBefore = this.#count;
      const timer = clock.every(httpLimits.closeQuietMs, () => {
        if (this.#count === countBefore || clock.now() >= endAt) this.#onAllClosed?.();
        countBefore = this.#count;
      });
      this.#onAllClosed = () => {
        timer.cancel();
        this.#onAllClosed = null;
        resolve();
      };
    });
  }
}
