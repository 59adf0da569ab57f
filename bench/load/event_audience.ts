/** Many PocketBase clients that listen to a record each over server-sent events, and one connection that changes a record. */
import { RawHttp } from "../../tests/support/processes/raw_http.ts";
import { Deliveries, type TriggerOptions, type TriggerResult } from "./deliveries.ts";

export interface EventAudienceOptions {
  readonly port: number;
  /** The subscription of each client. */
  readonly topics: readonly string[];
  /** Path of the record that messages change, with PATCH. */
  readonly triggerPath: string;
}

const OPENING_AT_ONCE = 64;
const READ_BYTES = 4096;

export class EventAudience implements AsyncDisposable {
  readonly #deliveries = new Deliveries();
  readonly #clients: EventClient[] = [];
  readonly #trigger: RawHttp;
  readonly #triggerPath: string;

  private constructor(trigger: RawHttp, triggerPath: string) {
    this.#trigger = trigger;
    this.#triggerPath = triggerPath;
  }

  /** Connects the clients and waits until every subscription is accepted. */
  static async open({ port, topics, triggerPath }: EventAudienceOptions): Promise<EventAudience> {
    const audience = new EventAudience(await RawHttp.connect(port), triggerPath);
    try {
      const waiting = topics.values();
      await Promise.all(Array.from({ length: OPENING_AT_ONCE }, async () => {
        using subscribing = await RawHttp.connect(port);
        for (const topic of waiting) await audience.#join({ port, topic, subscribing });
      }));
      return audience;
    } catch (error) {
      await audience[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #join({ port, topic, subscribing }: {
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
        const error = new Error("The server closed a stream of events");
        connected.reject(error);
        this.#deliveries.failed(error);
      },
    });
    this.#clients.push(client);
    const body = JSON.stringify({ clientId: await connected.promise, subscriptions: [topic] });
    const answer = await subscribing.post("/api/realtime", body);
    if (answer.status !== 204) throw new Error(`${topic}: ${answer.status} ${answer.body}`);
  }

  /** Sends the messages one after another and waits for the deliveries of each. */
  run(options: TriggerOptions): Promise<TriggerResult> {
    return this.#deliveries.run(options, (body) => {
      this.#trigger.send({ method: "PATCH", path: this.#triggerPath, body }).then((answer) => {
        if (answer.status === 200) this.#deliveries.answered();
        else this.#deliveries.failed(new Error(`${answer.status} ${answer.body}`));
      }, (error) => this.#deliveries.failed(error));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#trigger[Symbol.dispose]();
    await Promise.all(this.#clients.map((client) => client.close()));
  }
}

interface EventHandlers {
  readonly onEvent: (event: string) => void;
  /** Called when the server ends the stream. */
  readonly onEnd: () => void;
}

/** A stream of events on plain TCP. Its contents are ASCII, so characters and bytes are the same. */
class EventClient {
  readonly #conn: Deno.TcpConn;
  readonly #reading: Promise<void>;
  #closed = false;

  private constructor(conn: Deno.TcpConn, handlers: EventHandlers) {
    this.#conn = conn;
    this.#reading = this.#read(handlers);
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
    const events = new EventText();
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
    await this.#reading;
  }
}

/** The events in an answer with a chunked body. */
export class EventText {
  #isHeadRead = false;
  /** Received and not taken apart. */
  #unread = "";
  /** The beginning of an event. */
  #event = "";

  /** Returns the events that `text` completes. Throws for another status than 200. */
  add(text: string): string[] {
    this.#unread += text;
    if (!this.#isHeadRead) {
      const end = this.#unread.indexOf("\r\n\r\n");
      if (end < 0) return [];
      if (!this.#unread.startsWith("HTTP/1.1 200 ")) throw new Error(`No stream of events: ${this.#unread}`);
      this.#unread = this.#unread.slice(end + 4);
      this.#isHeadRead = true;
    }
    for (let chunk = this.#nextChunk(); chunk !== null; chunk = this.#nextChunk()) this.#event += chunk;
    const events = this.#event.split("\n\n");
    this.#event = events.pop() ?? "";
    return events;
  }

  /** `null` until it is complete. */
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
