/** The metrics of `/metrics` in the form that the exporter takes. */
import type { MetricValues } from "../metrics/mod.ts";
import { hrTime } from "./spans.ts";
import type { MetricData } from "./sdk/sdk.js";

/** Counters start at `startedAt`, in milliseconds since the epoch. Metrics without a value are left out. */
export function metricData(
  metrics: readonly MetricValues[],
  { startedAt, now }: { readonly startedAt: number; readonly now: number },
): MetricData[] {
  const times = { startTime: hrTime(startedAt), endTime: hrTime(now) };
  return metrics.map((metric): MetricData => {
    const { name, help } = metric;
    const head = {
      descriptor: { name, description: help, unit: "", valueType: 1 },
      aggregationTemporality: 1,
    } as const;
    if (metric.type === "histogram") {
      const dataPoints = metric.series.map(({ labels = {}, values: { bounds, cumulative, count, sum } }) => {
        const counts = [...cumulative, count].map((upTo, i) => upTo - (i === 0 ? 0 : cumulative[i - 1] ?? 0));
        const value = { buckets: { boundaries: bounds, counts }, count, sum };
        return { ...times, attributes: labels, value };
      });
      return { ...head, dataPointType: 0, dataPoints };
    }
    const dataPoints = metric.samples.map(({ labels = {}, value }) => ({
      ...times,
      attributes: labels,
      value,
    }));
    return metric.type === "counter"
      ? { ...head, dataPointType: 3, isMonotonic: true, dataPoints }
      : { ...head, dataPointType: 2, dataPoints };
  }).filter(({ dataPoints }) => dataPoints.length > 0);
}
