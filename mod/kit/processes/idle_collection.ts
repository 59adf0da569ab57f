/** Collects garbage in idle processes: V8 only collects on allocation and would keep twice the memory. */
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const CHECK_MS = 2_000;
/** Processor time between two checks below which a process counts as idle. 5,000 idle sockets take 20 to 35 ms. */
const IDLE_MS_MAX = 60;
/**
 * Idle checks before a collection. After a collection, a process acquires its memory again and V8 enlarges the space for new
 * objects step by step. Bursts of work with short pauses must not cause this repeatedly.
 */
const IDLE_CHECKS_MIN = 5;
/** Processor time since memory outside the heap was last released that is worth releasing it at an idle check. */
const TRIM_WORK_MS = 500;
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
  /** Releases memory outside the heap. Takes a few milliseconds. */
  trim(): void;
}

/** Checks a process, at intervals, and collects its garbage. */
export class IdleCollection {
  readonly #process: CollectedProcess;
  #processorMs: number;
  #heapBytes: number | null = null;
  /** Processor time of the last collection, and since then. */
  #collectionMs = 0;
  #workMs = 0;
  /** Processor time since memory was last trimmed. */
  #untrimmedMs = 0;
  /** Processor time between the last checks, the newest first. Empty after a collection. */
  #recentMs: number[] = [];

  constructor(process: CollectedProcess) {
    this.#process = process;
    this.#processorMs = process.processorMs();
  }

  check(): void {
    const processorMs = this.#process.processorMs();
    const usedMs = processorMs - this.#processorMs;
    this.#processorMs = processorMs;
    this.#workMs += usedMs;
    this.#untrimmedMs += usedMs;
    this.#recentMs = [usedMs, ...this.#recentMs].slice(0, IDLE_CHECKS_MIN);
    if (this.#isIdle() && this.#isDue()) this.#collect(processorMs);
    else if (usedMs <= IDLE_MS_MAX && this.#untrimmedMs >= TRIM_WORK_MS) this.#trim();
  }

  #collect(processorMs: number): void {
    this.#process.collect();
    this.#trim();
    this.#heapBytes = this.#process.heapBytes();
    this.#processorMs = this.#process.processorMs();
    this.#collectionMs = this.#processorMs - processorMs;
    this.#workMs = 0;
    this.#recentMs = [];
  }

  #trim(): void {
    this.#process.trim();
    this.#untrimmedMs = 0;
  }

  #isIdle(): boolean {
    const checks = this.#heapBytes === null ? 1 : IDLE_CHECKS_MIN;
    const recent = this.#recentMs.slice(0, checks);
    // The sum: V8 and other threads of the process collect garbage, too.
    return recent.length === checks && recent.reduce((sum, ms) => sum + ms, 0) <= checks * IDLE_MS_MAX;
  }

  /** The garbage of a start is collected at the first idle check. */
  #isDue(): boolean {
    if (this.#heapBytes === null) return true;
    const growth = this.#process.heapBytes() - this.#heapBytes;
    if (growth >= Math.max(GROWTH_BYTES_MIN, this.#heapBytes * GROWTH_SHARE_MIN)) return true;
    return this.#workMs >= Math.max(IDLE_MS_MAX, this.#collectionMs * WORK_FACTOR_MIN);
  }
}

/**
 * Collects garbage of this thread while the process is idle. Call it before app code is loaded, which may not use timers.
 * `hidden` keeps V8's collector from app code, in a process with a single thread. `trim` releases memory outside the heap,
 * such as caches and freed blocks of the C library.
 */
export function collectWhenIdle({ hidden = false, trim = () => {} }: {
  readonly hidden?: boolean;
  readonly trim?: (() => void) | undefined;
} = {}): void {
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
    trim,
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
