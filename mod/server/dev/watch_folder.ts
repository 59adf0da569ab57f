/** Watches a folder for edits. */
import { GENERATED_FILE } from "../../functions/generated_module.ts";

/** Quiet time that ends a burst of edits: editors write a file in several steps. */
const SETTLE_MS = 30;
/** Extensions of source files. */
const SOURCE_FILE = /\.(?:[cm]?[jt]sx?|json)$/;

export interface WatchOptions {
  readonly signal: AbortSignal;
  /** Called after each burst of edits, one call at a time. Edits during a call cause one more. */
  readonly onEdit: () => Promise<void>;
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
    for await (const event of watcher) if (matters(event, folder)) calls.edited();
  } finally {
    signal.removeEventListener("abort", stop);
    await calls.end();
  }
}

/** Whether an event is an edit of source code by the author, rather than a read, a generated file or the installation of a package. */
function matters({ kind, paths }: Deno.FsEvent, folder: string): boolean {
  if (kind === "access" || kind === "any" || kind === "other") return false;
  return paths.some((path) => {
    const name = path.slice(path.lastIndexOf("/") + 1);
    if (path.slice(folder.length).includes("/node_modules/")) return false;
    return !name.startsWith(".") && name !== GENERATED_FILE && SOURCE_FILE.test(name);
  });
}

class EditCalls {
  readonly #onEdit: () => Promise<void>;
  readonly #settleMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: Promise<void> | null = null;
  /** Whether there were edits during the running call. */
  #again = false;

  constructor(onEdit: () => Promise<void>, settleMs: number) {
    this.#onEdit = onEdit;
    this.#settleMs = settleMs;
  }

  edited(): void {
    if (this.#running !== null) {
      this.#again = true;
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#running = this.#run();
    }, this.#settleMs);
  }

  async end(): Promise<void> {
    clearTimeout(this.#timer);
    this.#again = false;
    await this.#running;
  }

  async #run(): Promise<void> {
    await this.#onEdit();
    this.#running = null;
    if (this.#again) {
      this.#again = false;
      this.edited();
    }
  }
}
