/** The errors the client's promises and callbacks carry. */

/** A function failed. `code` and `data` are those of the app's `UserError`; any other failure has neither. */
export class FunctionError extends Error {
  readonly udfPath: string;
  /** Code of the user error, or `null`. */
  readonly code: string | null;
  /** Data of the user error, or `null`. */
  readonly data: unknown;
  /** Of an error that tells no more than "Server Error": the request id by which the execution log finds the rest, or `null`. */
  readonly requestId: string | null;
  /** Log lines of the call; empty unless the server runs with `--dev`. */
  readonly logLines: readonly string[];

  constructor(message: string, call: FunctionFailure) {
    super(message);
    this.name = "FunctionError";
    this.udfPath = call.udfPath;
    this.code = call.errorData?.code ?? null;
    this.data = call.errorData?.data ?? null;
    this.requestId = call.errorId ?? null;
    this.logLines = call.logLines;
  }
}

/** What a {@linkcode FunctionError} knows beside its message. */
export interface FunctionFailure {
  readonly udfPath: string;
  readonly errorData: { readonly code: string; readonly data?: unknown } | null;
  readonly errorId?: string | null | undefined;
  readonly logLines: readonly string[];
}

/**
 * The connection was lost while a call was under way: whether it did its work is unknown. Happens to actions; to mutations
 * while the client polls, or when it comes back so late that the server would not recognise them.
 */
export class ConnectionLostError extends Error {
  constructor(kind: "action" | "mutation") {
    super(`Connection lost while the ${kind} was in flight`);
    this.name = "ConnectionLostError";
  }
}

/** The client was closed before the call was answered. */
export class ClientClosedError extends Error {
  constructor() {
    super("The client was closed");
    this.name = "ClientClosedError";
  }
}

/** Makes an error of the app's own callbacks visible without disturbing the client: an unhandled rejection. */
export function reportUnhandled(error: unknown): void {
  void Promise.reject(error);
}
