/** Memory limits of isolates. */
import { isolateLimits } from "../../limits.ts";

export interface IsolateMemory {
  /** Old generation of each V8 heap. */
  readonly heapMiB: number;
  /** Private writable memory of each isolate, including the heap, above the runtime's own. */
  readonly dataMiB: number;
  /** Maximum semi-space of the writer's V8. */
  readonly writerSemiSpaceMiB: number;
  /** The same for other isolates. V8's default if absent. */
  readonly semiSpaceMiB?: number;
  readonly readersMax: number;
  /** Prestart only the next writer, and only for an existing version. */
  readonly sparing?: boolean;
  /** Page cache of the writer and each reader. The engine's default if absent. */
  readonly writerCacheBytes?: number;
  readonly readerCacheBytes?: number;
}

/** Default limits. */
export const usualMemory: IsolateMemory = {
  heapMiB: isolateLimits.heapMiB,
  dataMiB: isolateLimits.dataMiB,
  writerSemiSpaceMiB: isolateLimits.writerSemiSpaceMiB,
  readersMax: isolateLimits.readersMax,
};
