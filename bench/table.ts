/** Results of the benchmarks, and their table in Markdown. */

import { megabytes } from "./support/print.ts";

/** A figure and its control of the same run. */
export interface Row {
  readonly name: string;
  /** Measured value with its unit. */
  readonly measured: string;
  /** Value of the control with its unit. */
  readonly control: string;
  /** Value that the target applies to, usually `measured / control`. */
  readonly ratio: number;
  readonly target: { readonly atLeast: number } | { readonly atMost: number } | null;
  /** Cost for all processes of each side. */
  readonly cost?: { readonly measured: Cost; readonly control: Cost | null };
  /** Values behind the figures, for the JSON file. */
  readonly details: Record<string, unknown>;
}

export interface Cost {
  /** Processor time of each operation, in microseconds. */
  readonly processorUs: number;
  /** Proportional set size at the end. */
  readonly memoryBytes: number;
}

/** Returns whether a row reaches its target, or `null` without a target. */
export function meetsTarget(row: Row): boolean | null {
  if (row.target === null) return null;
  return "atLeast" in row.target ? row.ratio >= row.target.atLeast : row.ratio <= row.target.atMost;
}

function format(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function formatCost(cost: Cost | null | undefined): string {
  if (cost === null || cost === undefined) return "";
  return `${format(cost.processorUs)} us, ${megabytes(cost.memoryBytes)}`;
}

/** Formats rows as a Markdown table. */
export function markdown(rows: readonly Row[]): string {
  const withCost = rows.some((row) => row.cost !== undefined);
  const cells = rows.map((row) => {
    const target = row.target === null
      ? ""
      : "atLeast" in row.target
      ? `>= ${format(row.target.atLeast)}`
      : `<= ${format(row.target.atMost)}`;
    const verdict = meetsTarget(row);
    return [
      row.name,
      row.measured,
      row.control,
      format(row.ratio),
      target,
      verdict === null ? "" : verdict ? "yes" : "NO",
      ...(withCost ? [formatCost(row.cost?.measured), formatCost(row.cost?.control)] : []),
    ];
  });
  const columns = ["row", "measured", "control", "ratio", "target", "met"];
  const lines = [
    [...columns, ...(withCost ? ["processor time each, memory", "the control's"] : [])],
    ...cells,
  ];
  const widths = lines[0]?.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0))) ?? [];
  const [head, ...body] = lines.map((line) =>
    `| ${line.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(" | ")} |`
  );
  return [head, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...body].join("\n");
}
