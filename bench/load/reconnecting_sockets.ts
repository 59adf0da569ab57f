/** Many sockets that reconnect within 250 ms when the server closes them, as the client library does. */
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import { pause } from "../../tests/support/waiting.ts";
import { type Call, connectMessage, pong, subscribeMessage } from "./messages.ts";

export interface ReconnectingSocketsOptions extends Call {
  readonly port: number;
  readonly sockets: number;
  /** Distinct queries. `{n}` in the arguments is replaced with the index of the socket modulo this number. */
  readonly queries: number;
}

export interface ReconnectResult {
  /** Number of sockets by the code with which they were closed first. */
  readonly closeCodes: Record<string, number>;
  /** From the first reopened socket to the last first result. */
  readonly lastResultMs: number;
  /** From the first closed socket to the last first result. */
  readonly interruptionMs: number;
  /** Number of first results by value. */
  readonly values: Record<string, number>;
}

const JITTER_MS = 250;
const RETRY_MS = 100;
const CONCURRENT_OPENS = 64;

export class ReconnectingSockets implements AsyncDisposable {
  readonly #options: ReconnectingSocketsOptions;
  /** Codes with which sockets were closed first, by index. Later ones are of sockets that reached the stopping server. */
  readonly #closeCodes = new Map<number, number>();
  /** Open sockets by index. */
  readonly #sockets = new Map<number, RawWebSocket>();
  /** First results of the open sockets, by index. */
  readonly #results = new Map<number, string>();
  #firstOpenAt = 0;
  #firstCloseAt = 0;
  #complete: PromiseWithResolvers<number> = Promise.withResolvers();
  #isDisposed = false;

  private constructor(options: ReconnectingSocketsOptions) {
    this.#options = options;
  }

  /** Opens the sockets and waits for the first result of each. */
  static async open(options: ReconnectingSocketsOptions): Promise<ReconnectingSockets> {
    const reconnecting = new ReconnectingSockets(options);
    const indexes = Array(options.sockets).keys();
    await Promise.all(Array.from({ length: CONCURRENT_OPENS }, async () => {
      for (const index of indexes) await reconnecting.#connect(index);
    }));
    await reconnecting.#complete.promise;
    reconnecting.#reset();
    return reconnecting;
  }

  /** Waits until each socket has reconnected and received its result. May be called before or after the sockets close. */
  async reconnected(): Promise<ReconnectResult> {
    const completeAt = await this.#complete.promise;
    const result = {
      closeCodes: countEach(this.#closeCodes.values()),
      lastResultMs: completeAt - this.#firstOpenAt,
      interruptionMs: completeAt - this.#firstCloseAt,
      values: countEach(this.#results.values()),
    };
    this.#reset();
    return result;
  }

  #reset(): void {
    this.#closeCodes.clear();
    this.#results.clear();
    this.#complete = Promise.withResolvers();
    this.#firstOpenAt = this.#firstCloseAt = 0;
  }

  async #connect(index: number): Promise<void> {
    const { port, udfPath, args, queries } = this.#options;
    let isClosed = false;
    const socket = await RawWebSocket.connect({
      port,
      path: "/api/sync",
      onText: (text) => {
        if (text.startsWith('{"type":"Ping"')) return socket.send(pong);
        if (text.startsWith('{"type":"Transition"')) this.#receive(index, text);
      },
      // May be called before `socket` is assigned.
      onClose: (code) => {
        isClosed = true;
        this.#sockets.delete(index);
        this.#results.delete(index);
        if (this.#isDisposed) return;
        this.#firstCloseAt ||= performance.now();
        if (!this.#closeCodes.has(index)) this.#closeCodes.set(index, code);
        setTimeout(() => void this.#reconnect(index), Math.random() * JITTER_MS);
      },
    });
    if (isClosed) return;
    this.#sockets.set(index, socket);
    this.#firstOpenAt ||= performance.now();
    socket.send(connectMessage());
    socket.send(subscribeMessage([{ udfPath, args: args.replace("{n}", String(index % queries)) }]));
  }

  async #reconnect(index: number): Promise<void> {
    while (!this.#isDisposed) {
      try {
        return await this.#connect(index);
      } catch {
        // The server is not listening yet.
        await pause(RETRY_MS * (0.5 + Math.random()));
      }
    }
  }

  #receive(index: number, text: string): void {
    this.#results.set(index, /"value":(.*),"logLines"/.exec(text)?.[1] ?? text);
    if (this.#results.size === this.#options.sockets) this.#complete.resolve(performance.now());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    const sockets = [...this.#sockets.values()];
    for (const socket of sockets) socket.cut();
    await Promise.all(sockets.map((socket) => socket.closed));
  }
}

function countEach(values: Iterable<string | number>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}
