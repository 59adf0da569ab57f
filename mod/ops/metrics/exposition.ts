/** Prometheus text format. Values are read only when scraped. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Histogram as CountedValues } from "../stats/mod.ts";

export type Labels = Readonly<Record<string, string>>;

/** One series of a metric. */
export interface Sample {
  readonly labels?: Labels;
  readonly value: number;
}

/** `null` and empty lists mean no value. */
export type Reading = number | null | Iterable<Sample>;

export interface MetricSpec {
  /** Ends with the unit; counters end with `_total`. */
  readonly name: string;
  readonly help: string;
  /** Label names, if any. */
  readonly labels?: readonly string[];
}

/** A metric read on demand. A rejection fails the whole response. */
export interface ReadSpec extends MetricSpec {
  readonly read: () => Reading | Promise<Reading>;
}

export interface HistogramSpec extends MetricSpec {
  readonly read: () => Iterable<LabelledCounts>;
}

/** The values of one metric at a time. */
export type MetricValues =
  & Pick<MetricSpec, "name" | "help">
  & (
    | { readonly type: "counter" | "gauge"; readonly samples: readonly Sample[] }
    | { readonly type: "histogram"; readonly series: readonly LabelledCounts[] }
  );

interface LabelledCounts {
  readonly labels?: Labels;
  readonly values: CountedValues;
}

export class Exposition {
  readonly #registry = new Registry();
  readonly #readers: (() => Promise<MetricValues>)[] = [];

  /** Adds a counter. */
  counter({ name, help, labels = [], read }: ReadSpec): void {
    const counter = new Counter({
      name,
      help,
      labelNames: [...labels],
      registers: [],
      async collect() {
        const samples = samplesOf(await read());
        counter.reset();
        for (const { labels = {}, value } of samples) counter.inc(labels, value);
      },
    });
    this.#registry.registerMetric(counter);
    this.#readers.push(async () => ({ type: "counter", name, help, samples: samplesOf(await read()) }));
  }

  /** Adds a gauge. */
  gauge({ name, help, labels = [], read }: ReadSpec): void {
    const gauge = new Gauge({
      name,
      help,
      labelNames: [...labels],
      registers: [],
      async collect() {
        const samples = samplesOf(await read());
        gauge.reset();
        if (samples.length === 0) gauge.remove();
        for (const { labels = {}, value } of samples) gauge.set(labels, value);
      },
    });
    this.#registry.registerMetric(gauge);
    this.#readers.push(async () => ({ type: "gauge", name, help, samples: samplesOf(await read()) }));
  }

  histogram(spec: HistogramSpec): void {
    this.#registry.registerMetric(new ReadHistogram(spec));
    const { name, help, read } = spec;
    this.#readers.push(() => Promise.resolve({ type: "histogram", name, help, series: [...read()] }));
  }

  /** Reads all metrics. Rejects if one cannot be read. */
  async values(): Promise<readonly MetricValues[]> {
    return await Promise.all(this.#readers.map((read) => read()));
  }

  /** `Content-Type` of {@linkcode text}. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  async text(): Promise<string> {
    return await this.#registry.metrics();
  }
}

/** The library's histogram would count each value itself, at half a microsecond; this one exposes existing counts. */
class ReadHistogram extends Histogram {
  readonly #spec: HistogramSpec;

  constructor(spec: HistogramSpec) {
    const { name, help, labels = [] } = spec;
    super({ name, help, labelNames: [...labels], registers: [] });
    this.#spec = spec;
  }

  /** Called by the registry; missing in the library's types. */
  getForPromString(): Promise<unknown> {
    const { name, help, read } = this.#spec;
    const values = [];
    for (const { labels = {}, values: counted } of read()) {
      const { bounds, cumulative, count, sum } = counted;
      for (const [i, bound] of bounds.entries()) {
        values.push({ metricName: `${name}_bucket`, labels: { ...labels, le: bound }, value: cumulative[i] });
      }
      values.push(
        { metricName: `${name}_bucket`, labels: { ...labels, le: "+Inf" }, value: count },
        { metricName: `${name}_sum`, labels, value: sum },
        { metricName: `${name}_count`, labels, value: count },
      );
    }
    return Promise.resolve({ name, help, type: "histogram", values });
  }
}

function samplesOf(reading: Reading): readonly Sample[] {
  if (reading === null) return [];
  return typeof reading === "number" ? [{ value: reading }] : [...reading];
}
