/** `ctx.scheduler` as authors see it. Types only. */
import type { FunctionName } from "../../protocol/function_reference.ts";
import type { CallArgs, Known } from "../../protocol/server_function_names.ts";
import type { Id } from "./values.ts";

/** Kinds that can be scheduled. */
type Schedulable = "mutation" | "action";

/** What can be scheduled. */
export type SchedulableName = FunctionName<Schedulable>;

/** What follows it: its arguments. */
export type SchedulableArgs<Name> = CallArgs<Name, Schedulable>;

/**
 * Runs mutations and actions later, as nobody: `ctx.auth` of a scheduled function is empty. In a mutation, scheduling and
 * canceling are part of its transaction; in an action, each is a transaction of its own.
 *
 * A scheduled mutation runs exactly once: its writes and its end are one commit. A scheduled action runs at most once: one
 * that was running when the server ended is not run again. Neither is run again after an error of its own.
 */
export interface Scheduler {
  /** Runs a function `delayMs` milliseconds from now. Gives back the id of its document in `_scheduled_functions`. */
  runAfter<Name extends SchedulableName>(
    delayMs: number,
    name: Known<Name>,
    ...args: SchedulableArgs<Name>
  ): Promise<Id<"_scheduled_functions">>;
  /** Runs a function at a time, in milliseconds since the epoch; at once when it is over. */
  runAt<Name extends SchedulableName>(
    time: number | Date,
    name: Known<Name>,
    ...args: SchedulableArgs<Name>
  ): Promise<Id<"_scheduled_functions">>;
  /** A function that waits will not run. An action that runs goes on; what has ended stays as it is. */
  cancel(id: Id<"_scheduled_functions">): Promise<void>;
}
