/** Readers of the execution log's stream, who take what comes as fast as they can. */

export interface LogReadersOptions {
  readonly port: number;
  readonly readers: number;
  readonly token: string;
  /** Whether each has a filter of its own, so that nobody shares its events. */
  readonly ownFilters: boolean;
}

const OPENED_MS = 30_000;
const AGAIN_MS = 200;

export class LogReaders implements AsyncDisposable {
  readonly #bodies: ReadableStreamDefaultReader<Uint8Array>[] = [];
  readonly #ended: Promise<void>[] = [];
  #bytes = 0;

  /** Resolves when all of them read. */
  static async open({ port, readers, token, ownFilters }: LogReadersOptions): Promise<LogReaders> {
    const opened = new LogReaders();
    await Promise.all(Array.from({ length: readers }, async (_, place) => {
      const filter = ownFilters ? `?from=${place + 1}` : "";
      for (const until = performance.now() + OPENED_MS;;) {
        const response = await fetch(`http://127.0.0.1:${port}/api/admin/logs/stream${filter}`, {
          headers: { Authorization: `Bearer ${token}` },
        });
        if (response.ok && response.body !== null) {
          const body = response.body.getReader();
          opened.#bodies.push(body);
          opened.#ended.push(opened.#read(body));
          return;
        }
        const answer = await response.text();
        // Those that have left may still count.
        if (performance.now() > until || !answer.includes('"overloaded"')) throw new Error(answer);
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }));
    return opened;
  }

  /** Bytes that all of them have read. */
  get bytes(): number {
    return this.#bytes;
  }

  async #read(body: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    for (;;) {
      const { done, value } = await body.read();
      if (done) return;
      this.#bytes += value.length;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#bodies.map((body) => body.cancel()));
    await Promise.all(this.#ended);
  }
}
