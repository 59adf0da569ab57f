/** Measures the processor time of child processes. */
/** Clock ticks per second, which Linux fixes for `/proc`. */
const TICKS_PER_SECOND = 100;

/** Processor time of child processes that have ended, with their own children. Linux only; elsewhere always 0. */
export class CpuClock {
  readonly #start = childTimes();
  #last = this.#start;

  /** Returns the milliseconds that were added since the call before. */
  lap(): number {
    const now = childTimes();
    const ms = now.userMs + now.systemMs - this.#last.userMs - this.#last.systemMs;
    this.#last = now;
    return ms;
  }

  /** Returns the time since the start, for people. */
  total(): string {
    const { userMs, systemMs } = childTimes();
    const [user, system] = [userMs - this.#start.userMs, systemMs - this.#start.systemMs];
    return `${seconds(user + system)} (user ${seconds(user)}, system ${seconds(system)})`;
  }
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(0)} s`;
}

interface Times {
  readonly userMs: number;
  readonly systemMs: number;
}

function childTimes(): Times {
  if (Deno.build.os !== "linux") return { userMs: 0, systemMs: 0 };
  // A child program reads /proc, because the runtime requires all permissions for it.
  const { stdout } = new Deno.Command("cat", { args: [`/proc/${Deno.pid}/stat`] }).outputSync();
  // The program's name is in parentheses and may contain spaces. See proc(5) for the fields after it.
  const fields = new TextDecoder().decode(stdout).split(") ")[1]?.split(" ") ?? [];
  const ms = (ticks: string | undefined) => Number(ticks) * 1000 / TICKS_PER_SECOND;
  return { userMs: ms(fields[13]), systemMs: ms(fields[14]) };
}
