/** How a call of a function ended, and what of it the caller may see. */
import { ServiceError, type ServiceErrorCode, serviceErrors } from "../errors.ts";
import type { ErrorData } from "../protocol/server_messages.ts";

/** Why a call failed. Only `internal` errors are hidden outside `--dev` (SG6). */
export type CallErrorKind = "user" | "args" | "unknown_function" | "internal";

/** A failed call's error, before it is decided what the caller sees of it. */
export interface CallError {
  readonly kind: CallErrorKind;
  readonly message: string;
  /** Code and data of a user error, or the code for want of room on the disk; `null` for all others. */
  readonly data: ErrorData;
  /**
   * Set when the function is not to blame and the same call may succeed later: this call was not run or was rolled back, or
   * its outcome is unknown (`isOutcomeUnknown`).
   */
  readonly retryable?: true;
  /** Stack trace that names the author's files, for the execution log and `--dev`. */
  readonly stack?: string;
  /** Selects the page of the documentation that explains an `internal` error, for the server's log. */
  readonly code?: string;
  /** Number of the request in the execution log. Set by main when the run has ended. */
  request?: number;
}

/** A request's number as it is shown. */
export function requestIdText(request: number): string {
  return request.toString(36);
}

/** The request id by which an operator finds what the caller is told nothing of; `null` for other errors. */
export function errorIdOf({ kind, request }: CallError): string | null {
  return kind === "internal" && request !== undefined ? requestIdText(request) : null;
}

/** How a call ended. `value` is JSON text, made once by the isolate and never parsed again on its way. */
export type Outcome =
  | { readonly ok: true; readonly value: string; readonly logLines: readonly string[] }
  | { readonly ok: false; readonly error: CallError; readonly logLines: readonly string[] };

type FailedOutcome = Extract<Outcome, { readonly ok: false }>;

/** What a caller sees of an error. */
export interface PublicError {
  readonly errorMessage: string;
  readonly errorData: ErrorData;
}

/** The one place where it is decided what a caller sees of an error. */
export function publicError(error: CallError, options: { readonly dev: boolean }): PublicError {
  if (error.kind === "user") return { errorMessage: error.message, errorData: error.data };
  const shown = options.dev || error.kind === "args" || error.kind === "unknown_function";
  return { errorMessage: shown ? error.message : "Server Error", errorData: null };
}

/**
 * The outcome of a call that was sent and may have been committed. Callers must not report it as a failure: sockets close with
 * 1012, so that clients resend and get the recorded answer; HTTP answers `outcome_unknown` (SG13).
 */
export function outcomeUnknown(reason: string): FailedOutcome {
  return retryableFailure("outcome_unknown", reason);
}

/** The outcome of a call that nobody could run now. Nothing of it has happened. */
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

/** The service's error for a call that was not to blame for its failure; `null` for other failures. */
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

/** Whether the disk had no room for what a call wrote: nothing of it has happened (HC10). */
export function foundNoRoom({ data, retryable }: CallError): boolean {
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

/** What is said of a function that does not exist for the caller, whether it does for others or not. */
export function unknownFunctionText(udfPath: string): string {
  return `There is no function "${udfPath}"`;
}

/** Of a call that would write, on a server whose commits are made elsewhere. Callers see it like an error of the app. */
export function readOnly(): Outcome {
  const data = { code: "read_only", data: null };
  return { ok: false, error: { kind: "user", message: READ_ONLY_TEXT, data }, logLines: [] };
}

const [, READ_ONLY_TEXT] = serviceErrors.read_only;

/** An outcome for a call that failed before or outside any app code. */
export function failed(
  kind: CallErrorKind,
  message: string,
  options: Pick<CallError, "retryable" | "code"> = {},
): Outcome {
  return { ok: false, error: { kind, message, data: null, ...options }, logLines: [] };
}
