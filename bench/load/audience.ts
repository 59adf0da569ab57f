/** Many sockets that listen, and one that triggers: for fan-out, for many subscriptions, and for the memory of idle sockets. */
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import { Deliveries, type TriggerOptions, type TriggerResult } from "./deliveries.ts";

export interface AudienceOptions {
  readonly port: number;
  readonly path: string;
  readonly sockets: number;
  /** Path of the socket that triggers, and its port where that is another server's. */
  readonly triggerPath: string;
  readonly triggerPort?: number;
  /**
   * Queries each socket subscribes to: `{n}` in the arguments becomes a number that is counted up over all queries of all
   * sockets. `null` for a server that has no subscriptions.
   */
  readonly subscribe: { readonly udfPath: string; readonly args: string; readonly perSocket: number } | null;
}

const OPENING_AT_ONCE = 64;
const OPEN_MS = 60_000;

export class Audience implements AsyncDisposable {
  readonly #sockets: RawWebSocket[] = [];
  #trigger: RawWebSocket | null = null;
  readonly #deliveries = new Deliveries();

  private constructor() {}

  /** Opens the sockets and waits until every query has its first result. */
  static async open(options: AudienceOptions): Promise<Audience> {
    const audience = new Audience();
    try {
      audience.#trigger = await RawWebSocket.connect({
        port: options.triggerPort ?? options.port,
        path: options.triggerPath,
        onText: (text) => {
          if (text.startsWith('{"type":"MutationResponse"')) audience.#deliveries.answered();
          if (text.includes('"success":false')) audience.#deliveries.failed(new Error(text));
        },
      });
      for (let first = 0; first < options.sockets; first += OPENING_AT_ONCE) {
        const count = Math.min(OPENING_AT_ONCE, options.sockets - first);
        await Promise.all(Array.from({ length: count }, (_, i) => audience.#join(options, first + i)));
      }
      return audience;
    } catch (error) {
      await audience[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #join(options: AudienceOptions, index: number): Promise<void> {
    const ready = Promise.withResolvers<void>();
    // Nobody waits for it once the first result is there, or when there is no subscription.
    ready.promise.catch(() => {});
    const socket = await RawWebSocket.connect({
      port: options.port,
      path: options.path,
      onText: (text) => {
        if (text.startsWith('{"type":"Ping"')) return socket.send('{"type":"Pong"}');
        if (text.startsWith('{"type":"Transition"') && text.includes('"querySet":1')) ready.resolve();
        if (text.startsWith('{"type":"FatalError"')) ready.reject(new Error(text));
        this.#deliveries.received(text);
      },
      onClose: (code) => ready.reject(new Error(`The server closed the socket: ${code}`)),
    });
    this.#sockets.push(socket);
    const { subscribe } = options;
    if (subscribe === null) return;
    socket.send(JSON.stringify({
      type: "Connect",
      sessionId: crypto.randomUUID(),
      connectionCount: 0,
      lastCloseReason: null,
      clientVersion: "bench",
    }));
    const modifications = Array.from({ length: subscribe.perSocket }, (_, queryId) => {
      const args = subscribe.args.replace("{n}", String(index * subscribe.perSocket + queryId));
      return `{"type":"Add","queryId":${queryId},"udfPath":"${subscribe.udfPath}","args":${args}}`;
    });
    socket.send(
      `{"type":"ModifyQuerySet","baseVersion":0,"newVersion":1,"modifications":[${modifications.join(",")}]}`,
    );
    const timer = setTimeout(() => ready.reject(new Error("A first result is missing")), OPEN_MS);
    try {
      await ready.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends the messages one after another and waits for the deliveries of each. */
  async run(options: TriggerOptions): Promise<TriggerResult> {
    const trigger = this.#trigger;
    if (trigger === null) throw new Error("The audience has left");
    return await this.#deliveries.run(options, (message) => trigger.send(message));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const sockets = this.#trigger === null ? this.#sockets : [this.#trigger, ...this.#sockets];
    for (const socket of sockets) socket.cut();
    await Promise.all(sockets.map((socket) => socket.closed));
  }
}
