/** The metrics as Prometheus reads them. What is behind each is asked for when somebody reads, and only then. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Distribution } from "./distribution.ts";

export type Labels = Readonly<Record<string, string>>;

/** One series of a metric at the moment it is read. */
export interface Sample {
  readonly labels?: Labels;
  readonly value: number;
}

/** `null` and an empty list: there is nothing to tell now. */
export type Reading = number | null | Iterable<Sample>;

export interface MetricSpec {
  /** With its unit at the end; counters end in `_total`. */
  readonly name: string;
  readonly help: string;
  /** Names of its labels; none when absent. */
  readonly labels?: readonly string[];
}

/** A metric whose value is read. Rejections make the whole text fail. */
export interface ReadSpec extends MetricSpec {
  readonly read: () => Reading | Promise<Reading>;
}

export interface HistogramSpec extends MetricSpec {
  readonly read: () => Iterable<{ readonly labels?: Labels; readonly values: Distribution }>;
}

export class Exposition {
  readonly #registry = new Registry();

  /** What only grows. */
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
  }

  /** What goes up and down. */
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
  }

  histogram(spec: HistogramSpec): void {
    this.#registry.registerMetric(new ReadHistogram(spec));
  }

  /** The value of the header `Content-Type` for {@linkcode text}. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  async text(): Promise<string> {
    return await this.#registry.metrics();
  }
}

/** A histogram of the library counts by itself, at half a microsecond a value; this one is counted elsewhere. */
class ReadHistogram extends Histogram {
  readonly #spec: HistogramSpec;

  constructor(spec: HistogramSpec) {
    const { name, help, labels = [] } = spec;
    super({ name, help, labelNames: [...labels], registers: [] });
    this.#spec = spec;
  }

  /** What the registry makes its text of; not among the types of the library. */
  getForPromString(): Promise<unknown> {
    const { name, help, read } = this.#spec;
    const values = [];
    for (const { labels = {}, values: distribution } of read()) {
      const { bounds, cumulative, count, sum } = distribution;
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
