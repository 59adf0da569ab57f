/** Reads server-sent events of a response one by one. */

export interface ReadEvent {
  readonly id: string | null;
  readonly event: string;
  // deno-lint-ignore no-explicit-any -- tests look into events of many shapes
  readonly data: any;
}

export class EventReader implements AsyncDisposable {
  readonly #reader: ReadableStreamDefaultReader<string>;
  readonly #abort: AbortController;
  #text = "";
  /** Comments so far, which are heartbeats. */
  comments = 0;

  private constructor(body: ReadableStream<Uint8Array<ArrayBuffer>>, abort: AbortController) {
    this.#reader = body.pipeThrough(new TextDecoderStream()).getReader();
    this.#abort = abort;
  }

  static of(body: ReadableStream<Uint8Array<ArrayBuffer>>, abort = new AbortController()): EventReader {
    return new EventReader(body, abort);
  }

  /** Opens a stream. Throws the response's text if it is not one. */
  static async open(url: string, headers: Record<string, string>): Promise<EventReader> {
    const abort = new AbortController();
    const response = await fetch(url, { headers, signal: abort.signal });
    if (response.status !== 200 || response.body === null) throw new Error(await response.text());
    return new EventReader(response.body, abort);
  }

  /** The next event; `null` when the stream has ended. */
  async next(): Promise<ReadEvent | null> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end < 0) {
        const { value, done } = await this.#reader.read();
        if (done) return null;
        this.#text += value;
        continue;
      }
      const block = this.#text.slice(0, end);
      this.#text = this.#text.slice(end + 2);
      const fields = new Map(
        block.split("\n").map((line): [string, string] => {
          const [name = "", ...rest] = line.split(": ");
          return [name, rest.join(": ")];
        }),
      );
      const event = fields.get("event");
      if (event !== undefined) {
        return { id: fields.get("id") ?? null, event, data: JSON.parse(fields.get("data") ?? "null") };
      }
      this.comments++;
    }
  }

  /** The next event of a run. */
  // deno-lint-ignore no-explicit-any -- see above
  async run(): Promise<any> {
    for (;;) {
      const event = await this.next();
      if (event === null) throw new Error("The stream ended without another run");
      if (event.event === "run") return event.data;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort();
    await this.#reader.cancel().catch(() => {});
  }
}
