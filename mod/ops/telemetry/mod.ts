/** Export of traces and metrics over OTLP. Loaded only with `--otlp-endpoint`. */
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import {
  type CallTrace,
  randomHex,
  type RequestSpan,
  type RequestSpans,
} from "../../functions/call_trace.ts";
import type { RunEnd, RunKind, RunObserver } from "../../functions/host/mod.ts";
import type { Log } from "../../kit/log.ts";
import { telemetryLimits } from "../limits.ts";
import type { MetricValues } from "../metrics/mod.ts";
import { metricData } from "./metric_data.ts";
import { BatchSpanProcessor, type ExportResult, OTLPMetricExporter, OTLPTraceExporter } from "./sdk/sdk.js";
import { parseTraceparent, phasesOf, runSpans, spanOf, type SpanSource } from "./spans.ts";

export interface TelemetryOptions {
  /** Base URL; `/v1/traces` and `/v1/metrics` are appended. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Share of traces that are exported, from 0 to 1, unless the client decides. */
  readonly sample: number;
  readonly serviceName: string;
  readonly version: string;
  readonly log: Log;
}

type Signal = "traces" | "metrics";

/** Disposing of it exports the queued spans, for a limited time. */
export class Telemetry implements RunObserver, RequestSpans, AsyncDisposable {
  readonly #options: TelemetryOptions;
  readonly #source: SpanSource;
  readonly #agent: HttpAgent;
  readonly #spans: BatchSpanProcessor;
  readonly #metrics: OTLPMetricExporter;
  readonly #startedAt = Date.now();
  /** Spans that are queued or being exported. */
  #pending = 0;
  #dropped = 0;
  /** Whether the last export of each signal failed. A collector may accept only one of them. */
  readonly #failed = new Map<Signal, boolean>();
  #closed = false;
  /** Set while metrics are exported. */
  #exporting: Promise<void> | null = null;

