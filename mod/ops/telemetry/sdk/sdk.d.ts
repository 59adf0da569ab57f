/** The part of the packages of OpenTelemetry that `sdk.js` contains and the server uses. */

/** Seconds and nanoseconds since the epoch. */
export type HrTime = readonly [seconds: number, nanoseconds: number];

export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface Resource {
  readonly attributes: Attributes;
}

export interface InstrumentationScope {
  readonly name: string;
  readonly version: string;
}

export interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  /** 1: sampled, 0: not sampled. */
  readonly traceFlags: number;
  readonly isRemote?: boolean;
}

export interface ReadableSpan {
  readonly name: string;
  /** 0: internal, 1: server. */
  readonly kind: 0 | 1;
  readonly spanContext: () => SpanContext;
  readonly parentSpanContext?: SpanContext;
  readonly startTime: HrTime;
  readonly endTime: HrTime;
  /** 0: unset, 2: error. */
  readonly status: { readonly code: 0 | 2; readonly message?: string };
  readonly attributes: Attributes;
  readonly events: readonly [];
  readonly links: readonly [];
  readonly droppedAttributesCount: 0;
  readonly droppedEventsCount: 0;
  readonly droppedLinksCount: 0;
  readonly resource: Resource;
  readonly instrumentationScope: InstrumentationScope;
}

export interface ReadableLogRecord {
  readonly hrTime: HrTime;
  readonly hrTimeObserved: HrTime;
  readonly spanContext?: SpanContext;
  readonly severityText: string;
  readonly severityNumber: number;
  readonly body: string;
  readonly attributes: Attributes;
  readonly droppedAttributesCount: 0;
  readonly resource: Resource;
  readonly instrumentationScope: InstrumentationScope;
}

export interface DataPoint<Value> {
  readonly attributes: Attributes;
  readonly startTime: HrTime;
  readonly endTime: HrTime;
  readonly value: Value;
}

export interface HistogramValue {
  readonly buckets: { readonly boundaries: readonly number[]; readonly counts: readonly number[] };
  readonly count: number;
  readonly sum: number;
}

interface MetricHead {
  /** `valueType` 1: floating point. */
  readonly descriptor: {
    readonly name: string;
    readonly description: string;
    readonly unit: string;
    readonly valueType: 1;
  };
  /** 1: cumulative. */
  readonly aggregationTemporality: 1;
}

/** Types of data points: 0: histogram, 2: gauge, 3: sum. */
export type MetricData =
  & MetricHead
  & (
    | { readonly dataPointType: 0; readonly dataPoints: readonly DataPoint<HistogramValue>[] }
    | { readonly dataPointType: 2; readonly dataPoints: readonly DataPoint<number>[] }
    | {
      readonly dataPointType: 3;
      readonly isMonotonic: true;
      readonly dataPoints: readonly DataPoint<number>[];
    }
  );

/** `code` 0: success. */
export interface ExportResult {
  readonly code: number;
  readonly error?: Error;
}

export interface ExporterOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMillis: number;
  readonly httpAgentOptions: () => object;
}

export interface Exporter<Batch> {
  export(batch: Batch, done: (result: ExportResult) => void): void;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}

declare class HttpExporter<Batch> implements Exporter<Batch> {
  constructor(options: ExporterOptions);
  export(batch: Batch, done: (result: ExportResult) => void): void;
  forceFlush(): Promise<void>;
  shutdown(): Promise<void>;
}

export class OTLPTraceExporter extends HttpExporter<readonly ReadableSpan[]> {}

export class OTLPLogExporter extends HttpExporter<readonly ReadableLogRecord[]> {}

export interface MetricBatch {
  readonly resource: Resource;
  readonly scopeMetrics: readonly {
    readonly scope: InstrumentationScope;
    readonly metrics: readonly MetricData[];
  }[];
}

export class OTLPMetricExporter extends HttpExporter<MetricBatch> {}

interface BatchOptions<Item> {
  readonly exporter: Exporter<readonly Item[]>;
  readonly maxQueueSize: number;
  readonly maxExportBatchSize: number;
  readonly scheduledDelayMillis: number;
}

/** Queues spans and exports them in batches. */
export class BatchSpanProcessor {
  constructor(options: BatchOptions<ReadableSpan>);
  onEnd(span: ReadableSpan): void;
  shutdown(): Promise<void>;
}

/** Queues log records and exports them in batches. */
export class BatchLogRecordProcessor {
  constructor(options: BatchOptions<ReadableLogRecord>);
  onEmit(record: ReadableLogRecord): void;
  shutdown(): Promise<void>;
}
