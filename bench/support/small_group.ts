/**
 * A control group with one processor's worth of time and a bound on memory, for the processes that are started in it. Where
 * none can be made, processes are pinned to a processor and started with options for the memory.
 */

/** Prints the files that take the ids of the group's processes; fails where the group cannot be made. */
const MAKE = `set -e
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
  cpu=/sys/fs/cgroup/cpu/$name bounded=/sys/fs/cgroup/memory/$name
  mkdir "$cpu" "$bounded"
  trap 'rmdir "$cpu" "$bounded"' EXIT
  echo 100000 > "$cpu/cpu.cfs_period_us"
  echo 100000 > "$cpu/cpu.cfs_quota_us"
  echo "$memory" > "$bounded/memory.limit_in_bytes"
  echo "$bounded/cgroup.procs"
  echo "$cpu/cgroup.procs"
fi
trap - EXIT`;

/** Moves itself into the groups, then runs the given command. */
const ENTER = `while [ "$1" != -- ]; do echo $$ > "$1"; shift; done; shift; exec "$@"`;

/** Memory usage of the group. */
export interface GroupMemory {
  /** Most that was in use at once, pages of files included. */
  readonly peakBytes: number;
  readonly swappedBytes: number;
  /** Processes that were killed because there was no more. */
  readonly killed: number;
}

export class SmallGroup implements AsyncDisposable {
  /** Files that take the ids of processes; none where no group could be made. */
  readonly #files: readonly string[];

  private constructor(files: readonly string[]) {
    this.#files = files;
  }

  static async make({ name, memoryBytes }: {
    readonly name: string;
    readonly memoryBytes: number;
  }): Promise<SmallGroup> {
    const { code, text } = await shell(MAKE, [name, String(memoryBytes)]);
    return new SmallGroup(code === 0 ? text.split("\n").filter(Boolean) : []);
  }

  get bounded(): boolean {
    return this.#files.length > 0;
  }

  /** Command that starts a process in the group: the process's own command is appended. */
  get starter(): readonly string[] {
    return this.bounded ? ["sh", "-c", ENTER, "sh", ...this.#files, "--"] : ["taskset", "-c", "0"];
  }

  /** `null` where there is no group. */
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
    // Processes that were killed are in it for a moment.
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
