/** Outcomes of function calls, and what callers see of them. */
import { ServiceError, type ServiceErrorCode, serviceErrors } from "../errors.ts";
import type { ErrorData } from "../protocol/server_messages.ts";

/** Kind of failure. Only `internal` errors are hidden outside `--dev` (SG6). */
export type CallErrorKind = "user" | "args" | "unknown_function" | "internal";

export interface CallError {
  readonly kind: CallErrorKind;
  readonly message: string;
  /** Code and data of a user error, or the code of a full disk. `null` for others. */
  readonly data: ErrorData;
  /** Set if the same call may succeed later: not run, rolled back, or of unknown outcome (`isOutcomeUnknown`). */
  readonly retryable?: true;
  /** Stack trace with the author's files, for the execution log and `--dev`. */
  readonly stack?: string;
  /** A sentence for the author, shown with `--dev` only. */
  readonly hint?: string;
  /** Selects the page of the documentation that explains an `internal` error, for the server's log. */
  readonly code?: string;
  /** Request number in the execution log. Set by main after the run. */
  request?: number;
}

export function requestIdText(request: number): string {
  return request.toString(36);
}

/** The request id under which operators find the details of a hidden error. `null` for other errors. */
export function errorIdOf({ kind, request }: CallError): string | null {
  return kind === "internal" && request !== undefined ? requestIdText(request) : null;
}

/** The outcome of a call. `value` is JSON, serialized once by the isolate and never parsed on the way. */
export type Outcome =
  | {
    readonly ok: true;
    readonly value: string;
    readonly logLines: readonly string[];
    /** Name under which a reader keeps it, to send only the part that differs next time. */
    readonly kept?: string;
  }
  | { readonly ok: false; readonly error: CallError; readonly logLines: readonly string[] };

/** The result of a run as JSON, or its error. */
export type Ending =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly error: CallError };

type FailedOutcome = Extract<Outcome, { readonly ok: false }>;

/** The error as seen by the caller. */
export interface PublicError {
  readonly errorMessage: string;
  readonly errorData: ErrorData;
}

/** Decides what a caller sees of an error. No other code does. */
export function publicError(error: CallError, options: { readonly dev: boolean }): PublicError {
  if (error.kind === "user") return { errorMessage: error.message, errorData: error.data };
  const shown = options.dev || error.kind === "args" || error.kind === "unknown_function";
  if (!shown) return { errorMessage: "Server Error", errorData: null };
  const hint = options.dev && error.hint !== undefined ? `. ${error.hint}` : "";
  return { errorMessage: `${error.message}${hint}`, errorData: null };
}

/** Outcome of a call that may be committed. Not a failure: sockets close with 1012, HTTP answers `outcome_unknown` (SG13). */
export function outcomeUnknown(reason: string): FailedOutcome {
  return retryableFailure("outcome_unknown", reason);
}

/** The outcome of a call that could not be run. It had no effect. */
export function unavailable(reason: string): FailedOutcome {
  return retryableFailure("unavailable", reason);
}

function retryableFailure(code: ServiceErrorCode, message: string): FailedOutcome {
  return {
    ok: false,
    error: { kind: "user", message, data: { code, data: null }, retryable: true },
    logLines: [],
  };
}

/** Whether the call may have been committed. Errors of apps are never retryable. */
export function isOutcomeUnknown({ data, retryable }: CallError): boolean {
  return retryable === true && data?.code === "outcome_unknown";
}

/** Returns the service error for a failure that is not the function's fault, or `null`. */
export function serviceErrorOf({ data, message, retryable }: CallError): ServiceError | null {
  if (retryable !== true) return null;
  switch (data?.code) {
    case "unavailable":
    case "outcome_unknown":
      return new ServiceError(data.code, message);
    case "disk_full":
      return new ServiceError("disk_full");
    default:
      return new ServiceError("overloaded");
  }
}

/** Whether the call failed because the disk was full. It had no effect (HC10). */
export function isDiskFullFailure({ data, retryable }: CallError): boolean {
  return retryable === true && data?.code === "disk_full";
}

/** HTTP status of a failed function call (HC5). */
export function errorStatus(error: CallError): 400 | 404 | 500 {
  switch (error.kind) {
    case "user":
    case "args":
      return 400;
    case "unknown_function":
      return 404;
    case "internal":
      return 500;
    default:
      return error.kind satisfies never;
  }
}

/** Error text for functions that do not exist for the caller, even if they do for others. */
export function unknownFunctionText(udfPath: string): string {
  return `There is no function "${udfPath}"`;
}

/** Outcome of a write on a server that only follows another one. Callers see it like an app error. */
export function readOnly(): Outcome {
  const data = { code: "read_only", data: null };
  return { ok: false, error: { kind: "user", message: READ_ONLY_TEXT, data }, logLines: [] };
}

const [, READ_ONLY_TEXT] = serviceErrors.read_only;

/** An outcome for a call that failed outside app code. */
export function failed(
  kind: CallErrorKind,
  message: string,
  options: Pick<CallError, "retryable" | "code"> = {},
): Outcome {
  return { ok: false, error: { kind, message, data: null, ...options }, logLines: [] };
}
