/** Export of traces, metrics and logs over OTLP. Loaded only with `--otlp-endpoint`. */
import {
  type CallTrace,
  type EndedRequest,
  epochMs,
  type RequestSpan,
  type RequestSpans,
  RequestTracer,
} from "../../functions/call_trace.ts";
import type { RunEnd, RunKind, RunObserver } from "../../functions/host/mod.ts";
import { OwnLogLines } from "../../functions/log_lines.ts";
import type { LoggedLine } from "../../kit/log.ts";
import { telemetryLimits, type TelemetrySignal } from "../limits.ts";
import type { MetricValues } from "../metrics/mod.ts";
import { Collector, type CollectorOptions, ExportQueue } from "./exports.ts";
import { recordChars, runRecord, serverRecord } from "./log_records.ts";
import { metricData } from "./metric_data.ts";
import {
  BatchLogRecordProcessor,
  BatchSpanProcessor,
  type Exporter,
  type ExportResult,
  type MetricBatch,
  OTLPLogExporter,
  OTLPMetricExporter,
  OTLPTraceExporter,
  type ReadableLogRecord,
  type ReadableSpan,
} from "./sdk/sdk.js";
import { phasesOf, requestSpan, runSpans, type SpanSource } from "./spans.ts";

export interface TelemetryOptions extends CollectorOptions {
  /** Share of traces that are exported, from 0 to 1, unless the client decides. */
  readonly sample: number;
  readonly signals: readonly TelemetrySignal[];
  readonly serviceName: string;
  readonly version: string;
}

/** Disposing of it exports the queued spans and log records, for a limited time. */
export class Telemetry implements RunObserver, RequestSpans, AsyncDisposable {
  readonly #source: SpanSource;
  readonly #collector: Collector;
  readonly #tracer: RequestTracer;
  /** `null` if the signal is not exported, as for the next two. */
  readonly #spans: ExportQueue<ReadableSpan> | null;
  readonly #records: ExportQueue<ReadableLogRecord> | null;
  readonly #metrics: Exporter<MetricBatch> | null;
  readonly #lines = new OwnLogLines(telemetryLimits.logCallersMax);
  readonly #startedAt = Date.now();
  /** Removes the receiver of the server's log. */
  readonly #ends = new DisposableStack();
  /** Set while metrics are exported. */
  #exporting: Promise<void> | null = null;

  constructor(options: TelemetryOptions) {
    const { serviceName, version, signals, sample, log } = options;
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
    this.#tracer = new RequestTracer(sample, (request) => this.requestEnded(request));
    const collector = this.#collector = new Collector(
      options,
      () => this.dropped.spans + this.dropped.logRecords,
    );
    const exports = (signal: TelemetrySignal) => signals.includes(signal);
    this.#metrics = exports("metrics") ? collector.exporter("metrics", OTLPMetricExporter) : null;
    this.#spans = exports("traces")
      ? new ExportQueue<ReadableSpan>({
        exporter: collector.exporter("traces", OTLPTraceExporter),
        start(options) {
          const batches = new BatchSpanProcessor(options);
          return { add: (span) => batches.onEnd(span), shutdown: () => batches.shutdown() };
        },
      })
      : null;
    this.#records = exports("logs")
      ? new ExportQueue<ReadableLogRecord>({
        exporter: collector.exporter("logs", OTLPLogExporter),
        start(options) {
          const batches = new BatchLogRecordProcessor(options);
          return { add: (record) => batches.onEmit(record), shutdown: () => batches.shutdown() };
        },
        sizeOf: recordChars,
        sizeMax: telemetryLimits.queuedLogCharsMax,
      })
      : null;
    if (this.#records === null || log.receivers === undefined) return;
    const { receivers } = log;
    const receiver = (line: LoggedLine) => this.#records?.add(1, () => [serverRecord(line, this.#source)]);
    receivers.add(receiver);
    this.#ends.defer(() => receivers.delete(receiver));
  }

  /** Spans and log records dropped because a queue was full or their export failed. */
  get dropped(): { readonly spans: number; readonly logRecords: number } {
    return { spans: this.#spans?.dropped ?? 0, logRecords: this.#records?.dropped ?? 0 };
  }

  startTrace(traceparent: string | null = null): CallTrace {
    return this.#tracer.startTrace(traceparent);
  }

  start(name: string, traceparent: string | null = null): RequestSpan {
    return this.#tracer.start(name, traceparent);
  }

  requestEnded(request: EndedRequest): void {
    this.#spans?.add(1, () => [requestSpan(request, this.#source)]);
  }

  runEnded(kind: RunKind, end: RunEnd): void {
    const { trace: given, udfPath } = end.call;
    // Background work of the service is of interest only as a part of a call.
    if (given === undefined && udfPath.startsWith("_")) return;
    const trace = given ?? this.startTrace();
    const now = end.endedAt ?? epochMs();
    this.#addLines(kind, end, { trace, now });
    if (!trace.sampled || this.#spans === null) return;
    const phases = phasesOf(kind, end);
    this.#spans.add(
      1 + phases.length,
      () => runSpans(kind, end, { phases, trace, now, source: this.#source }),
    );
  }

  #addLines(
    kind: RunKind,
    end: RunEnd,
    { trace, now }: { readonly trace: CallTrace; readonly now: number },
  ): void {
    const records = this.#records;
    if (records === null) return;
    for (const line of this.#lines.of(end.call, end.outcome.logLines)) {
      records.add(1, () => [runRecord(line, { kind, end, at: now, trace, source: this.#source })]);
    }
  }

  /** Exports the values of all metrics, unless the last export still runs. Never rejects. */
  exportMetrics(read: () => Promise<readonly MetricValues[]>): Promise<void> {
    const metrics = this.#metrics;
    if (metrics === null) return Promise.resolve();
    return this.#exporting ??= this.#exportMetrics(metrics, read)
      .catch((error) => this.#collector.ended("metrics", { code: 1, error }))
      .finally(() => this.#exporting = null);
  }

  /** Exports the values of all metrics after an export in progress, for a limited time. */
  async lastMetrics(read: () => Promise<readonly MetricValues[]>): Promise<void> {
    const work = async () => {
      await this.#exporting;
      await this.exportMetrics(read);
    };
    if (this.#collector.mayWork("metrics")) await within(telemetryLimits.closeMs, work());
  }

  async #exportMetrics(
    to: Exporter<MetricBatch>,
    read: () => Promise<readonly MetricValues[]>,
  ): Promise<void> {
    const metrics = metricData(await read(), { startedAt: this.#startedAt, now: Date.now() });
    const { resource, instrumentationScope: scope } = this.#source;
    await new Promise<ExportResult>((resolve) => {
      to.export({ resource, scopeMetrics: [{ scope, metrics }] }, resolve);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ends.dispose();
    // A stop does not wait for a collector that is down.
    const closing = ([["traces", this.#spans], ["logs", this.#records]] as const).map(([signal, queue]) => {
      const ended = queue?.close();
      return this.#collector.mayWork(signal) ? ended : undefined;
    });
    await within(telemetryLimits.closeMs, Promise.all(closing));
    this.#collector[Symbol.dispose]();
  }
}

/** Resolves with the promise, or after a time. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  await Promise.race([work, new Promise((resolve) => timer = setTimeout(resolve, ms))]);
  clearTimeout(timer);
}
