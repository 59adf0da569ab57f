/** Cron jobs in the main process, with their next runs. */
import type { Log } from "../kit/log.ts";
import { Backoff } from "./backoff.ts";
import type { Clock } from "../kit/clock.ts";
import { type CronSchedule, firstRun, nextRun } from "./cron_schedule.ts";
import type { CronTime } from "./isolate_functions/crons.ts";
import type { SystemCalls } from "../functions/system_calls.ts";
import { system } from "./system.ts";
import type { JobKind } from "./tables.ts";

/** A declared cron job. */
export interface Cron {
  readonly name: string;
  readonly schedule: CronSchedule;
  /** Path of the function. */
  readonly function: string;
  readonly functionKind: JobKind;
  readonly args: Record<string, unknown>;
}

export interface CronsOptions {
  readonly calls: SystemCalls;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the next due time may have changed. */
  readonly onChange: () => void;
}

interface Row {
  readonly schedule: CronSchedule;
  nextRun: number;
  /** Whether its run is being started. */
  starting: boolean;
}

export class Crons {
  readonly #options: CronsOptions;
  readonly #backoff = new Backoff();
  /** By owner, then by name; replaced by each declaration. */
  readonly #rows: Record<"app" | "service", ReadonlyMap<string, Row>> = {
    app: new Map(),
    service: new Map(),
  };

  constructor(options: CronsOptions) {
    this.#options = options;
  }

  /** Time of the next due run; `null` if there is none. */
  get wakeAt(): number | null {
    let earliest: number | null = null;
    for (const [, row] of this.#all()) {
      if (!row.starting && (earliest === null || row.nextRun < earliest)) earliest = row.nextRun;
    }
    return earliest === null ? null : Math.max(earliest, this.#backoff.until);
  }

  /** Replaces the cron jobs of the app or of the service. Throws if they cannot be stored. */
  async declare(of: "app" | "service", crons: readonly Cron[]): Promise<void> {
    const { calls, clock } = this.#options;
    const now = clock.now();
    const declared = crons.map(({ name, schedule, functionKind, args, function: path }) => ({
      name,
      schedule,
      functionKind,
      args,
      function: path,
      firstRun: firstRun(schedule, now) ?? Number.MAX_SAFE_INTEGER,
    }));
    const times: readonly CronTime[] = await calls.mutate(system.crons.declare, { of, crons: declared });
    const schedules = new Map(crons.map(({ name, schedule }) => [name, schedule]));
    this.#rows[of] = new Map(times.flatMap(({ name, nextRun }) => {
      const schedule = schedules.get(name);
      return schedule === undefined ? [] : [[name, { schedule, nextRun, starting: false }]];
    }));
    this.#options.onChange();
  }

  /** Starts due runs. */
  work(): void {
    const now = this.#options.clock.now();
    if (now < this.#backoff.until) return;
    for (const [name, row] of this.#all()) {
      if (!row.starting && row.nextRun <= now) this.#start(name, { row, now });
    }
  }

  async #start(name: string, { row, now }: { readonly row: Row; readonly now: number }): Promise<void> {
    const { calls, clock, log, onChange } = this.#options;
    row.starting = true;
    try {
      const dueAt = row.nextRun;
      const next = nextRun(row.schedule, { dueAt, now }) ?? Number.MAX_SAFE_INTEGER;
      // The cron job may have been removed by a declaration in the meantime.
      row.nextRun = await calls.mutate(system.crons.start, { name, dueAt, nextRun: next }) ?? Infinity;
      this.#backoff.succeeded();
    } catch (error) {
      this.#backoff.failed(clock.now());
      log("warn", "Cannot start cron job", { name, error });
    }
    row.starting = false;
    onChange();
  }

  *#all(): Iterable<readonly [name: string, row: Row]> {
    yield* this.#rows.app;
    yield* this.#rows.service;
  }
}
