/** `--otlp-endpoint`: exports traces of calls, log lines, and the metrics at intervals. */
import { VERSION } from "../../../config/version.ts";
import type { ServeConfig } from "../../../config/config.ts";
import type { Log } from "../../../kit/log.ts";
import { telemetryLimits } from "../../../ops/limits.ts";
import type { Metrics } from "../../../ops/metrics/mod.ts";
import type { Telemetry } from "../../../ops/telemetry/mod.ts";
import type { Feature, FeatureContext } from "../../feature.ts";

/** `null` without `--otlp-endpoint`; then the module is not loaded. */
export async function openTelemetry(
  { telemetry, accounts: { appName } }: ServeConfig,
  log: Log,
): Promise<Telemetry | null> {
  if (telemetry === null) return null;
  const { Telemetry } = await import("../../../ops/telemetry/mod.ts");
  return new Telemetry({ ...telemetry, serviceName: appName ?? "syncline", version: VERSION, log });
}

export function startTelemetry(
  _context: FeatureContext,
  { metrics, telemetry }: { readonly metrics: Metrics | null; readonly telemetry: Telemetry | null },
): Feature {
  if (metrics === null || telemetry === null) return {};
  const send = () => telemetry.exportMetrics(() => metrics.values());
  let timer: ReturnType<typeof setInterval> | undefined;
  return {
    start() {
      timer = setInterval(send, telemetryLimits.metricsMs);
    },
    // The last values, while the other features can be read.
    async stop() {
      clearInterval(timer);
      await telemetry.lastMetrics(() => metrics.values());
    },
  };
}
