/** Readers of the execution log's stream that read as fast as they can. */
import { pause } from "../../tests/support/waiting.ts";

export interface LogReadersOptions {
  readonly port: number;
  readonly readers: number;
  readonly token: string;
  /** Whether each reader has a different filter, so that readers do not share events. */
  readonly ownFilters: boolean;
}

const OPEN_MS_MAX = 30_000;
const RETRY_MS = 200;

export class LogReaders implements AsyncDisposable {
  readonly #bodies: ReadableStreamDefaultReader<Uint8Array>[] = [];
  readonly #ended: Promise<void>[] = [];

  /** Opens the streams. */
  static async open({ port, readers, token, ownFilters }: LogReadersOptions): Promise<LogReaders> {
    const opened = new LogReaders();
    await Promise.all(Array.from({ length: readers }, async (_, index) => {
      const filter = ownFilters ? `?from=${index + 1}` : "";
      for (const deadline = performance.now() + OPEN_MS_MAX;;) {
        const response = await fetch(`http://127.0.0.1:${port}/api/admin/logs/stream${filter}`, {
          headers: { Authorization: `Bearer ${token}` },
        });
        if (response.ok && response.body !== null) {
          const body = response.body.getReader();
          opened.#bodies.push(body);
          opened.#ended.push(readAll(body));
          return;
        }
        const answer = await response.text();
        // Readers of the last round may still count towards the limit.
        if (performance.now() > deadline || !answer.includes('"overloaded"')) throw new Error(answer);
        await pause(RETRY_MS);
      }
    }));
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#bodies.map((body) => body.cancel()));
    await Promise.all(this.#ended);
  }
}

async function readAll(body: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await body.read()).done);
}
