/** Collects garbage in idle processes: V8 only collects on allocation and would keep twice the memory. */
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const CHECK_MS = 2_000;
/** Processor time between two checks below which a process counts as idle. */
const IDLE_MS_MAX = 60;
/** Growth of the heap since the last collection that is worth another one. */
const GROWTH_BYTES_MIN = 4 * 1024 * 1024;
const GROWTH_SHARE_MIN = 0.25;

export interface CollectedProcess {
  /** Processor time of all its threads. */
  processorMs(): number;
  /** Size of the heap with its unused parts. */
  heapBytes(): number;
  collect(): void;
}

/** Checks a process, at intervals, and collects its garbage. */
export class IdleCollection {
  readonly #process: CollectedProcess;
  #processorMs: number;
  #heapBytes = 0;

  constructor(process: CollectedProcess) {
    this.#process = process;
    this.#processorMs = process.processorMs();
  }

  check(): void {
    const processorMs = this.#process.processorMs();
    const usedMs = processorMs - this.#processorMs;
    this.#processorMs = processorMs;
    if (usedMs > IDLE_MS_MAX) return;
    const growth = this.#process.heapBytes() - this.#heapBytes;
    if (growth < Math.max(GROWTH_BYTES_MIN, this.#heapBytes * GROWTH_SHARE_MIN)) return;
    this.#process.collect();
    this.#heapBytes = this.#process.heapBytes();
    // The collection itself is no work.
    this.#processorMs = this.#process.processorMs();
  }
}

/**
 * Collects garbage of this thread while the process is idle. Call it before app code is loaded, which may not use timers.
 * `hidden` keeps V8's collector from app code, in a process with a single thread.
 */
export function collectWhenIdle({ hidden = false }: { readonly hidden?: boolean } = {}): void {
  const { cpuUsage } = Deno as typeof Deno & {
    readonly cpuUsage: () => { readonly user: number; readonly system: number };
  };
  const collection = new IdleCollection({
    processorMs() {
      const { user, system } = cpuUsage();
      return (user + system) / 1000;
    },
    heapBytes: () => getHeapStatistics().total_heap_size,
    collect: garbageCollector({ hidden }),
  });
  Deno.unrefTimer(setInterval(() => collection.check(), CHECK_MS));
}

/** Returns V8's collector, which new contexts have as a global while the flag of the process is set. */
function garbageCollector({ hidden }: { readonly hidden: boolean }): () => void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  // Another thread may be about to create its context.
  if (hidden) setFlagsFromString("--no-expose-gc");
  return collect;
}
