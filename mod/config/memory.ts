/** Splits the server's memory budget between its parts. */
import { authLimits } from "../auth/limits.ts";
import { type IsolateMemory, usualMemory } from "../functions/host/mod.ts";

const MiB = 1024 * 1024;

/** The smallest heap in which an isolate can load an app. */
const LEAST_HEAP_MIB = 64;

/** The memory limits of each part of a server. */
export interface MemoryPlan {
  readonly isolates: IsolateMemory;
  /** Concurrent password hashes; each takes 19 MiB and one core. */
  readonly hashesAtOnce: number;
}

/** The memory budget in bytes, and the number of cores. */
export interface Machine {
  readonly bytes: number;
  readonly cores: number;
}

interface Step extends Omit<MemoryPlan, "isolates"> {
  /** Applies to budgets below this size. */
  readonly below: number;
  readonly isolates: Omit<IsolateMemory, "heapMiB" | "dataMiB">;
}

/** Documented in `docs/sizing.md`. */
const steps: readonly Step[] = [
  {
    below: 512 * MiB,
    isolates: {
      writerSemiSpaceMiB: 4,
      semiSpaceMiB: 2,
      readersMax: 2,
      sparing: true,
      writerCacheBytes: 8 * MiB,
      readerCacheBytes: 2 * MiB,
    },
    hashesAtOnce: 1,
  },
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
  },
  {
    below: Infinity,
    isolates: {
      writerSemiSpaceMiB: usualMemory.writerSemiSpaceMiB,
      readersMax: usualMemory.readersMax,
    },
    hashesAtOnce: authLimits.hashesAtOnceMax,
  },
];

export function memoryPlan({ bytes, cores }: Machine): MemoryPlan {
  const step = steps.find(({ below }) => bytes < below);
  if (step === undefined) throw new RangeError("Memory must be a number");
  // An isolate that uses half of the memory is ended, before the system's out-of-memory killer picks a process.
  const half = Math.max(LEAST_HEAP_MIB, Math.floor(bytes / 2 / MiB));
  return {
    isolates: {
      ...step.isolates,
      // At least two, so that one slow query does not block the others.
      readersMax: Math.min(step.isolates.readersMax, Math.max(2, cores + 1)),
      heapMiB: Math.min(usualMemory.heapMiB, half),
      dataMiB: Math.min(usualMemory.dataMiB, Math.max(half + step.isolates.writerSemiSpaceMiB * 3, 256)),
    },
    hashesAtOnce: Math.max(1, Math.min(step.hashesAtOnce, cores)),
  };
}
