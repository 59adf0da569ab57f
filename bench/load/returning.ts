/** Many sockets that come back when the server restarts, as the reference client does: within 250 ms of a close with 1012. */
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";

export interface ReturningOptions {
  readonly port: number;
  readonly sockets: number;
  /** The query each socket subscribes to; `{n}` in the arguments becomes the socket's number modulo `queries`. */
  readonly udfPath: string;
  readonly args: string;
  readonly queries: number;
}

export interface ReturnResult {
  /** How many sockets were closed with each code. */
  readonly closeCodes: Record<string, number>;
  /** From the first socket that was open again to the last first result. */
  readonly lastResultMs: number;
  /** From the first socket that was closed to the last first result. */
  readonly backMs: number;
  /** First results by their text, counted. */
  readonly values: Record<string, number>;
}

const JITTER_MS = 250;
const RETRY_MS = 100;
const OPENING_AT_ONCE = 64;

export class Returning implements AsyncDisposable {
  readonly #options: ReturningOptions;
  readonly #sockets = new Set<RawWebSocket>();
  readonly #closeCodes: Record<string, number> = {};
  #values: Record<string, number> = {};
  #firstOpenAt = 0;
  #firstCloseAt = 0;
  #missing = 0;
  #complete: PromiseWithResolvers<number> = Promise.withResolvers();
  #left = false;

  private constructor(options: ReturningOptions) {
    this.#options = options;
  }

  /** Opens the sockets and waits until each has its first result. */
  static async open(options: ReturningOptions): Promise<Returning> {
    const returning = new Returning(options);
    returning.#missing = options.sockets;
    for (let first = 0; first < options.sockets; first += OPENING_AT_ONCE) {
      const count = Math.min(OPENING_AT_ONCE, options.sockets - first);
      await Promise.all(Array.from({ length: count }, (_, i) => returning.#connect(first + i)));
    }
    await returning.#complete.promise;
    returning.#expectReturn();
    return returning;
  }

  /** Waits until every socket is back and has its result. To be called before or after the server has closed them. */
  async back(): Promise<ReturnResult> {
    const lastAt = await this.#complete.promise;
    const result = {
      closeCodes: { ...this.#closeCodes },
      lastResultMs: lastAt - this.#firstOpenAt,
      backMs: lastAt - this.#firstCloseAt,
      values: this.#values,
    };
    this.#expectReturn();
    return result;
  }

  #expectReturn(): void {
    this.#missing = this.#options.sockets;
    this.#complete = Promise.withResolvers();
    this.#firstOpenAt = this.#firstCloseAt = 0;
    this.#values = {};
  }

  async #connect(index: number): Promise<void> {
    const { port, udfPath, args, queries } = this.#options;
    const socket = await RawWebSocket.connect({
      port,
      path: "/api/sync",
      onText: (text) => {
        if (text.startsWith('{"type":"Ping"')) return socket.send('{"type":"Pong"}');
        if (text.startsWith('{"type":"Transition"')) this.#arrived(text);
      },
      onClose: (code) => {
        this.#sockets.delete(socket);
        if (this.#left) return;
        this.#firstCloseAt ||= performance.now();
        this.#closeCodes[code] = (this.#closeCodes[code] ?? 0) + 1;
        setTimeout(() => void this.#return(index), Math.random() * JITTER_MS);
      },
    });
    this.#sockets.add(socket);
    this.#firstOpenAt ||= performance.now();
    socket.send(JSON.stringify({
      type: "Connect",
      sessionId: crypto.randomUUID(),
      connectionCount: 0,
      lastCloseReason: null,
      clientVersion: "bench",
    }));
    const add = `{"type":"Add","queryId":0,"udfPath":"${udfPath}","args":${
      args.replace("{n}", String(index % queries))
    }}`;
    socket.send(`{"type":"ModifyQuerySet","baseVersion":0,"newVersion":1,"modifications":[${add}]}`);
  }

  async #return(index: number): Promise<void> {
    while (!this.#left) {
      try {
        return await this.#connect(index);
      } catch {
        // The server is not back yet.
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS * (0.5 + Math.random())));
      }
    }
  }

  #arrived(text: string): void {
    const value = /"value":(.*),"logLines"/.exec(text)?.[1] ?? text;
    this.#values[value] = (this.#values[value] ?? 0) + 1;
    if (--this.#missing === 0) this.#complete.resolve(performance.now());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#left = true;
    const sockets = [...this.#sockets];
    for (const socket of sockets) socket.cut();
    await Promise.all(sockets.map((socket) => socket.closed));
  }
}
