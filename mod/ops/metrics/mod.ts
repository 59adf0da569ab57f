/** Prometheus metrics, loaded only with `--metrics`. */
export { Metrics, type MetricsOptions } from "./metrics.ts";
export type { ServerFigures } from "./server_metrics.ts";
