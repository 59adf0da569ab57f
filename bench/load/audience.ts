/** Many sockets that listen, and one that triggers: for fan-out, for many subscriptions, and for the memory of idle sockets. */
import { RawWebSocket } from "../../tests/support/processes/raw_websocket.ts";

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

export interface TriggerOptions {
  /** Message that triggers; `{n}` becomes a running number, `{id}` a request id. */
  readonly messages: readonly string[];
  /** Deliveries that follow each message. */
  readonly deliveries: number;
  /** Text that a delivery contains. */
  readonly marker: string;
  /** A message leaves this long after the one before it, or when all its deliveries are there, whichever is later. */
  readonly intervalMs: number;
}

export interface TriggerResult {
  /** From sending each message to its last delivery. */
  readonly lastDeliveryMs: number[];
  /** From sending each message to the answer on the triggering socket, where there is one. */
  readonly answerMs: number[];
  /** One delivery, whole. */
  readonly sample: string;
}

const OPENING_AT_ONCE = 64;
const OPEN_MS = 60_000;
const DELIVERY_MS = 30_000;

export class Audience implements AsyncDisposable {
  readonly #sockets: RawWebSocket[] = [];
  #trigger: RawWebSocket | null = null;
  #marker = "";
  #outstanding = 0;
  #sample = "";
  #delivered: PromiseWithResolvers<number> = Promise.withResolvers();
  #answered: PromiseWithResolvers<number> | null = null;
  #requestId = 0;

  private constructor() {}

  /** Opens the sockets and waits until every query has its first result. */
  static async open(options: AudienceOptions): Promise<Audience> {
    const audience = new Audience();
    try {
      audience.#trigger = await RawWebSocket.connect({
        port: options.triggerPort ?? options.port,
        path: options.triggerPath,
        onText: (text) => {
          if (text.startsWith('{"type":"MutationResponse"')) audience.#answered?.resolve(performance.now());
          if (text.includes('"success":false')) audience.#delivered.reject(new Error(text));
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
        this.#onText(text);
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

  #onText(text: string): void {
    if (this.#outstanding === 0 || !text.includes(this.#marker)) return;
    this.#sample = text;
    if (--this.#outstanding === 0) this.#delivered.resolve(performance.now());
  }

  /** Sends the messages one after another and waits for the deliveries of each. */
  async run(options: TriggerOptions): Promise<TriggerResult> {
    if (this.#trigger === null) throw new Error("The audience has left");
    this.#marker = options.marker;
    const lastDeliveryMs: number[] = [];
    const answerMs: number[] = [];
    for (const message of options.messages) {
      this.#delivered = Promise.withResolvers();
      this.#outstanding = options.deliveries;
      const answered = this.#answered = Promise.withResolvers<number>();
      const pause = new Promise((resolve) => setTimeout(resolve, options.intervalMs));
      const timer = setTimeout(() => {
        this.#delivered.reject(new Error(`${this.#outstanding} deliveries are missing`));
      }, DELIVERY_MS);
      const sentAt = performance.now();
      this.#trigger.send(message.replace("{id}", String(this.#requestId++)));
      try {
        lastDeliveryMs.push(await this.#delivered.promise - sentAt);
      } finally {
        clearTimeout(timer);
        await pause;
      }
      const answeredAt = await Promise.race([answered.promise, Promise.resolve(null)]);
      if (answeredAt !== null) answerMs.push(answeredAt - sentAt);
    }
    return { lastDeliveryMs, answerMs, sample: this.#sample };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const sockets = this.#trigger === null ? this.#sockets : [this.#trigger, ...this.#sockets];
    for (const socket of sockets) socket.cut();
    await Promise.all(sockets.map((socket) => socket.closed));
  }
}
