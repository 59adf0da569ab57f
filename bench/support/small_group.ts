/**
 * A control group with the time of one processor and a memory limit. Where it cannot be created, processes are pinned to a
 * processor instead.
 */

/** Creates the group and prints the files to write process ids to. Fails without permission to create it. */
const CREATE = `set -e
name=$1 memory=$2
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  group=/sys/fs/cgroup/$name
  mkdir "$group"
  trap 'rmdir "$group"' EXIT
  echo "$memory" > "$group/memory.max"
  echo "100000 100000" > "$group/cpu.max"
  [ ! -f "$group/memory.swap.max" ] || echo 0 > "$group/memory.swap.max"
  echo "$group/cgroup.procs"
else
  cpu=/sys/fs/cgroup/cpu/$name mem=/sys/fs/cgroup/memory/$name
  mkdir "$cpu" "$mem"
  trap 'rmdir "$cpu" "$mem"' EXIT
  echo 100000 > "$cpu/cpu.cfs_period_us"
  echo 100000 > "$cpu/cpu.cfs_quota_us"
  echo "$memory" > "$mem/memory.limit_in_bytes"
  echo "$mem/cgroup.procs"
  echo "$cpu/cgroup.procs"
fi
trap - EXIT`;

/** Moves its own process into the group, then runs a command. */
const ENTER = `while [ "$1" != -- ]; do echo $$ > "$1"; shift; done; shift; exec "$@"`;

export interface GroupMemory {
  /** Maximum, including the file cache. */
  readonly peakBytes: number;
  readonly swappedBytes: number;
  /** Processes that the kernel killed for lack of memory. */
  readonly killed: number;
}

export class SmallGroup implements AsyncDisposable {
  /** Files to write process ids to. Empty if the group could not be created. */
  readonly #files: readonly string[];

  private constructor(files: readonly string[]) {
    this.#files = files;
  }

  static async create({ name, memoryBytes }: {
    readonly name: string;
    readonly memoryBytes: number;
  }): Promise<SmallGroup> {
    const { code, text } = await shell(CREATE, [name, String(memoryBytes)]);
    return new SmallGroup(code === 0 ? text.split("\n").filter(Boolean) : []);
  }

  /** Whether the group could be created. */
  get isLimited(): boolean {
    return this.#files.length > 0;
  }

  /** Prefix of a command that starts a process in the group. */
  get starter(): readonly string[] {
    return this.isLimited ? ["sh", "-c", ENTER, "sh", ...this.#files, "--"] : ["taskset", "-c", "0"];
  }

  /** Returns `null` if the group could not be created. */
  async memory(): Promise<GroupMemory | null> {
    const folder = this.#files[0]?.replace(/\/cgroup\.procs$/, "");
    if (folder === undefined) return null;
    const read = async (file: string) =>
      (await shell('cat "$1" 2>/dev/null || true', [`${folder}/${file}`])).text;
    const first = async (...files: readonly string[]) => {
      for (const file of files) {
        const text = (await read(file)).trim();
        if (text !== "") return Number(text);
      }
      return 0;
    };
    const events = await read("memory.events") + await read("memory.oom_control");
    return {
      peakBytes: await first("memory.peak", "memory.max_usage_in_bytes"),
      swappedBytes: Number(
        /^swap (\d+)$/m.exec(await read("memory.stat"))?.[1] ?? await first("memory.swap.current"),
      ),
      killed: Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Killed processes stay in the group for a moment.
    const remove = 'for i in 1 2 3 4 5 6 7 8 9 10; do rmdir "$1" 2>/dev/null && exit; sleep 0.3; done';
    for (const file of this.#files) await shell(remove, [file.replace(/\/cgroup\.procs$/, "")]);
  }
}

async function shell(
  script: string,
  args: readonly string[],
): Promise<{ readonly code: number; readonly text: string }> {
  const { code, stdout } = await new Deno.Command("sh", {
    args: ["-c", script, "sh", ...args],
    stderr: "null",
  })
    .output();
  return { code, text: new TextDecoder().decode(stdout) };
}
