/** Logs functions whose jobs are deferred because they schedule ever more jobs, at a limited rate. */
import type { Log } from "../kit/log.ts";
import { schedulerLimits } from "../functions/limits.ts";
import type { SchedulerDoc } from "./tables.ts";

const { chainToldMs, chainsToldMax } = schedulerLimits;

export class DeferralLog {
  readonly #log: Log;
  readonly #now: () => number;
  /** Time of the last log entry by function. */
  readonly #loggedAt = new Map<string, number>();

  constructor(log: Log, now: () => number) {
    this.#log = log;
    this.#now = now;
  }

  /** Call for each job that became pending. */
  onPending({ name, chain, scheduledTime }: SchedulerDoc<"_scheduled_functions">): void {
    if (chain?.putOff !== true) return;
    const now = this.#now();
    for (const [known, at] of this.#loggedAt) {
      if (now - at < chainToldMs) break;
      this.#loggedAt.delete(known);
    }
    if (this.#loggedAt.has(name) || this.#loggedAt.size >= chainsToldMax) return;
    this.#loggedAt.set(name, now);
    this.#log("warn", "Deferring jobs of a function that keeps scheduling more jobs", {
      name,
      job: chain.root,
      generation: chain.generation,
      putOffMs: Math.max(0, Math.round(scheduledTime - now)),
    });
  }
}