  constructor(options: TelemetryOptions) {
    const { endpoint, headers, serviceName, version } = options;
    const { exportMs, queuedSpansMax, batchSpansMax, flushMs } = telemetryLimits;
    this.#options = options;
    this.#source = {
      resource: {
        attributes: {
          "service.name": serviceName,
          "service.instance.id": crypto.randomUUID(),
          "syncline.version": version,
        },
      },
      instrumentationScope: { name: "syncline", version },
    };
    const isEncrypted = endpoint.startsWith("https:");
    const agent = this.#agent = new (isEncrypted ? HttpsAgent : HttpAgent)({ keepAlive: true });
    const shared = { headers, timeoutMillis: exportMs, httpAgentOptions: () => agent };
    const traces = new OTLPTraceExporter({ ...shared, url: `${endpoint}/v1/traces` });
    this.#metrics = new OTLPMetricExporter({ ...shared, url: `${endpoint}/v1/metrics` });
    this.#spans = new BatchSpanProcessor({
      exporter: {
        export: (spans, done) =>
          traces.export(spans, (result) => {
            this.#pending -= spans.length;
            if (result.code !== 0) this.#dropped += spans.length;
            this.#exported("traces", result);
            done(result);
          }),
        shutdown: () => traces.shutdown(),
      },
      maxQueueSize: queuedSpansMax,
      maxExportBatchSize: batchSpansMax,
      scheduledDelayMillis: flushMs,
    });
  }

  /** Spans dropped because the queue was full or their export failed. */
  get dropped(): number {
    return this.#dropped;
  }

  startTrace(traceparent: string | null = null): CallTrace {
    const given = parseTraceparent(traceparent);
    return {
      ...given ?? { traceId: randomHex(16), sampled: Math.random() < this.#options.sample },
      spanId: randomHex(8),
    };
  }

  start(name: string, traceparent: string | null = null): RequestSpan {
    const own = this.startTrace(traceparent);
    const { traceId, spanId, sampled } = own;
    const from = epochMs();
    return {
      trace: { traceId, spanId: randomHex(8), parentId: spanId, sampled },
      end: (status) => {
        if (!sampled || !this.#reserve(1)) return;
        const error = status !== null && status >= 500 ? `HTTP ${status}` : null;
        const attributes = status === null ? {} : { "http.response.status_code": status };
        const parts = { name, trace: own, from, until: epochMs(), isServer: true, attributes, error };
        this.#spans.onEnd(spanOf(parts, this.#source));
      },
    };
  }

  runEnded(kind: RunKind, end: RunEnd): void {
    const { trace: given, udfPath } = end.call;
    // Background work of the service is of interest only as a part of a call.
    if (given === undefined && udfPath.startsWith("_")) return;
    const trace = given ?? this.startTrace();
    if (!trace.sampled) return;
    const phases = phasesOf(kind, end);
    if (!this.#reserve(1 + phases.length)) return;
    const spans = runSpans(kind, end, { phases, trace, now: epochMs(), source: this.#source });
    for (const span of spans) this.#spans.onEnd(span);
  }

  /** Exports the values of all metrics, unless the last export still runs. Never rejects. */
  exportMetrics(read: () => Promise<readonly MetricValues[]>): Promise<void> {
    return this.#exporting ??= this.#exportMetrics(read)
      .catch((error) => this.#exported("metrics", { code: 1, error }))
      .finally(() => this.#exporting = null);
  }

  /** Exports the values of all metrics after an export in progress, for a limited time. */
  async lastMetrics(read: () => Promise<readonly MetricValues[]>): Promise<void> {
    const work = async () => {
      await this.#exporting;
      await this.exportMetrics(read);
    };
    if (this.#mayWork("metrics")) await within(telemetryLimits.closeMs, work());
  }

  async #exportMetrics(read: () => Promise<readonly MetricValues[]>): Promise<void> {
    const metrics = metricData(await read(), { startedAt: this.#startedAt, now: Date.now() });
    const { resource, instrumentationScope: scope } = this.#source;
    const result = await new Promise<ExportResult>((resolve) => {
      this.#metrics.export({ resource, scopeMetrics: [{ scope, metrics }] }, resolve);
    });
    this.#exported("metrics", result);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    // Failed exports are logged by `#exported`.
    const ended = this.#spans.shutdown().catch(() => {});
    // A stop does not wait for a collector that is down.
    if (this.#mayWork("traces")) await within(telemetryLimits.closeMs, ended);
    this.#agent.destroy();
  }

  /** Returns whether the queue has space for the spans of a run or request, which are dropped otherwise. */
  #reserve(spans: number): boolean {
    const hasSpace = !this.#closed && this.#pending + spans <= telemetryLimits.queuedSpansMax;
    if (hasSpace) this.#pending += spans;
    else this.#dropped += spans;
    return hasSpace;
  }

  get #isFailing(): boolean {
    return [...this.#failed.values()].includes(true);
  }

  /** Whether a last export is worth waiting for. If there was none of this signal, the other one decides. */
  #mayWork(signal: Signal): boolean {
    return !(this.#failed.get(signal) ?? this.#isFailing);
  }

  /** Logs the first failure, and the success after which no signal fails. */
  #exported(signal: Signal, { code, error }: ExportResult): void {
    const wasFailing = this.#isFailing;
    this.#failed.set(signal, code !== 0);
    if (this.#isFailing === wasFailing) return;
    const { endpoint, log } = this.#options;
    if (!wasFailing) {
      const reason = error?.message ?? "";
      log("warn", "Cannot export telemetry", { code: "telemetry", endpoint, signal, error: reason });
    } else log("info", "Telemetry is exported again", { endpoint, droppedSpans: this.#dropped });
  }
}

/** Resolves with the promise, or after a time. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  await Promise.race([work, new Promise((resolve) => timer = setTimeout(resolve, ms))]);
  clearTimeout(timer);
}

/** Milliseconds since the epoch, with fractions. */
function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
