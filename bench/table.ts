/** Results of the benchmark, as a Markdown table for people and as JSON for programs. */

/** One figure beside its control of the same run. */
export interface Row {
  readonly name: string;
  /** The measured value, with its unit. */
  readonly measured: string;
  /** The value it is compared with, with its unit. */
  readonly control: string;
  /** The figure the target speaks of: mostly measured / control. */
  readonly ratio: number;
  readonly target: { readonly atLeast: number } | { readonly atMost: number } | null;
  /** Resources of all processes together. */
  readonly cost?: { readonly measured: Cost; readonly control: Cost | null };
  /** Medians behind the figures, for the JSON. */
  readonly details: Record<string, unknown>;
}

/** Resources of the operations. */
export interface Cost {
  /** Processor time of one, microseconds. */
  readonly processorUs: number;
  /** Proportional set size at the end, bytes. */
  readonly memoryBytes: number;
}

/** Whether a row reaches its target; `null` when it has none. */
export function met(row: Row): boolean | null {
  if (row.target === null) return null;
  return "atLeast" in row.target ? row.ratio >= row.target.atLeast : row.ratio <= row.target.atMost;
}

function shown(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function shownCost(cost: Cost | null | undefined): string {
  if (cost === null || cost === undefined) return "";
  return `${shown(cost.processorUs)} us, ${(cost.memoryBytes / 1e6).toFixed(0)} MB`;
}

/** The rows as a Markdown table. */
export function markdown(rows: readonly Row[]): string {
  const withCost = rows.some((row) => row.cost !== undefined);
  const cells = rows.map((row) => {
    const target = row.target === null
      ? ""
      : "atLeast" in row.target
      ? `>= ${shown(row.target.atLeast)}`
      : `<= ${shown(row.target.atMost)}`;
    const verdict = met(row);
    return [
      row.name,
      row.measured,
      row.control,
      shown(row.ratio),
      target,
      verdict === null ? "" : verdict ? "yes" : "NO",
      ...(withCost ? [shownCost(row.cost?.measured), shownCost(row.cost?.control)] : []),
    ];
  });
  const heads = ["row", "measured", "control", "ratio", "target", "met"];
  const all = [[...heads, ...(withCost ? ["processor time each, memory", "the control's"] : [])], ...cells];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((line) => line[column]?.length ?? 0))) ?? [];
  const line = (texts: string[]) => `| ${texts.map((text, i) => text.padEnd(widths[i] ?? 0)).join(" | ")} |`;
  const [head, ...body] = all.map(line);
  return [head, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...body].join("\n");
}
