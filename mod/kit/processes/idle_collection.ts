/** Collects garbage in idle processes: V8 only collects on allocation and would keep twice the memory. */
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const CHECK_MS = 2_000;
/** Processor time between two checks below which a process counts as idle. 5,000 idle sockets take 20 to 35 ms. */
const IDLE_MS_MAX = 60;
/** Share of the time that collections may take. Bursts of work with short pauses shall not pay for each pause. */
const TIME_SHARE_MAX = 0.01;
/** Growth of the heap since the last collection that is worth another one. */
const GROWTH_BYTES_MIN = 4 * 1024 * 1024;
const GROWTH_SHARE_MIN = 0.25;
/** Work since the last collection that is worth another one, in multiples of its duration: data may have been released. */
const WORK_FACTOR_MIN = 2;

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
  #heapBytes: number | null = null;
  /** Duration of the last collection in processor time. */
  #collectionMs = 0;
  /** Processor time and checks since then. */
  #workMs = 0;
  #checks = 0;

  constructor(process: CollectedProcess) {
    this.#process = process;
    this.#processorMs = process.processorMs();
  }

  check(): void {
    const processorMs = this.#process.processorMs();
    const usedMs = processorMs - this.#processorMs;
    this.#processorMs = processorMs;
    this.#workMs += usedMs;
    this.#checks++;
    if (usedMs > IDLE_MS_MAX || !this.#isDue()) return;
    this.#process.collect();
    this.#heapBytes = this.#process.heapBytes();
    this.#processorMs = this.#process.processorMs();
    this.#collectionMs = this.#processorMs - processorMs;
    this.#workMs = 0;
    this.#checks = 0;
  }

  /** Whether a collection is worth its time, at an idle check. The garbage of a start is collected at the first one. */
  #isDue(): boolean {
    if (this.#heapBytes === null) return true;
    if (this.#checks * CHECK_MS * TIME_SHARE_MAX < this.#collectionMs) return false;
    const growth = this.#process.heapBytes() - this.#heapBytes;
    if (growth >= Math.max(GROWTH_BYTES_MIN, this.#heapBytes * GROWTH_SHARE_MIN)) return true;
    return this.#workMs >= Math.max(IDLE_MS_MAX, this.#collectionMs * WORK_FACTOR_MIN);
  }
}

/**
 * Collects garbage of this thread while the process is idle. Call it before app code is loaded, which may not use timers.
 * `hidden` keeps V8's collector from app code, in a process with a single thread. `onCollected` is called after a collection.
 */
export function collectWhenIdle({ hidden = false, onCollected = () => {} }: {
  readonly hidden?: boolean;
  readonly onCollected?: (() => void) | undefined;
} = {}): void {
  const { cpuUsage } = Deno as typeof Deno & {
    readonly cpuUsage: () => { readonly user: number; readonly system: number };
  };
  const collectGarbage = garbageCollector({ hidden });
  const collection = new IdleCollection({
    processorMs() {
      const { user, system } = cpuUsage();
      return (user + system) / 1000;
    },
    heapBytes: () => getHeapStatistics().total_heap_size,
    collect() {
      collectGarbage();
      onCollected();
    },
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
