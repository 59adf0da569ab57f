/** Many subscribed sockets, and one socket that triggers changes. */
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";
import { Deliveries, type TriggerOptions, type TriggerResult } from "./deliveries.ts";
import { type Call, connectMessage, pong, subscribeMessage } from "./messages.ts";

export interface SubscriberSocketsOptions {
  readonly port: number;
  readonly sockets: number;
  /** Path of the sockets. Default: `/api/sync`. */
  readonly path?: string;
  /** Path and port of the socket that triggers, if they differ. */
  readonly triggerPath?: string;
  readonly triggerPort?: number;
  /**
   * Subscriptions of each socket. `{n}` in the arguments is replaced with consecutive numbers over all sockets.
   * `null` for a server without subscriptions.
   */
  readonly subscribe: Call & { readonly perSocket: number } | null;
}

const CONCURRENT_OPENS = 64;
const FIRST_RESULT_MS_MAX = 60_000;

export class SubscriberSockets implements AsyncDisposable {
  readonly #options: SubscriberSocketsOptions;
  readonly #sockets: RawWebSocket[] = [];
  #triggering: RawWebSocket | null = null;
  readonly #deliveries = new Deliveries();

  private constructor(options: SubscriberSocketsOptions) {
    this.#options = options;
  }

  /** Opens the sockets and waits for the first result of each query. */
  static async open(options: SubscriberSocketsOptions): Promise<SubscriberSockets> {
    const subscribers = new SubscriberSockets(options);
    try {
      await subscribers.#open();
      return subscribers;
    } catch (error) {
      await subscribers[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #open(): Promise<void> {
    const { port, sockets, triggerPort = port, path = "/api/sync", triggerPath = path } = this.#options;
    this.#triggering = await RawWebSocket.connect({
      port: triggerPort,
      path: triggerPath,
      onText: (text) => {
        if (text.includes('"success":false')) this.#deliveries.failed(new Error(text));
      },
    });
    const indexes = Array(sockets).keys();
    await Promise.all(Array.from({ length: CONCURRENT_OPENS }, async () => {
      for (const index of indexes) await this.#openSocket(path, index);
    }));
  }

  async #openSocket(path: string, index: number): Promise<void> {
    const ready = Promise.withResolvers<void>();
    // A socket that closes later also rejects.
    ready.promise.catch(() => {});
    const { port, subscribe } = this.#options;
    const socket = await RawWebSocket.connect({
      port,
      path,
      onText: (text) => {
        if (text.startsWith('{"type":"Ping"')) return socket.send(pong);
        if (text.startsWith('{"type":"Transition"') && text.includes('"querySet":1')) ready.resolve();
        if (text.startsWith('{"type":"FatalError"')) ready.reject(new Error(text));
        this.#deliveries.received(text);
      },
      onClose: (code) => ready.reject(new Error(`The server closed the socket: ${code}`)),
    });
    this.#sockets.push(socket);
    if (subscribe === null) return;
    socket.send(connectMessage());
    socket.send(subscribeMessage(
      Array.from({ length: subscribe.perSocket }, (_, query) => ({
        udfPath: subscribe.udfPath,
        args: subscribe.args.replace("{n}", String(index * subscribe.perSocket + query)),
      })),
    ));
    const timer = setTimeout(() => ready.reject(new Error("No first result")), FIRST_RESULT_MS_MAX);
    await ready.promise.finally(() => clearTimeout(timer));
  }

  async trigger(options: TriggerOptions): Promise<TriggerResult> {
    return await this.#deliveries.trigger(options, (message) => this.#triggering?.send(message));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const sockets = this.#triggering === null ? this.#sockets : [this.#triggering, ...this.#sockets];
    for (const socket of sockets) socket.cut();
    await Promise.all(sockets.map((socket) => socket.closed));
  }
}
