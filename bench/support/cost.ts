/** Resources of a server: processor time and memory of all its processes. */
import type { Cost } from "../table.ts";
import {
  commandLine,
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

/** Memory of a process and all below it, and of each: `main 60, writer 31, reader 29` in megabytes. */
export interface TreeMemory {
  readonly bytes: number;
  readonly byProcess: string;
}

export async function memoryByProcess(pid: number): Promise<TreeMemory> {
  const processes = await Promise.all(
    (await processTree(pid)).map(async (each) => ({
      name: each === pid ? "main" : roleOf(await commandLine(each) ?? ""),
      bytes: await proportionalSetSize(each),
    })),
  );
  return {
    bytes: processes.reduce((sum, { bytes }) => sum + bytes, 0),
    byProcess: processes.filter(({ bytes }) => bytes > 0)
      .map(({ name, bytes }) => `${name} ${(bytes / 1e6).toFixed(0)}`).join(", "),
  };
}

/** The role of an isolate, which the path of its socket contains, or the name of a helper's module. */
function roleOf(command: string): string {
  return /\/([a-z]+)-\d+$/.exec(command)?.[1] ?? /(\w+)\.ts\b[^/]*$/.exec(command)?.[1] ?? "other";
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
