/** Inspects processes through `/proc`: children, command lines, open files, memory. Linux only. */
import { until } from "../waiting.ts";

const decoder = new TextDecoder();

/** Reads a file of `/proc`; `null` if the process has ended. Uses `cat`, because Deno requires full permissions for `/proc`. */
async function read(path: string): Promise<string | null> {
  const { code, stdout } = await new Deno.Command("cat", { args: [path], stderr: "null" }).output();
  return code === 0 ? decoder.decode(stdout) : null;
}

/** Ids of the direct children of a process, of all its threads. */
export async function childrenOf(pid: number): Promise<number[]> {
  const { stdout } = await new Deno.Command("pgrep", { args: ["-P", String(pid)], stderr: "null" }).output();
  return decoder.decode(stdout).split("\n").filter(Boolean).map(Number);
}

/** Ids of a process and its descendants. */
export async function processTree(pid: number): Promise<number[]> {
  const below = await Promise.all((await childrenOf(pid)).map(processTree));
  return [pid, ...below.flat()];
}

/** In bytes. */
export interface ProcessMemory {
  /** Proportional set size: a page shared by n processes counts as 1/n in each. */
  readonly proportional: number;
  /** Anonymous memory, such as heaps. Other processes that run the same program do not affect it. */
  readonly anonymous: number;
}

/** Returns the memory of a process; zeros if it has ended. */
export async function memoryOf(pid: number): Promise<ProcessMemory> {
  const text = await read(`/proc/${pid}/smaps_rollup`) ?? "";
  const bytes = (line: RegExp) => Number(line.exec(text)?.[1] ?? 0) * 1024;
  return { proportional: bytes(/^Pss: *(\d+) kB/m), anonymous: bytes(/^Anonymous: *(\d+) kB/m) };
}

/** Maximum resident memory of a process in bytes; 0 if it has ended. */
export async function peakMemory(pid: number): Promise<number> {
  const text = await read(`/proc/${pid}/status`);
  return Number(/^VmHWM:\s*(\d+) kB/m.exec(text ?? "")?.[1] ?? 0) * 1024;
}

/** Processor time of a process in microseconds, in steps of ten milliseconds; 0 if it has ended. */
export async function processorTimeUs(pid: number): Promise<number> {
  // The name in parentheses may contain spaces. User and system time are the 12th and 13th fields after it.
  const fields = (await read(`/proc/${pid}/stat`))?.replace(/^.*\) /, "").split(" ");
  return (Number(fields?.[11] ?? 0) + Number(fields?.[12] ?? 0)) * 10_000;
}

/** Command line of a process; `null` if it has ended or is a zombie. */
export async function commandLine(pid: number): Promise<string | null> {
  return (await read(`/proc/${pid}/cmdline`))?.replaceAll("\0", " ").trim() || null;
}

/** Whether a process is running. */
export async function isRunning(pid: number): Promise<boolean> {
  return await commandLine(pid) !== null;
}

/** Whether one of these processes is running. */
export async function anyRunning(pids: readonly number[]): Promise<boolean> {
  const args = pids.map((pid) => `/proc/${pid}/cmdline`);
  return (await new Deno.Command("cat", { args, stdin: "null", stderr: "null" }).output()).stdout.length > 0;
}

/** Whether a suspended process has received SIGTERM. */
export async function isAskedToEnd(pid: number): Promise<boolean> {
  const [, mask = "0"] = /^ShdPnd:\s*([0-9a-f]+)$/m.exec(await read(`/proc/${pid}/status`) ?? "") ?? [];
  return (BigInt(`0x${mask}`) >> 14n & 1n) === 1n;
}

/** Id of the current writer of a server, which the path of its socket shows. Throws if there is none. */
export async function writerOf(serverPid: number): Promise<number> {
  for (const pid of await childrenOf(serverPid)) {
    if (/\/writer-\d+$/.test(await commandLine(pid) ?? "")) return pid;
  }
  throw new Error(`Process ${serverPid} has no writer`);
}

/** Sends SIGKILL to all of them. Ignores processes that have ended. */
export async function killAll(pids: readonly number[]): Promise<void> {
  await send("KILL", pids);
}

/** Sends SIGTERM to all of them. Ignores processes that have ended. */
export async function terminateAll(pids: readonly number[]): Promise<void> {
  await send("TERM", pids);
}

/**
 * Suspends a process until {@linkcode resume}. Resolves once it is suspended, or has ended: a signal that is sent earlier may be
 * handled first.
 */
export async function suspend(pid: number): Promise<void> {
  await send("STOP", [pid]);
  await until(async () => /^State:\s+[^TZX\s]/m.exec(await read(`/proc/${pid}/status`) ?? "") === null, {
    what: `process ${pid} is suspended`,
  });
}

export async function resume(pid: number): Promise<void> {
  await send("CONT", [pid]);
}

async function send(signal: string, pids: readonly number[]): Promise<void> {
  await new Deno.Command("kill", { args: [`-${signal}`, ...pids.map(String)], stderr: "null" }).output();
}
