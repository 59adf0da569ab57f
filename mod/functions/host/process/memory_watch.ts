/** Ends isolates that leak memory where the kernel does not limit it (macOS). Polls, so it misses sudden allocations. */
import { isolateLimits } from "../../limits.ts";
import type { Clock, Timer } from "../../../kit/clock.ts";

/** Returns the resident size of processes in bytes, by id. Omits processes that have ended. */
export type MemoryReader = (pids: readonly number[]) => Promise<ReadonlyMap<number, number>>;

/** An isolate as seen by the watch. */
export interface Watched {
  readonly pid: number;
  /** Kills it. `why` is reported as the reason. */
  end(why: string): void;
}

export interface MemoryWatchOptions {
  readonly read: MemoryReader;
  readonly clock: Clock;
  readonly isolates: () => Iterable<Watched>;
  /** Memory limit of an isolate. */
  readonly dataMiB: number;
}

/** The reader for this machine. `null` if the kernel enforces limits. */
export const machineMemory: MemoryReader | null = Deno.build.os === "linux" ? null : residentBytes;

export class MemoryWatch implements Disposable {
  readonly #options: MemoryWatchOptions;
  #timer: Timer;
  #disposed = false;

  constructor(options: MemoryWatchOptions) {
    this.#options = options;
    this.#timer = this.#later();
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#timer.cancel();
  }

  #later(): Timer {
    return this.#options.clock.after(isolateLimits.memoryPollMs, () => this.#poll());
  }

  async #poll(): Promise<void> {
    const isolates = [...this.#options.isolates()];
    // A failed check is repeated with the next one.
    const sizes = await this.#options.read(isolates.map(({ pid }) => pid)).catch(() => null);
    const max = this.#options.dataMiB * 1024 * 1024;
    for (const isolate of isolates) {
      if ((sizes?.get(isolate.pid) ?? 0) > max) isolate.end("out of memory");
    }
    if (!this.#disposed) this.#timer = this.#later();
  }
}

/** Prints id and kilobytes per line. The runtime does not let main read `/proc`, but start a shell. */
const SCRIPTS = {
  linux:
    'for p; do while read -r k v u; do [ "$k" = VmRSS: ] && echo "$p $v"; done < "/proc/$p/status"; done',
  other: 'exec ps -o pid= -o rss= -p "$(IFS=,; echo "$*")"',
} as const;

/** Reads sizes through the shell, the only program main may start. */
export async function residentBytes(pids: readonly number[]): Promise<ReadonlyMap<number, number>> {
  if (pids.length === 0) return new Map();
  const { stdout } = await new Deno.Command("sh", {
    args: ["-c", SCRIPTS[Deno.build.os === "linux" ? "linux" : "other"], "sh", ...pids.map(String)],
    stderr: "null",
  }).output();
  return new Map(
    [...new TextDecoder().decode(stdout).matchAll(/^\s*(\d+)\s+(\d+)\s*$/gm)]
      .map(([, pid, kilobytes]) => [Number(pid), Number(kilobytes) * 1024]),
  );
}
