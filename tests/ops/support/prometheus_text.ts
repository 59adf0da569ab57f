/** Strict parser of the Prometheus text format (0.0.4). */

export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly type: string;
  readonly help: string;
  /** By sample name, which for a histogram ends in `_bucket`, `_sum` or `_count`. */
  readonly samples: ReadonlyMap<string, readonly Series[]>;
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|\+Inf|NaN)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;

/** Returns the families by name. Throws for text that Prometheus would reject, and for duplicate series. */
export function parseMetrics(text: string): Map<string, Family> {
  if (!text.endsWith("\n")) throw new SyntaxError("The last line has no end");
  const families = new Map<string, Omit<Family, "samples"> & { readonly samples: Map<string, Series[]> }>();
  const seen = new Set<string>();
  let help: { readonly name: string; readonly text: string } | null = null;
  let current: string | null = null;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const [, keyword, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (keyword === "HELP") help = { name, text: rest };
    else if (keyword === "TYPE") {
      if (help?.name !== name || families.has(name)) throw new SyntaxError(`Out of place: ${line}`);
      families.set(name, { type: rest, help: help.text, samples: new Map() });
      current = name;
    } else {
      const [, sample = "", labelText = "", value = ""] = SAMPLE.exec(line) ?? [];
      const family = current === null ? undefined : families.get(current);
      const suffixes = family?.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
      if (family === undefined || !suffixes.some((suffix) => sample === `${current}${suffix}`)) {
        throw new SyntaxError(`Not a sample of ${current}: ${line}`);
      }
      const labels = parseLabels(labelText);
      const key = `${sample} ${JSON.stringify(Object.entries(labels).toSorted())}`;
      if (seen.has(key)) throw new SyntaxError(`There twice: ${line}`);
      seen.add(key);
      const series = family.samples.get(sample) ?? [];
      series.push({ labels, value: value === "+Inf" ? Infinity : Number(value) });
      family.samples.set(sample, series);
    }
  }
  return families;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, name, value] = LABEL.exec(text) ?? [];
    if (name === undefined || value === undefined || name in labels) {
      throw new SyntaxError(`Labels that cannot be read: ${text}`);
    }
    labels[name] = value;
  }
  return labels;
}

/** Value of a series, or `undefined`. */
export function valueOf(
  families: ReadonlyMap<string, Family>,
  sample: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const wanted = JSON.stringify(Object.entries(labels).toSorted());
  for (const { samples } of families.values()) {
    const found = samples.get(sample)?.find((series) =>
      JSON.stringify(Object.entries(series.labels).toSorted()) === wanted
    );
    if (found !== undefined) return found.value;
  }
  return undefined;
}
