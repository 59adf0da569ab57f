/** Rounds in which the server and its control take turns, and the rows that come of them. */
import type { BenchContext } from "../../context.ts";
import { costOf } from "../../support/cost.ts";
import { median } from "../../support/statistics.ts";
import type { Cost, Row } from "../../table.ts";

/** Measurements of one round on one side. */
export interface Sample<Result> {
  readonly result: Result;
  readonly cost: Cost;
}

export interface Turns<Result> {
  readonly ours: readonly Sample<Result>[];
  readonly control: readonly Sample<Result>[];
}

/** A side: the process whose tree is looked at, and what it is asked to do. */
export interface Side<Result> {
  readonly pid: number;
  readonly work: () => Promise<Result>;
}

/** Rounds that count. */
export function roundsOf({ full }: BenchContext): number {
  return full ? 5 : 2;
}

/** Both sides in turns; the first round warms up. `count`: the operations of a result. */
export async function inRoundRobin<Result>(
  context: BenchContext,
  { ours, control, count }: {
    readonly ours: Side<Result>;
    readonly control: Side<Result>;
    readonly count: (result: Result) => number;
  },
): Promise<Turns<Result>> {
  const turns = { ours: [] as Sample<Result>[], control: [] as Sample<Result>[] };
  await ours.work();
  await control.work();
  for (let round = 0; round < roundsOf(context); round++) {
    // Each goes first as often as the other.
    for (const side of round % 2 === 0 ? ["ours", "control"] as const : ["control", "ours"] as const) {
      const { pid, work } = side === "ours" ? ours : control;
      turns[side].push(await costOf(pid, { work, count }));
    }
  }
  return turns;
}

export interface Figure<Result> {
  readonly value: (result: Result) => number;
  readonly unit: string;
  readonly digits?: number;
  readonly target: Row["target"];
  /** The value compared with the target. Default: ours divided by the control's. */
  readonly of?: "ratio" | "ours";
}

/** A row of medians; the ratio is that of each round. */
export function rowOf<Result>(name: string, turns: Turns<Result>, figure: Figure<Result>): Row {
  const { value, unit, digits = 1, target, of = "ratio" } = figure;
  const values = (side: keyof Turns<Result>) => turns[side].map(({ result }) => value(result));
  const [ours, control] = [values("ours"), values("control")];
  return {
    name,
    measured: `${median(ours).toFixed(digits)} ${unit}`,
    control: `${median(control).toFixed(digits)} ${unit}`,
    ratio: of === "ours" ? median(ours) : median(ours.map((value, at) => value / (control[at] ?? NaN))),
    target,
    cost: { measured: medianCost(turns.ours), control: medianCost(turns.control) },
    details: { ours, control, costs: turns.ours.map(({ cost }) => cost) },
  };
}

/** A row about the processor time of an operation in milliseconds. */
export function processorRow<Result>(name: string, turns: Turns<Result>, target: Row["target"]): Row {
  const values = (side: keyof Turns<Result>) => turns[side].map(({ cost }) => cost.processorUs / 1_000);
  const [ours, control] = [values("ours"), values("control")];
  return {
    name,
    measured: `${median(ours).toFixed(3)} ms`,
    control: `${median(control).toFixed(3)} ms`,
    ratio: median(ours),
    target,
    details: { ours, control },
  };
}

function medianCost(samples: readonly Sample<unknown>[]): Cost {
  return {
    processorUs: median(samples.map(({ cost }) => cost.processorUs)),
    memoryBytes: median(samples.map(({ cost }) => cost.memoryBytes)),
  };
}
