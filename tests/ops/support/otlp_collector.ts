/** A collector in the test process: receives OTLP over HTTP as JSON. */
import assert from "node:assert/strict";
import { until } from "../../support/waiting.ts";

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code: number; readonly message?: string };
  readonly attributes: readonly Attribute[];
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, string | number>>;
}

interface Point {
  readonly attributes: readonly Attribute[];
  readonly asDouble?: number;
  readonly bucketCounts?: readonly number[];
  readonly explicitBounds?: readonly number[];
  readonly count?: number;
  readonly sum?: number;
}

export interface ReceivedMetric {
  readonly name: string;
  readonly description: string;
  readonly sum?: {
    readonly isMonotonic: boolean;
    readonly aggregationTemporality: number;
    readonly dataPoints: readonly Point[];
  };
  readonly gauge?: { readonly dataPoints: readonly Point[] };
  readonly histogram?: { readonly aggregationTemporality: number; readonly dataPoints: readonly Point[] };
}

export interface ReceivedLog {
  readonly timeUnixNano: string;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly body: { readonly stringValue: string };
  readonly attributes: readonly Attribute[];
  readonly traceId?: string;
  readonly spanId?: string;
  readonly flags?: number;
}

export class OtlpCollector implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  readonly logs: ReceivedLog[] = [];
  /** The newest export of metrics. */
  metrics: readonly ReceivedMetric[] = [];
  readonly resources: Readonly<Record<string, string | number>>[] = [];
  readonly requestHeaders: Headers[] = [];
  /** Path whose requests are answered with 404. */
  refusedPath: string | null = null;
  /** Path whose responses send a byte at times and never end. */
  endlessPath: string | null = null;
  /** Endless responses that the server has ended. */
  ended = 0;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(port = 0) {
    this.#server = Deno.serve(
      { port, hostname: "127.0.0.1", onListen() {} },
      (request) => this.#answer(request),
    );
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Resolves with the only span of this name once it has arrived. */
  async span(name: string): Promise<ReceivedSpan> {
    const of = () => this.spans.filter((span) => span.name === name);
    await until(() => of().length > 0, { what: `span ${name}` });
    const [found, ...others] = of();
    assert.ok(found !== undefined && others.length === 0, `${others.length + 1} spans ${name}`);
    return found;
  }

  children(of: ReceivedSpan): ReceivedSpan[] {
    return this.spans.filter(({ traceId, parentSpanId }) =>
      traceId === of.traceId && parentSpanId === of.spanId
    );
  }

  async #answer(request: Request): Promise<Response> {
    this.requestHeaders.push(request.headers);
    const body = await request.json();
    const path = new URL(request.url).pathname;
    if (path === this.refusedPath) return new Response(null, { status: 404 });
    if (path === this.endlessPath) return this.#endless();
    for (const { resource, scopeSpans } of path === "/v1/traces" ? body.resourceSpans : []) {
      this.resources.push(attributesOf(resource));
      for (const { spans } of scopeSpans) this.spans.push(...spans);
    }
    for (const { resource, scopeMetrics } of path === "/v1/metrics" ? body.resourceMetrics : []) {
      this.resources.push(attributesOf(resource));
      this.metrics = scopeMetrics[0].metrics;
    }
    for (const { resource, scopeLogs } of path === "/v1/logs" ? body.resourceLogs : []) {
      this.resources.push(attributesOf(resource));
      for (const { logRecords } of scopeLogs) this.logs.push(...logRecords);
    }
    return Response.json({});
  }

  #endless(): Response {
    let timer: ReturnType<typeof setInterval>;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        timer = setInterval(() => controller.enqueue(new Uint8Array([32])), 20);
      },
      cancel: () => {
        clearInterval(timer);
        this.ended++;
      },
    });
    return new Response(body);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

export function attributesOf(
  { attributes }: { readonly attributes: readonly Attribute[] },
): Readonly<Record<string, string | number>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0] ?? ""]));
}
