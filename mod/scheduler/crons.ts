/** Cron jobs in the main process, with their next runs. */
import { z } from "zod";
import { schedulerLimits } from "../functions/limits.ts";
import { internalMainAction, type MainAction } from "../functions/main_actions.ts";
import { SystemCalls } from "../functions/system_calls.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import { Backoff } from "./job_queue.ts";
import type { CronTime } from "./isolate_functions/crons.ts";
import { type SchedulerPort, system } from "./system.ts";
import { type CronSchedule, firstRun, type JobKind, nextRun } from "./tables.ts";

/** A declared cron job. */
export interface Cron {
  readonly name: string;
  readonly schedule: CronSchedule;
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

export interface ServiceTask {
  /** Path of a system function in the isolates, or of an internal action of the main process (`main_actions.ts`). */
  readonly path: `_${string}`;
  readonly kind: JobKind;
  readonly args?: Record<string, unknown>;
}

/**
 * Creates a cron job of the service for `Scheduler`. It runs like the app's cron jobs: a mutation exactly once, an action at
 * most once, and one run makes up for runs missed while the server was down.
 *
 * @example
 * ```ts
 * await scheduler.setServiceCron(
 *   serviceCron("svc-backup", { kind: "expression", expression: "0 3 * * *" }, {
 *     path: "_system/backup:run",
 *     kind: "action",
 *   }),
 * );
 * ```
 */
export function serviceCron(name: `svc-${string}`, schedule: CronSchedule, task: ServiceTask): Cron {
  return { name, schedule, function: task.path, functionKind: task.kind, args: task.args ?? {} };
}

const CLEAN_PATH = "_system/scheduler:cleanAll";

/** Hourly deletion of old job results. */
export const cleanupCron: Cron = serviceCron(
  "svc-clean-scheduled",
  { kind: "expression", expression: "17 * * * *" },
  { path: CLEAN_PATH, kind: "action" },
);

/** Actions of {@linkcode cleanupCron} by path. Each batch is a separate mutation, so that other calls do not wait long. */
export function cleanupActions(
  { port, now = Date.now }: { readonly port: SchedulerPort; readonly now?: () => number },
): ReadonlyMap<string, MainAction> {
  const calls = new SystemCalls(port);
  return new Map([[
    CLEAN_PATH,
    internalMainAction(z.strictObject({}), async () => {
      const before = now() - schedulerLimits.resultKeptMs;
      while (await calls.mutate(system.jobs.clean, { before }));
    }),
  ]]);
}
