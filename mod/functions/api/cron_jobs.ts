/** `cronJobs()` declares recurring functions in `crons.ts`. All times are UTC. */
import { withHelp } from "../../explained.ts";
import { functionPath } from "../../protocol/function_reference.ts";
import type { Known } from "../../protocol/server_function_names.ts";
import { schedulerLimits } from "../limits.ts";
import type { SchedulableArgs, SchedulableName } from "./scheduler.ts";

/** Exactly one unit. */
export type Interval =
  | { readonly seconds: number; readonly minutes?: never; readonly hours?: never }
  | { readonly minutes: number; readonly seconds?: never; readonly hours?: never }
  | { readonly hours: number; readonly seconds?: never; readonly minutes?: never };

export interface HourlySchedule {
  readonly minuteUTC: number;
}

export interface DailySchedule extends HourlySchedule {
  readonly hourUTC: number;
}

export type DayOfWeek = "sunday" | "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday";

export interface WeeklySchedule extends DailySchedule {
  readonly dayOfWeek: DayOfWeek;
}

export interface MonthlySchedule extends DailySchedule {
  /** 1 to 31; months without this day are skipped. */
  readonly day: number;
}

/** A declared cron. */
export interface CronDefinition {
  readonly name: string;
  readonly schedule:
    | { readonly kind: "interval"; readonly everyMs: number }
    | { readonly kind: "expression"; readonly expression: string };
  readonly function: string;
  readonly args: Record<string, unknown>;
}

const days: readonly DayOfWeek[] = [
  "sunday",
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
];

/**
 * Recurring functions by name. Each run is a scheduled function: a mutation runs exactly once, an action at most once. A cron
 * never overlaps with itself: a run that is due while the previous one is running is skipped. Runs missed while the server was
 * down are replaced by a single run.
 */
export class CronJobs {
  readonly #crons = new Map<string, CronDefinition>();

  /** Runs at a fixed interval, first when it is declared. */
  interval<Name extends SchedulableName>(
    name: string,
    interval: Interval,
    reference: Known<Name>,
    ...args: SchedulableArgs<Name>
  ): void {
    const { seconds = 0, minutes = 0, hours = 0 } = interval as Record<string, number | undefined>;
    const everyMs = ((hours * 60 + minutes) * 60 + seconds) * 1000;
    if (
      Object.keys(interval).length !== 1 || !(everyMs >= schedulerLimits.cronIntervalMsMin) ||
      !Number.isSafeInteger(everyMs)
    ) {
      throw new TypeError(
        `Cron "${name}": the interval must be one of { seconds }, { minutes } or { hours } and at least one second`,
      );
    }
    this.#add(name, {
      schedule: { kind: "interval", everyMs },
      reference,
      args: args[0] as CronDefinition["args"],
    });
  }

  /** Runs once an hour. */
  hourly<Name extends SchedulableName>(
    name: string,
    { minuteUTC }: HourlySchedule,
    reference: Known<Name>,
    ...args: SchedulableArgs<Name>
  ): void {
    this.cron(name, `${minute(name, minuteUTC)} * * * *`, reference, ...args);
  }

  /** Runs once a day. */
  daily<Name extends SchedulableName>(
    name: string,
    { hourUTC, minuteUTC }: DailySchedule,
    reference: Known<Name>,
    ...args: SchedulableArgs<Name>
  ): void {
    this.cron(name, `${minute(name, minuteUTC)} ${hour(name, hourUTC)} * * *`, reference, ...args);
  }

  /** Runs once a week. */
  weekly<Name extends SchedulableName>(
    name: string,
    { dayOfWeek, hourUTC, minuteUTC }: WeeklySchedule,
    reference: Known<Name>,
    ...args: SchedulableArgs<Name>
  ): void {
    const day = days.indexOf(dayOfWeek);
    if (day < 0) throw new TypeError(`Cron "${name}": dayOfWeek must be one of ${days.join(", ")}`);
    this.cron(name, `${minute(name, minuteUTC)} ${hour(name, hourUTC)} * * ${day}`, reference, ...args);
  }

  /** Runs once a month. */
  monthly<Name extends SchedulableName>(
    name: string,
    { day, hourUTC, minuteUTC }: MonthlySchedule,
    reference: Known<Name>,
    ...args: SchedulableArgs<Name>
  ): void {
    const date = whole(name, { what: "day", value: day, from: 1, to: 31 });
    this.cron(name, `${minute(name, minuteUTC)} ${hour(name, hourUTC)} ${date} * *`, reference, ...args);
  }

  /** Runs at the times of a cron expression: minute, hour, day of month, month, day of week; with six fields, seconds first. */
  cron<Name extends SchedulableName>(
    name: string,
    expression: string,
    reference: Known<Name>,
    ...args: SchedulableArgs<Name>
  ): void {
    this.#add(name, {
      schedule: { kind: "expression", expression },
      reference,
      args: args[0] as CronDefinition["args"],
    });
  }

  /** The declared crons. Read by the isolate. */
  static definitions(crons: CronJobs): readonly CronDefinition[] {
    return [...crons.#crons.values()];
  }

  #add(
    name: string,
    { schedule, reference, args = {} }: {
      readonly schedule: CronDefinition["schedule"];
      readonly reference: SchedulableName;
      readonly args: Record<string, unknown> | undefined;
    },
  ): void {
    if (typeof name !== "string" || name === "" || name.length > schedulerLimits.cronNameCharsMax) {
      throw withHelp(
        new TypeError(
          `A cron needs a name of up to ${schedulerLimits.cronNameCharsMax} characters, not ${String(name)}`,
        ),
        "schedule",
      );
    }
    if (name.startsWith("svc-")) {
      throw new TypeError(`Cron "${name}": names that start with svc- are reserved`);
    }
    if (this.#crons.has(name)) throw withHelp(new TypeError(`Duplicate cron "${name}"`), "schedule");
    this.#crons.set(name, { name, schedule, function: functionPath(reference), args });
  }
}

/** Creates the default export of `crons.ts`. */
export function cronJobs(): CronJobs {
  return new CronJobs();
}

/** Returns the crons of a default export of `crons.ts`; `null` if it was not created by {@linkcode cronJobs}. */
export function cronDefinitions(exported: unknown): readonly CronDefinition[] | null {
  return exported instanceof CronJobs ? CronJobs.definitions(exported) : null;
}

function minute(name: string, value: number): number {
  return whole(name, { what: "minuteUTC", value, from: 0, to: 59 });
}

function hour(name: string, value: number): number {
  return whole(name, { what: "hourUTC", value, from: 0, to: 23 });
}

function whole(
  name: string,
  { what, value, from, to }: {
    readonly what: string;
    readonly value: number;
    readonly from: number;
    readonly to: number;
  },
): number {
  if (Number.isInteger(value) && value >= from && value <= to) return value;
  throw new TypeError(
    `Cron "${name}": ${what} must be a whole number from ${from} to ${to}, not ${String(value)}`,
  );
}
