/** How main calls system functions: typed, and with failures as errors. */
import { UserError } from "../errors.ts";
import { functionPath, type FunctionReference } from "../protocol/function_reference.ts";
import type { Caller, FunctionCall, MutationAnswer, MutationCall } from "./host_port.ts";
import { anonymous, type Identity } from "./identity.ts";
import type { CallError, Outcome } from "./outcome.ts";

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
  readonly seenAs?: NonNullable<MutationCall["seenAs"]>;
}

/** A call of a system function that failed. */
export class SystemCallError extends Error {
  override readonly name = "SystemCallError";
  /** What the function said, or who could not run it. */
  readonly reason: string;
  /** Whether nothing has happened and the same call may succeed later. */
  readonly retryable: boolean;
  /** Why nothing has happened, such as `disk_full`; `null` where that is not said. */
  readonly code: string | null;

  constructor(
    udfPath: string,
    { message, retryable, data }: Pick<CallError, "message" | "retryable" | "data">,
  ) {
    super(`${udfPath} failed: ${message}`);
    this.reason = message;
    this.retryable = retryable ?? false;
    this.code = this.retryable ? data?.code ?? null : null;
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
    { identity = anonymous, caller, work, seenAs }: CallOptions = {},
  ): Promise<Result> {
    const udfPath = functionPath(reference);
    const { outcome } = await this.#port.mutate({
      udfPath,
      args,
      identity,
      origin: "system",
      ...(caller && { caller }),
      ...(work !== undefined && { work }),
      ...(seenAs && { seenAs }),
    });
    return resultOf(outcome, udfPath);
  }
}

function resultOf<Result>(outcome: Outcome, udfPath: string): Result {
  // The function was found by its reference, whose type says what it returns.
  if (outcome.ok) return JSON.parse(outcome.value) as Result;
  const { kind, message, data } = outcome.error;
  if (kind === "user" && data !== null) throw new UserError(data.code, message, data.data);
  throw new SystemCallError(udfPath, outcome.error);
}
