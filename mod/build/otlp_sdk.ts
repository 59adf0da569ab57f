/**
 * `deno task build:otlp`: prints the exporters of OpenTelemetry and the queues of spans and log records as one module.
 * The packages have 18 MB, mostly names of attributes.
 */
import { packageModule } from "./package_module.ts";

const ENTRY = `
export { BatchSpanProcessor } from "@opentelemetry/sdk-trace";
export { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
export { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
export { BatchLogRecordProcessor } from "@opentelemetry/sdk-logs";
export { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-http";
`;

/** Returns the source of the module. */
export function otlpSdk(): Promise<string> {
  return packageModule({
    task: "build:otlp",
    package: "@opentelemetry/exporter-trace-otlp-http and those it depends on",
    license: new URL("../../LICENSE", import.meta.resolve("@opentelemetry/exporter-trace-otlp-http")),
    entry: ENTRY,
    // ES modules, so that the bundler removes unused ones.
    path: (resolved) => resolved.replace("/build/src/", "/build/esnext/").replace(/\.cjs$/, ".mjs"),
    // The options of the server configure it.
    options: { platform: "node", define: { "process.env": "{}" } },
  });
}

if (import.meta.main) await Deno.stdout.write(new TextEncoder().encode(await otlpSdk()));
