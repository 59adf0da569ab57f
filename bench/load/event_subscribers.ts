/** Many PocketBase clients that subscribe to records over server-sent events, and a connection that changes a record. */
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import { Deliveries, type TriggerOptions, type TriggerResult } from "./deliveries.ts";

export interface EventSubscribersOptions {
  readonly port: number;
  /** Subscription of each client. */
  readonly topics: readonly string[];
  /** Path of the record that `trigger` patches. */
  readonly triggerPath: string;
}

const CONCURRENT_OPENS = 64;
const READ_BYTES = 4096;

export class EventSubscribers implements AsyncDisposable {
  readonly #deliveries = new Deliveries();
  readonly #clients: EventClient[] = [];
  readonly #triggering: RawHttp;
  readonly #triggerPath: string;

  private constructor(triggering: RawHttp, triggerPath: string) {
    this.#triggering = triggering;
    this.#triggerPath = triggerPath;
  }

  /** Connects the clients and waits until each subscription is accepted. */
  static async open({ port, topics, triggerPath }: EventSubscribersOptions): Promise<EventSubscribers> {
    const subscribers = new EventSubscribers(await RawHttp.connect(port), triggerPath);
    try {
      const waiting = topics.values();
      await Promise.all(Array.from({ length: CONCURRENT_OPENS }, async () => {
        using subscribing = await RawHttp.connect(port);
        for (const topic of waiting) await subscribers.#openClient({ port, topic, subscribing });
      }));
      return subscribers;
    } catch (error) {
      await subscribers[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #openClient({ port, topic, subscribing }: {
    readonly port: number;
    readonly topic: string;
    readonly subscribing: RawHttp;
  }): Promise<void> {
    const connected = Promise.withResolvers<string>();
    const client = await EventClient.connect(port, {
      onEvent: (event) => {
        const id = /^event:PB_CONNECT\ndata:\{"clientId":"(\w+)"/m.exec(event)?.[1];
        if (id === undefined) this.#deliveries.received(event);
        else connected.resolve(id);
      },
      onEnd: () => {
        const error = new Error("The server closed an event stream");
        connected.reject(error);
        this.#deliveries.failed(error);
      },
    });
    this.#clients.push(client);
    const body = JSON.stringify({ clientId: await connected.promise, subscriptions: [topic] });
    const answer = await subscribing.post("/api/realtime", body);
    if (answer.status !== 204) throw new Error(`${topic}: ${answer.status} ${answer.body}`);
  }

  trigger(options: TriggerOptions): Promise<TriggerResult> {
    return this.#deliveries.trigger(options, (body) => {
      this.#triggering.send({ method: "PATCH", path: this.#triggerPath, body }).then(({ status, body }) => {
        if (status !== 200) this.#deliveries.failed(new Error(`${status} ${body}`));
      }, (error) => this.#deliveries.failed(error));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#triggering[Symbol.dispose]();
    await Promise.all(this.#clients.map((client) => client.close()));
  }
}

interface EventHandlers {
  readonly onEvent: (event: string) => void;
  /** Called when the server ends the stream. */
  readonly onEnd: () => void;
}

/** An event stream on plain TCP. It contains ASCII only, so lengths in characters and bytes are equal. */
class EventClient {
  readonly #conn: Deno.TcpConn;
  readonly #readLoop: Promise<void>;
  #closed = false;

  private constructor(conn: Deno.TcpConn, handlers: EventHandlers) {
    this.#conn = conn;
    this.#readLoop = this.#read(handlers);
  }

  static async connect(port: number, handlers: EventHandlers): Promise<EventClient> {
    const conn = await Deno.connect({ hostname: "127.0.0.1", port });
    conn.setNoDelay(true);
    const head = `GET /api/realtime HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: text/event-stream\r\n\r\n`;
    await conn.write(new TextEncoder().encode(head));
    return new EventClient(conn, handlers);
  }

  async #read({ onEvent, onEnd }: EventHandlers): Promise<void> {
    const decoder = new TextDecoder("latin1");
    const buffer = new Uint8Array(READ_BYTES);
    const events = new EventParser();
    try {
      for (;;) {
        const read = await this.#conn.read(buffer);
        if (read === null) break;
        for (const event of events.add(decoder.decode(buffer.subarray(0, read)))) onEvent(event);
      }
    } catch (error) {
      if (!this.#closed && !(error instanceof Deno.errors.ConnectionReset)) throw error;
    }
    if (!this.#closed) onEnd();
  }

  async close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#conn.close();
    }
    await this.#readLoop;
  }
}

/** Parses the events of a response with a chunked body. */
export class EventParser {
  #isHeadParsed = false;
  /** Received text that is not parsed yet. */
  #unread = "";
  /** An incomplete event. */
  #event = "";

  /** Returns the events that `text` completes. Throws if the status is not 200. */
  add(text: string): string[] {
    this.#unread += text;
    if (!this.#isHeadParsed) {
      const end = this.#unread.indexOf("\r\n\r\n");
      if (end < 0) return [];
      if (!this.#unread.startsWith("HTTP/1.1 200 ")) throw new Error(`Not an event stream: ${this.#unread}`);
      this.#unread = this.#unread.slice(end + 4);
      this.#isHeadParsed = true;
    }
    for (let chunk = this.#nextChunk(); chunk !== null; chunk = this.#nextChunk()) this.#event += chunk;
    const events = this.#event.split("\n\n");
    this.#event = events.pop() ?? "";
    return events;
  }

  /** Returns the next chunk, or `null` if it is incomplete. */
  #nextChunk(): string | null {
    const sizeEnd = this.#unread.indexOf("\r\n");
    if (sizeEnd < 0) return null;
    const start = sizeEnd + 2;
    const end = start + parseInt(this.#unread.slice(0, sizeEnd), 16);
    if (this.#unread.length < end + 2) return null;
    const chunk = this.#unread.slice(start, end);
    this.#unread = this.#unread.slice(end + 2);
    return chunk;
  }
}
