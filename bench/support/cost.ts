/** Resources of a server: processor time and memory of all its processes. */
import type { Cost } from "../table.ts";
import {
  processorTimeUs,
  processTree,
  proportionalSetSize,
} from "../../tests/support/processes/process_tree.ts";

/** Processor time so far of a process and all below it, microseconds. Those that have ended meanwhile are missing. */
export async function treeTimeUs(pid: number): Promise<number> {
  const times = await Promise.all((await processTree(pid)).map(processorTimeUs));
  return times.reduce((sum, time) => sum + time, 0);
}

/** Memory of a process and all below it, bytes: what they share counts once. */
export async function treeMemory(pid: number): Promise<number> {
  const sizes = await Promise.all((await processTree(pid)).map(proportionalSetSize));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Includes writes after the last response: main writes the runs of the log some time later. */
const AFTERWARDS_MS = 500;

/** Resources of each operation that `work` counts. */
export async function costOf<Result>(
  pid: number,
  { work, count }: {
    readonly work: () => Promise<Result>;
    readonly count: (result: Result) => number;
  },
): Promise<{ readonly result: Result; readonly cost: Cost }> {
  const before = await treeTimeUs(pid);
  const result = await work();
  const memoryBytes = await treeMemory(pid);
  await new Promise((resolve) => setTimeout(resolve, AFTERWARDS_MS));
  const processorUs = (await treeTimeUs(pid) - before) / count(result);
  return { result, cost: { processorUs, memoryBytes } };
}
