/** How main calls system functions: typed, and with failures as errors. */
import { UserError } from "../errors.ts";
import { functionPath, type FunctionReference } from "../protocol/function_reference.ts";
import type { Caller, FunctionCall, MutationAnswer, MutationCall } from "./host_port.ts";
import { anonymous, type Identity } from "./identity.ts";
import { type CallError, type Outcome, serviceErrorOf } from "./outcome.ts";

/** What calls go through: the writer for mutations, the shared queries for queries. */
export interface CallPort {
  mutate(call: MutationCall): Promise<MutationAnswer>;
  query(call: FunctionCall): Promise<Outcome>;
}

export interface CallOptions {
  /** Who `ctx.auth` says is calling; nobody unless told. */
  readonly identity?: Identity;
  /** Whose turn it takes; that of the service when absent. */
  readonly caller?: Caller;
  /** Under what its cost is remembered; its function when absent. */
  readonly work?: string;
  /** As what a mutation is told to observers. */
  readonly reportAs?: NonNullable<MutationCall["reportAs"]>;
}

/** A call of a system function that failed. */
export class SystemCallError extends Error {
  override readonly name = "SystemCallError";
  /** What the function said, or who could not run it. */
  readonly reason: string;
  /** Whether the function is not to blame and the same call may succeed later. */
  readonly retryable: boolean;
  /** Why nothing has happened, such as `disk_full`; `null` where that is not said. */
  readonly code: string | null;

  /** A retryable one has the service's error as its cause, with which requests are answered. */
  constructor(udfPath: string, error: Pick<CallError, "message" | "retryable"> & Partial<CallError>) {
    const cause = serviceErrorOf({ kind: "internal", data: null, ...error });
    super(`${udfPath} failed: ${error.message}`, cause === null ? {} : { cause });
    this.reason = error.message;
    this.retryable = cause !== null;
    this.code = this.retryable ? error.data?.code ?? null : null;
  }
}

/** Calls system functions. A `UserError` thrown there is thrown here; any other failure is a `SystemCallError`. */
export class SystemCalls {
  readonly #port: CallPort;

  constructor(port: CallPort) {
    this.#port = port;
  }

  async query<Args extends Record<string, unknown>, Result>(
    reference: FunctionReference<"query", Args, Result>,
    args: Args,
    { identity = anonymous }: CallOptions = {},
  ): Promise<Result> {
    const udfPath = functionPath(reference);
    return resultOf(await this.#port.query({ udfPath, args, identity, origin: "system" }), udfPath);
  }

  async mutate<Args extends Record<string, unknown>, Result>(
    reference: FunctionReference<"mutation", Args, Result>,
    args: Args,
    { identity = anonymous, caller, work, reportAs }: CallOptions = {},
  ): Promise<Result> {
    const udfPath = functionPath(reference);
    const { outcome } = await this.#port.mutate({
      udfPath,
      args,
      identity,
      origin: "system",
      ...(caller && { caller }),
      ...(work !== undefined && { work }),
      ...(reportAs && { reportAs }),
    });
    return resultOf(outcome, udfPath);
  }
}

function resultOf<Result>(outcome: Outcome, udfPath: string): Result {
  // The function was found by its reference, whose type says what it returns.
  if (outcome.ok) return JSON.parse(outcome.value) as Result;
  const { kind, message, data, retryable } = outcome.error;
  if (kind === "user" && data !== null && retryable !== true) {
    throw new UserError(data.code, message, data.data);
  }
  throw new SystemCallError(udfPath, outcome.error);
}
