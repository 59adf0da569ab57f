/** Finds the processes of a server, and the one with a connection, with shell commands. */

async function shell(script: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await new Deno.Command("sh", { args: ["-c", script, "sh", ...args], stderr: "null" })
    .output();
  return new TextDecoder().decode(stdout);
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

async function processes(): Promise<Process[]> {
  const lines = (await shell("ps -eo pid=,ppid=,stat=,args=")).split("\n");
  return lines.flatMap((line) => {
    const [, pid, parent, state = "", command = ""] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    return pid === undefined || state.startsWith("Z")
      ? []
      : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}

/** Process ids of the workers that a server has started. */
export async function workersOf(pid: number): Promise<number[]> {
  return (await processes()).filter(({ parent, command }) =>
    parent === pid && command.includes("worker/main.ts")
  )
    .map((process) => process.pid);
}

/** How many open connections of a port a process has. */
export async function connectionsOf(pid: number, port: number): Promise<number> {
  const inodes = new Set<string>();
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  for (const line of (await shell("cat /proc/net/tcp")).split("\n").slice(1)) {
    const [, from = "", , state = "", , , , , , inode = ""] = line.trim().split(/\s+/);
    if (from.endsWith(local) && state === "01") inodes.add(inode);
  }
  const files = await shell('ls -l "/proc/$1/fd"', String(pid));
  return [...files.matchAll(/socket:\[(\d+)\]/g)].filter(([, inode = ""]) => inodes.has(inode)).length;
}

export async function areAlive(pids: readonly number[]): Promise<number[]> {
  return (await processes()).map(({ pid }) => pid).filter((pid) => pids.includes(pid));
}
