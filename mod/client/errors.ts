/** Errors thrown by the client's promises and passed to its callbacks. */

/** A function failed. `code` and `data` come from the app's `UserError`; other failures have neither. */
export class FunctionError extends Error {
  readonly udfPath: string;
  /** Code of the user error, or `null`. */
  readonly code: string | null;
  /** Data of the user error, or `null`. */
  readonly data: unknown;
  /** Milliseconds after which a call that `ctx.rateLimit` refused can succeed; `null` for other errors. */
  readonly retryAfter: number | null;
  /** Request id of a masked error ("Server Error"), for the execution log; otherwise `null`. */
  readonly requestId: string | null;
  /** Log lines of the call; empty unless the server runs with `--dev`. */
  readonly logLines: readonly string[];

  constructor(message: string, call: FunctionFailure) {
    super(message);
    this.name = "FunctionError";
    this.udfPath = call.udfPath;
    this.code = call.errorData?.code ?? null;
    this.data = call.errorData?.data ?? null;
    this.retryAfter = retryAfterOf(this);
    this.requestId = call.errorId ?? null;
    this.logLines = call.logLines;
  }
}

function retryAfterOf({ code, data }: Pick<FunctionError, "code" | "data">): number | null {
  if (code !== "rate_limited" || typeof data !== "object" || data === null) return null;
  const { retryAfter } = data as { readonly retryAfter?: unknown };
  return typeof retryAfter === "number" ? retryAfter : null;
}

/** Fields of a {@linkcode FunctionError} besides the message. */
export interface FunctionFailure {
  readonly udfPath: string;
  readonly errorData: { readonly code: string; readonly data?: unknown } | null;
  readonly errorId?: string | null | undefined;
  readonly logLines: readonly string[];
}

/**
 * The connection was lost during a call, so its outcome is unknown. Affects actions, and mutations while the client polls or
 * after it reconnects too late for the server to deduplicate them.
 */
export class ConnectionLostError extends Error {
  constructor(kind: "action" | "mutation") {
    super(`Connection lost while the ${kind} was in flight`);
    this.name = "ConnectionLostError";
  }
}

/** The client was closed before the response arrived. */
export class ClientClosedError extends Error {
  constructor() {
    super("The client was closed");
    this.name = "ClientClosedError";
  }
}

/** Reports an error of an app callback as an unhandled rejection, without affecting the client. */
export function reportUnhandled(error: unknown): void {
  void Promise.reject(error);
}
