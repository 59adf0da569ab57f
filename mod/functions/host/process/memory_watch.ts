/**
 * Ends isolates that use too much memory where the kernel does not bound it (macOS, where `ulimit -d` has no effect). What
 * an isolate takes within a second it still gets: this keeps a leak from taking the machine, no more.
 */
import { isolateLimits } from "../../limits.ts";
import type { Clock, Timer } from "../../../kit/clock.ts";

/** Gives the resident size of processes in bytes, by id; those that have ended are left out. */
export type MemoryReader = (pids: readonly number[]) => Promise<ReadonlyMap<number, number>>;

/** An isolate as the watch sees it. */
export interface Watched {
  readonly pid: number;
  /** Kills it; `why` is told as the reason of its end. */
  end(why: string): void;
}

export interface MemoryWatchOptions {
  readonly read: MemoryReader;
  readonly clock: Clock;
  readonly isolates: () => Iterable<Watched>;
  /** What an isolate may use. */
  readonly dataMiB: number;
}

/** The reader for this machine; `null` where the kernel does the work. */
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
    return this.#options.clock.after(isolateLimits.memoryPollMs, () => this.#look());
  }

  async #look(): Promise<void> {
    const isolates = [...this.#options.isolates()];
    // A look that fails is made up for by the next one.
    const sizes = await this.#options.read(isolates.map(({ pid }) => pid)).catch(() => null);
    const max = this.#options.dataMiB * 1024 * 1024;
    for (const isolate of isolates) {
      if ((sizes?.get(isolate.pid) ?? 0) > max) isolate.end("out of memory");
    }
    if (!this.#disposed) this.#timer = this.#later();
  }
}

/** Prints id and kilobytes, a process a line. The runtime lets main read nothing in `/proc`, but start a shell. */
const SCRIPTS = {
  linux:
    'for p; do while read -r k v u; do [ "$k" = VmRSS: ] && echo "$p $v"; done < "/proc/$p/status"; done',
  other: 'exec ps -o pid= -o rss= -p "$(IFS=,; echo "$*")"',
} as const;

/** Asks the machine, through the shell: the one program main may start. Those that have ended are left out. */
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
