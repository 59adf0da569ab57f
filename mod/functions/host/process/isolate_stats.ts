/** Counts running, started and lost isolates for metrics. */
import type { IsolateRole } from "../../wire/messages.ts";
import type { DeathCause } from "./isolate.ts";

export interface RoleCount {
  readonly running: number;
  readonly starts: number;
  /** Processes that ended unexpectedly. */
  readonly lost: number;
}

const ROLES = ["writer", "reader", "runner"] as const satisfies readonly IsolateRole[];

export class IsolateStats {
  /** By process id. */
  readonly #running = new Map<number, IsolateRole>();
  readonly #starts: Record<IsolateRole, number> = { writer: 0, reader: 0, runner: 0 };
  readonly #lost: Record<IsolateRole, number> = { writer: 0, reader: 0, runner: 0 };

  started(pid: number, role: IsolateRole): void {
    this.#running.set(pid, role);
    this.#starts[role]++;
  }

  ended(pid: number, cause: DeathCause): void {
    const role = this.#running.get(pid);
    if (role === undefined) return;
    this.#running.delete(pid);
    if (cause !== "asked") this.#lost[role]++;
  }

  get roles(): Readonly<Record<IsolateRole, RoleCount>> {
    const running = [...this.#running.values()];
    const count = (role: IsolateRole): RoleCount => ({
      running: running.filter((other) => other === role).length,
      starts: this.#starts[role],
      lost: this.#lost[role],
    });
    return { writer: count("writer"), reader: count("reader"), runner: count("runner") };
  }

  /** Resident memory in bytes per role. `read` returns the memory of processes by id. */
  async memory(
    read: (pids: readonly number[]) => Promise<ReadonlyMap<number, number>>,
  ): Promise<ReadonlyMap<IsolateRole, number>> {
    const running = new Map(this.#running);
    const sizes = await read([...running.keys()]);
    const sums = new Map<IsolateRole, number>(ROLES.map((role) => [role, 0]));
    for (const [pid, role] of running) sums.set(role, (sums.get(role) ?? 0) + (sizes.get(pid) ?? 0));
    return sums;
  }
}
