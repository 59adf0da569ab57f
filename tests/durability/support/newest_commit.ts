/** The newest committed ts of a database, read while its writer is stopped. */
import { join } from "node:path";

export class NewestCommit implements Disposable {
  readonly #worker = new Worker(new URL("./newest_commit_worker.ts", import.meta.url), { type: "module" });
  readonly #path: string;

  constructor(dataDir: string) {
    this.#path = join(dataDir, "data.db");
  }

  /** The ts, or `null` when the database does not answer in time, because the writer stopped while it held a lock. */
  async ts(timeoutMs: number): Promise<number | null> {
    const { promise, resolve } = Promise.withResolvers<number | null>();
    this.#worker.onmessage = ({ data }) => resolve(data);
    this.#worker.postMessage(this.#path);
    const timer = setTimeout(() => resolve(null), timeoutMs);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  [Symbol.dispose](): void {
    this.#worker.terminate();
  }
}
