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

/** Returns the context of a call that is made by the run of another one. */
export function childTrace({ traceId, spanId, sampled }: CallTrace): CallTrace {
  return { traceId, spanId: randomHex(8), parentId: spanId, sampled };
}

/** Returns random bytes as hexadecimal digits. */
export function randomHex(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex();
}
