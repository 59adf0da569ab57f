/** Measures Syncline and its control in alternating rounds. */
import type { BenchContext } from "../context.ts";
import { median } from "./statistics.ts";
import { costOf } from "./cost.ts";
import type { Cost, Row } from "../table.ts";

/**
 * Measures each side once per round, in alternating order. An additional first round warms up and is discarded. Later sides
 * may use results of earlier ones, because the first round keeps the given order.
 */
export async function alternate<Name extends string, Result>(
  rounds: number,
  sides: Readonly<Record<Name, () => Promise<Result>>>,
): Promise<Record<Name, Result[]>> {
  const names = Object.keys(sides) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Result[]>;
  for (let round = 0; round <= rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const result = await sides[name]();
      if (round > 0) results[name].push(result);
    }
  }
  return results;
}

/** One measurement of a side. */
export interface Sample<Result> {
  readonly result: Result;
  readonly cost: Cost;
}

/** Samples of both sides, one per round. */
export interface Comparison<Result> {
  readonly ours: readonly Sample<Result>[];
  readonly control: readonly Sample<Result>[];
}

export interface Side<Result> {
  /** Main process, whose process tree is measured. */
  readonly pid: number;
  readonly work: () => Promise<Result>;
}

export function roundsOf({ full }: BenchContext): number {
  return full ? 5 : 2;
}

/** Measures both sides and their cost for each operation. */
export async function compare<Result>(
  context: BenchContext,
  { ours, control, operations }: {
    readonly ours: Side<Result>;
    readonly control: Side<Result>;
    /** Number of operations behind a result. */
    readonly operations: (result: Result) => number;
  },
): Promise<Comparison<Result>> {
  const sample = ({ pid, work }: Side<Result>) => () => costOf(pid, { work, operations });
  return await alternate(roundsOf(context), { ours: sample(ours), control: sample(control) });
}

export interface Figure<Result> {
  readonly value: (result: Result) => number;
  readonly unit: string;
  readonly digits?: number;
  readonly target: Row["target"];
  /** Value that the target applies to. Default: the ratio to the control. */
  readonly targetOf?: "ratio" | "ours";
}

/** Returns a row of medians. The ratio is the median of the rounds' ratios. */
export function comparisonRow<Result>(
  name: string,
  comparison: Comparison<Result>,
  { value, unit, digits = 1, target, targetOf = "ratio" }: Figure<Result>,
): Row {
  const values = (side: keyof Comparison<Result>) => comparison[side].map(({ result }) => value(result));
  const [ours, control] = [values("ours"), values("control")];
  return {
    name,
    measured: `${median(ours).toFixed(digits)} ${unit}`,
    control: `${median(control).toFixed(digits)} ${unit}`,
    ratio: targetOf === "ours"
      ? median(ours)
      : median(ours.map((value, round) => value / (control[round] ?? NaN))),
    target,
    cost: { measured: medianCost(comparison.ours), control: medianCost(comparison.control) },
    details: { ours, control, costs: comparison.ours.map(({ cost }) => cost) },
  };
}

/** Returns a row about the processor time of each operation. */
export function processorTimeRow<Result>(
  name: string,
  comparison: Comparison<Result>,
  target: Row["target"],
): Row {
  const ms = (side: keyof Comparison<Result>) => comparison[side].map(({ cost }) => cost.processorUs / 1_000);
  const [ours, control] = [ms("ours"), ms("control")];
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
