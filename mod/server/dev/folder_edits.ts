/** Edits of the source files in a folder. */
import { GENERATED_FILE } from "../../functions/generated_module.ts";
import { pause, steadyClock } from "../../kit/clock.ts";

/** Quiet time that ends a burst of edits: editors write a file in several steps. */
const SETTLE_MS = 30;
/** Extensions of source files. */
const SOURCE_FILE = /\.(?:[cm]?[jt]sx?|json)$/;

/** Watches a folder from its construction, which throws if that is impossible, until it is disposed. */
export class FolderEdits implements Disposable {
  readonly #folder: string;
  readonly #settleMs: number;
  readonly #watcher: Deno.FsWatcher;
  /** Rejects if the folder can no longer be watched. */
  readonly #ended: Promise<void>;
  #hasEnded = false;
  /** Edited files that `next` has not returned. */
  readonly #files = new Set<string>();
  #editedAt = 0;
  #wake = () => {};

  /** `settleMs`: quiet time that ends a burst. For tests. */
  constructor(folder: string, { settleMs = SETTLE_MS }: { readonly settleMs?: number } = {}) {
    this.#folder = folder;
    this.#settleMs = settleMs;
    this.#watcher = Deno.watchFs(folder, { recursive: true });
    this.#ended = this.#watch().finally(() => this.#hasEnded = true);
    // `next` reports it.
    this.#ended.catch(() => {});
  }

  /**
   * Resolves after the next burst of edits with the paths of the edited files, sorted and relative to the folder. Edits since the
   * previous result are part of it. Resolves with `null` when the watch was ended. Rejects if the folder can no longer be watched.
   */
  async next(): Promise<readonly string[] | null> {
    if (this.#files.size === 0) {
      await Promise.race([new Promise<void>((resolve) => this.#wake = resolve), this.#ended]);
    }
    while (!this.#hasEnded) {
      const restMs = this.#editedAt + this.#settleMs - steadyClock.now();
      if (restMs <= 0) {
        const files = [...this.#files].sort();
        this.#files.clear();
        return files;
      }
      await pause(steadyClock, restMs);
    }
    return await this.#ended.then(() => null);
  }

  /** Ends the watch. */
  [Symbol.dispose](): void {
    if (!this.#hasEnded) this.#watcher.close();
  }

  async #watch(): Promise<void> {
    for await (const event of this.#watcher) {
      const files = editedFiles(event, this.#folder);
      if (files.length === 0) continue;
      for (const file of files) this.#files.add(file);
      this.#editedAt = steadyClock.now();
      this.#wake();
    }
  }
}

/** Files of source code that their author edited: no reads, generated files or installations of packages. */
function editedFiles({ kind, paths }: Deno.FsEvent, folder: string): string[] {
  if (kind === "access" || kind === "any" || kind === "other") return [];
  return paths.map((path) => path.slice(folder.length + 1)).filter((path) => {
    const name = path.slice(path.lastIndexOf("/") + 1);
    if (`/${path}`.includes("/node_modules/")) return false;
    return !name.startsWith(".") && name !== GENERATED_FILE && SOURCE_FILE.test(name);
  });
}
