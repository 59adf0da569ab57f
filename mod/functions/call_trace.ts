/** Trace contexts of calls (W3C Trace Context). Calls have one only with `--otlp-endpoint`. */

export interface CallTrace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The span of the run: 16 hexadecimal digits. */
  readonly spanId: string;
  /** The span that caused it. Absent for the first span of a trace. */
  readonly parentId?: string;
  readonly sampled: boolean;
}

/** Records spans of requests and messages. */
export interface RequestSpans {
  /** Starts a span. `traceparent` is the client's header, if it sent one. */
  start(name: string, traceparent?: string | null): RequestSpan;
}

export interface RequestSpan {
  /** For the call that the request makes. */
  readonly trace: CallTrace;
  /** `status`: that of an HTTP response; `null` for messages. */
  end(status: number | null): void;
}

/** A request or message that has ended. */
export interface EndedRequest {
  readonly name: string;
  /** Its own span. */
  readonly trace: CallTrace;
  /** Milliseconds since the epoch. */
  readonly from: number;
  readonly until: number;
  readonly status: number | null;
}

/** Starts traces, and reports each request that belongs to an exported one. */
export class RequestTracer implements RequestSpans {
  readonly #sample: number;
  readonly #onEnd: (request: EndedRequest) => void;

  /** `sample` is the share of exported traces, unless the client decides. */
  constructor(sample: number, onEnd: (request: EndedRequest) => void) {
    this.#sample = sample;
    this.#onEnd = onEnd;
  }

  startTrace(traceparent: string | null = null): CallTrace {
    const given = parseTraceparent(traceparent);
    return {
      ...given ?? { traceId: randomHex(16), sampled: Math.random() < this.#sample },
      spanId: randomHex(8),
    };
  }

  start(name: string, traceparent: string | null = null): RequestSpan {
    const trace = this.startTrace(traceparent);
    const from = epochMs();
    return {
      trace: childTrace(trace),
      end: (status) => {
        if (trace.sampled) this.#onEnd({ name, trace, from, until: epochMs(), status });
      },
    };
  }
}

/** Returns the context of a call that is made by the run of another one. */
export function childTrace({ traceId, spanId, sampled }: CallTrace): CallTrace {
  return { traceId, spanId: randomHex(8), parentId: spanId, sampled };
}

/** Parses the header `traceparent`; `null` if it is absent or invalid. */
export function parseTraceparent(
  header: string | null,
): { readonly traceId: string; readonly parentId: string; readonly sampled: boolean } | null {
  const [, version, traceId = "", parentId = "", flags = "", rest] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(header?.trim() ?? "") ?? [];
  if (version === undefined || version === "ff" || version === "00" && rest !== undefined) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return null;
  return { traceId, parentId, sampled: (parseInt(flags, 16) & 1) === 1 };
}

/** Returns random bytes as hexadecimal digits. */
export function randomHex(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex();
}

/** Milliseconds since the epoch, with fractions. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
