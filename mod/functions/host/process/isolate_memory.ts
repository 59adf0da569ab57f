/** How much memory isolates may use, and for what. */
import { isolateLimits } from "../../limits.ts";

export interface IsolateMemory {
  /** Old generation of the V8 heap of each. */
  readonly heapMiB: number;
  /** Private writable memory of each, heap included, above what the runtime itself reserves. */
  readonly dataMiB: number;
  /** A semi-space of the writer's V8, at most. */
  readonly writerSemiSpaceMiB: number;
  /** Likewise of the others; what V8 takes by itself when absent. */
  readonly semiSpaceMiB?: number;
  /** Readers running at once. */
  readonly readersMax: number;
  /** Beside the isolates that serve only the next writer is started ahead, and only for a version that is there. */
  readonly sparing?: boolean;
  /** Pages of the database that the writer and each reader keep; what the engine keeps by itself when absent. */
  readonly writerCacheBytes?: number;
  readonly readerCacheBytes?: number;
}

/** What there is unless somebody says otherwise. */
export const usualMemory: IsolateMemory = {
  heapMiB: isolateLimits.heapMiB,
  dataMiB: isolateLimits.dataMiB,
  writerSemiSpaceMiB: isolateLimits.writerSemiSpaceMiB,
  readersMax: isolateLimits.readersMax,
};
