/** Watches a folder for edits. */
import { GENERATED_FILE } from "../../functions/generated_module.ts";

/** Quiet time that ends a burst of edits: editors write a file in several steps. */
const SETTLE_MS = 30;
/** Extensions of source files. */
const SOURCE_FILE = /\.(?:[cm]?[jt]sx?|json)$/;

export interface WatchOptions {
  readonly signal: AbortSignal;
  /**
   * Called after each burst of edits, one call at a time, with the paths of the edited files relative to the folder. Edits during
   * a call cause one more.
   */
  readonly onEdit: (files: readonly string[]) => Promise<void>;
  /** Quiet time that ends a burst, in milliseconds. For tests. */
  readonly settleMs?: number;
}

/** Resolves after `signal` is aborted. Rejects if the folder cannot be watched, or with the error of `onEdit`. */
export async function watchFolder(
  folder: string,
  { signal, onEdit, settleMs = SETTLE_MS }: WatchOptions,
): Promise<void> {
  const watcher = Deno.watchFs(folder, { recursive: true });
  const stop = () => watcher.close();
  signal.addEventListener("abort", stop, { once: true });
  const calls = new EditCalls(onEdit, settleMs);
  try {
    if (signal.aborted) return watcher.close();
    for await (const event of watcher) calls.edited(editedFiles(event, folder));
  } finally {
    signal.removeEventListener("abort", stop);
    await calls.end();
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

class EditCalls {
  readonly #onEdit: WatchOptions["onEdit"];
  readonly #settleMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<void> | null = null;
  /** Edited since the last call. */
  #files = new Set<string>();

  constructor(onEdit: WatchOptions["onEdit"], settleMs: number) {
    this.#onEdit = onEdit;
    this.#settleMs = settleMs;
  }

  edited(files: readonly string[]): void {
    for (const file of files) this.#files.add(file);
    if (this.#files.size === 0 || this.#running !== null) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#running = this.#run();
    }, this.#settleMs);
  }

  async end(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#running;
    clearTimeout(this.#timer);
  }

  async #run(): Promise<void> {
    const files = [...this.#files].sort();
    this.#files = new Set();
    await this.#onEdit(files);
    this.#running = null;
    this.edited([]);
  }
}
