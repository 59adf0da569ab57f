/** `ctx.scheduler`: validates what is scheduled, and stores it through system functions. */
import { withHelp } from "../../../explained.ts";
import { type FunctionName, functionPath } from "../../../protocol/function_reference.ts";
import { functionLimits } from "../../../limits.ts";
import { schedulerLimits } from "../../limits.ts";
import { issueText } from "../../api/zod_issues.ts";
import { isSystemPath } from "../../system_module.ts";
import type { App } from "../app/app.ts";
import { jsonText } from "../runs/json_text.ts";
import { type ContextUser, failedAt } from "../runs/unhandled_failures.ts";

const { parse } = JSON;

type Args = Record<string, unknown>;

export interface SchedulerOptions {
  readonly app: App;
  /** The caller's clock, milliseconds since the epoch. */
  readonly now: () => number;
  /** Runs a mutation of the service, in the caller's transaction or its own. */
  readonly mutate: (udfPath: string, args: Args) => Promise<unknown>;
  /** The function that the operations belong to. */
  readonly asker: ContextUser;
}

/** Both functions are in `mod/scheduler`. */
const SCHEDULE = "_ctx/scheduler:schedule";
const CANCEL = "_ctx/scheduler:cancel";

export class SchedulerApi {
  readonly #options: SchedulerOptions;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  runAfter(delayMs: number, name: FunctionName, args: Args = {}): Promise<unknown> {
    return this.#withCallerStack("runAfter", async () => {
      if (typeof delayMs !== "number" || !(delayMs >= 0)) {
        throw new RangeError(
          `runAfter() needs a number of milliseconds from 0 on, not ${
            String(delayMs)
          }; for a given time there is runAt()`,
        );
      }
      return await this.#schedule(this.#options.now() + delayMs, { name, args });
    });
  }

  runAt(time: number | Date, name: FunctionName, args: Args = {}): Promise<unknown> {
    return this.#withCallerStack("runAt", async () => {
      const at = time instanceof Date ? time.getTime() : time;
      if (typeof at !== "number" || !Number.isFinite(at)) {
        throw new RangeError(
          `runAt() needs a Date, or a time in milliseconds since the epoch, not ${String(time)}`,
        );
      }
      return await this.#schedule(at, { name, args });
    });
  }

  cancel(id: string): Promise<void> {
    return this.#withCallerStack("cancel", async () => {
      if (typeof id !== "string") {
        throw new TypeError(`cancel() needs the id returned by runAfter() or runAt(), not ${typeof id}`);
      }
      await this.#options.mutate(CANCEL, { id });
    });
  }

  /** Records failed operations. */
  async #withCallerStack<T>(method: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw failedAt(this.#options.asker, `ctx.scheduler.${method}()`, error);
    }
  }

  async #schedule(
    at: number,
    { name, args }: { readonly name: FunctionName; readonly args: Args },
  ): Promise<unknown> {
    if (at - this.#options.now() > schedulerLimits.aheadMsMax) {
      throw withHelp(new RangeError("A function cannot be scheduled more than five years ahead"), "schedule");
    }
    const path = functionPath(name);
    const { kind, argsSchema } = this.#schedulable(path);
    const text = jsonText(args, `The arguments of "${path}"`);
    if (text.length > schedulerLimits.argsCharsMax) {
      throw withHelp(
        new RangeError(
          `The arguments of "${path}" have ${text.length} characters of JSON, more than the limit of ` +
            `${schedulerLimits.argsCharsMax} for scheduled functions: store what is large and pass its id`,
        ),
        "limit",
      );
    }
    const checkedArgs = parse(text) as Args;
    const parsed = argsSchema?.safeParse(checkedArgs);
    if (parsed?.success === false) throw new TypeError(`${path}: ${issueText(parsed.error, "args")}`);
    return await this.#options.mutate(SCHEDULE, {
      name: path,
      args: checkedArgs,
      scheduledTime: at,
      functionKind: kind,
    });
  }

  #schedulable(path: string) {
    const found = this.#options.app.functions.get(path);
    if (found === undefined || isSystemPath(path) || path.length > functionLimits.udfPathCharsMax) {
      throw new TypeError(`There is no function "${path}" to schedule`);
    }
    const { kind, args } = found.spec;
    if (kind === "query") {
      throw new TypeError(`"${path}" is a query: only mutations and actions can be scheduled`);
    }
    return { kind, argsSchema: args };
  }
}
