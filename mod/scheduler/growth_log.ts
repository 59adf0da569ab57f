/** Tells in the log which functions are put off because they schedule ever more, each now and then. */
import type { Log } from "../kit/log.ts";
import { schedulerLimits } from "../functions/limits.ts";
import type { SchedulerDoc } from "./tables.ts";

const { chainToldMs, chainsToldMax } = schedulerLimits;

export class GrowthLog {
  readonly #log: Log;
  readonly #now: () => number;
  /** When each was told of, by function. */
  readonly #told = new Map<string, number>();

  constructor(log: Log, now: () => number) {
    this.#log = log;
    this.#now = now;
  }

  /** Takes note of a job that began to wait. */
  see({ name, chain, scheduledTime }: SchedulerDoc<"_scheduled_functions">): void {
    if (chain?.putOff !== true) return;
    const now = this.#now();
    for (const [known, at] of this.#told) {
      if (now - at < chainToldMs) break;
      this.#told.delete(known);
    }
    if (this.#told.has(name) || this.#told.size >= chainsToldMax) return;
    this.#told.set(name, now);
    this.#log("warn", "A scheduled function schedules ever more functions: they are put off", {
      name,
      job: chain.root,
      generation: chain.generation,
      putOffMs: Math.max(0, Math.round(scheduledTime - now)),
    });
  }
}
