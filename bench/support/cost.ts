/** Processor time and memory of all processes of a server. */
import { pause } from "../../tests/support/waiting.ts";
import type { Cost } from "../table.ts";
import {
  commandLine,
  memoryOf,
  type ProcessMemory,
  processorTimeUs,
  processTree,
} from "../../tests/support/processes/process_tree.ts";

/** Returns the processor time of a process tree in microseconds, without processes that have ended. */
export async function treeTimeUs(pid: number): Promise<number> {
  const times = await Promise.all((await processTree(pid)).map(processorTimeUs));
  return times.reduce((sum, time) => sum + time, 0);
}

export interface TreeMemory {
  /** Proportional set sizes, so that shared pages count once. */
  readonly bytes: number;
  /** In megabytes: `main 60, writer 31, reader 29`. */
  readonly byProcess: string;
  /** Anonymous memory, which other processes of the machine do not affect. */
  readonly anonymous: { readonly bytes: number; readonly byProcess: string };
}

export async function treeMemory(pid: number): Promise<TreeMemory> {
  const processes = await Promise.all(
    (await processTree(pid)).map(async (each) => ({
      name: each === pid ? "main" : roleOf(await commandLine(each) ?? ""),
      ...await memoryOf(each),
    })),
  );
  const sumOf = (kind: keyof ProcessMemory) => ({
    bytes: processes.reduce((sum, memory) => sum + memory[kind], 0),
    byProcess: processes.filter((memory) => memory[kind] > 0)
      .map((memory) => `${memory.name} ${(memory[kind] / 1e6).toFixed(0)}`).join(", "),
  });
  return { ...sumOf("proportional"), anonymous: sumOf("anonymous") };
}

/** Returns the role of an isolate, which its socket's path contains, or the name of a helper process's module. */
function roleOf(command: string): string {
  return /\/([a-z]+)-\d+$/.exec(command)?.[1] ?? /(\w+)\.ts\b[^/]*$/.exec(command)?.[1] ?? "other";
}

const SAMPLE_MS = 100;

/** Returns the highest memory sampled during `work`. */
export async function peakMemoryDuring(pid: number, work: () => Promise<unknown>): Promise<TreeMemory> {
  let isDone = false;
  const working = work().finally(() => isDone = true);
  working.catch(() => {});
  let peak = await treeMemory(pid);
  while (!isDone) {
    await pause(SAMPLE_MS);
    const memory = await treeMemory(pid);
    if (memory.bytes > peak.bytes) peak = memory;
  }
  await working;
  return peak;
}

/** Main writes the execution log some time after the last response. */
const LOG_WRITE_MS = 500;

/** Runs `work` and returns its cost for each operation. */
export async function costOf<Result>(
  pid: number,
  { work, operations }: {
    readonly work: () => Promise<Result>;
    readonly operations: (result: Result) => number;
  },
): Promise<{ readonly result: Result; readonly cost: Cost }> {
  const before = await treeTimeUs(pid);
  const result = await work();
  const { bytes: memoryBytes } = await treeMemory(pid);
  await pause(LOG_WRITE_MS);
  const processorUs = (await treeTimeUs(pid) - before) / operations(result);
  return { result, cost: { processorUs, memoryBytes } };
}
