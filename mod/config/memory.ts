/** How the memory that a server may use is shared out. */
import { authLimits } from "../auth/limits.ts";
import { type IsolateMemory, usualMemory } from "../functions/host/mod.ts";
import { logLimits } from "../ops/limits.ts";

const MiB = 1024 * 1024;

/** With less an isolate cannot load an app. */
const LEAST_HEAP_MIB = 64;

/** What each part of a server may use. */
export interface MemoryPlan {
  readonly isolates: IsolateMemory;
  /** Password hashes computed at once: each takes 19 MiB, and a processor. */
  readonly hashesAtOnce: number;
  /** Page cache of the execution log. */
  readonly logCacheBytes: number;
}

/** A machine's memory, and how many processors it has. */
export interface Machine {
  readonly bytes: number;
  readonly cores: number;
}

interface Step extends Omit<MemoryPlan, "isolates"> {
  /** For a server that may use less than this. */
  readonly below: number;
  readonly isolates: Omit<IsolateMemory, "heapMiB" | "dataMiB">;
}

/** `docs/small_machines.md` tells what each step is for. */
const steps: readonly Step[] = [
  {
    below: 1024 * MiB,
    isolates: {
      writerSemiSpaceMiB: 8,
      semiSpaceMiB: 4,
      readersMax: 2,
      sparing: true,
      writerCacheBytes: 16 * MiB,
      readerCacheBytes: 4 * MiB,
    },
    hashesAtOnce: 1,
    logCacheBytes: 4 * MiB,
  },
  {
    below: 3072 * MiB,
    isolates: {
      writerSemiSpaceMiB: 16,
      readersMax: 3,
      writerCacheBytes: 32 * MiB,
      readerCacheBytes: 8 * MiB,
    },
    hashesAtOnce: 2,
    logCacheBytes: 8 * MiB,
  },
  {
    below: Infinity,
    isolates: {
      writerSemiSpaceMiB: usualMemory.writerSemiSpaceMiB,
      readersMax: usualMemory.readersMax,
    },
    hashesAtOnce: authLimits.hashesAtOnceMax,
    logCacheBytes: logLimits.cacheBytes,
  },
];

export function memoryPlan({ bytes, cores }: Machine): MemoryPlan {
  const step = steps.find(({ below }) => bytes < below);
  if (step === undefined) throw new RangeError("The memory has to be a number");
  // One that takes half of what there is ends, instead of the system ending whatever it likes.
  const half = Math.max(LEAST_HEAP_MIB, Math.floor(bytes / 2 / MiB));
  return {
    isolates: {
      ...step.isolates,
      // Beyond the first they are for queries that run beside one another; a slow one still finds another.
      readersMax: Math.min(step.isolates.readersMax, Math.max(2, cores + 1)),
      heapMiB: Math.min(usualMemory.heapMiB, half),
      dataMiB: Math.min(usualMemory.dataMiB, Math.max(half + step.isolates.writerSemiSpaceMiB * 3, 256)),
    },
    hashesAtOnce: Math.max(1, Math.min(step.hashesAtOnce, cores)),
    logCacheBytes: step.logCacheBytes,
  };
}
