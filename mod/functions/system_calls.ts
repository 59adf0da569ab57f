/** Typed calls of system functions from main. Failures are thrown. */
import { UserError } from "../errors.ts";
import { functionPath, type FunctionReference } from "../protocol/function_reference.ts";
import type { Caller, FunctionCall, MutationAnswer, MutationCall } from "./host_port.ts";
import { anonymous, type Identity } from "./identity.ts";
import { type CallError, type Outcome, serviceErrorOf } from "./outcome.ts";

/** Runs the calls: mutations in the writer, queries through the shared queries. */
export interface CallPort {
  mutate(call: MutationCall): Promise<MutationAnswer>;
  query(call: FunctionCall): Promise<Outcome>;
  /** Runs a query of the service in the writer. Absent if another server writes. */
  queryInWriter?(call: FunctionCall): Promise<Outcome>;
}

export interface CallOptions {
  /** Identity of `ctx.auth`. Anonymous if absent. */
  readonly identity?: Identity;
  /** The caller for fair queues. The service if absent. */
  readonly caller?: Caller;
  /** Key of the cost estimate. The function if absent. */
  readonly work?: string;
  /** The function path and outcome reported to observers of a mutation. */
  readonly reportAs?: NonNullable<MutationCall["reportAs"]>;
}

/** Thrown if a system function fails. */
export class SystemCallError extends Error {
  override readonly name = "SystemCallError";
  /** The function's message, or the reason why it could not run. */
  readonly reason: string;
  /** Whether the function is not at fault and the same call may succeed later. */
  readonly retryable: boolean;
  /** Why the call had no effect, such as `disk_full`. `null` if unknown. */
  readonly code: string | null;

  /** A retryable error has the service error for the response as its cause. */
  constructor(udfPath: string, error: Pick<CallError, "message" | "retryable"> & Partial<CallError>) {
    const cause = serviceErrorOf({ kind: "internal", data: null, ...error });
    super(`${udfPath} failed: ${error.message}`, cause === null ? {} : { cause });
    this.reason = error.message;
    this.retryable = cause !== null;
    this.code = this.retryable ? error.data?.code ?? null : null;
  }
}

/** Calls system functions. Throws the function's `UserError`, or a `SystemCallError` for any other failure. */
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

  /**
   * Like {@linkcode query}, for background work: runs in the writer, so that an idle server needs no reader. If the writer
   * cannot commit, for example because the disk is full, a reader runs it.
   */
  async queryInWriter<Args extends Record<string, unknown>, Result>(
    reference: FunctionReference<"query", Args, Result>,
    args: Args,
  ): Promise<Result> {
    if (this.#port.queryInWriter === undefined) return await this.query(reference, args);
    const udfPath = functionPath(reference);
    const call = { udfPath, args, identity: anonymous, origin: "system" } as const;
    const outcome = await this.#port.queryInWriter(call);
    return resultOf(
      outcome.ok || outcome.error.retryable !== true ? outcome : await this.#port.query(call),
      udfPath,
    );
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
  // The type of the reference determines the result type.
  if (outcome.ok) return JSON.parse(outcome.value) as Result;
  const { kind, message, data, retryable } = outcome.error;
  if (kind === "user" && data !== null && retryable !== true) {
    throw new UserError(data.code, message, data.data);
  }
  throw new SystemCallError(udfPath, outcome.error);
}
