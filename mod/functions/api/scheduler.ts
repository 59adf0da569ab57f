/** Types of `ctx.scheduler`. */
import type { FunctionName } from "../../protocol/function_reference.ts";
import type { CallArgs, Known } from "../../protocol/server_function_names.ts";
import type { Id } from "./values.ts";

/** Kinds of functions that can be scheduled. */
type Schedulable = "mutation" | "action";

/** A function that can be scheduled. */
export type SchedulableName = FunctionName<Schedulable>;

/** The arguments after the function reference. */
export type SchedulableArgs<Name> = CallArgs<Name, Schedulable>;

/**
 * Runs mutations and actions later, without an identity: `ctx.auth` of a scheduled function is empty. In a mutation, scheduling
 * and canceling are part of its transaction; in an action, each is its own transaction.
 *
 * A scheduled mutation runs exactly once: its writes and its completion are one commit. A scheduled action runs at most once:
 * if it was running when the server stopped, it is not repeated. Neither is retried after an error.
 */
export interface Scheduler {
  /** Runs a function in `delayMs` milliseconds. Returns the id of its document in `_scheduled_functions`. */
  runAfter<Name extends SchedulableName>(
    delayMs: number,
    name: Known<Name>,
    ...args: SchedulableArgs<Name>
  ): Promise<Id<"_scheduled_functions">>;
  /** Runs a function at a time in milliseconds since the epoch; immediately if that time has passed. */
  runAt<Name extends SchedulableName>(
    time: number | Date,
    name: Known<Name>,
    ...args: SchedulableArgs<Name>
  ): Promise<Id<"_scheduled_functions">>;
  /** Cancels a waiting function. A running action continues, and a finished function is unchanged. */
  cancel(id: Id<"_scheduled_functions">): Promise<void>;
}
