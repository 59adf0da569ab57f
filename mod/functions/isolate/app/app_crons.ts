/** Validates the crons of `crons.ts` against the app's functions. */
import { functionLimits } from "../../../limits.ts";
import { schedulerLimits } from "../../limits.ts";
import { cronExpressionFault } from "../../../kit/cron_expression.ts";
import { type CronDefinition, cronDefinitions } from "../../api/cron_jobs.ts";
import { issueText } from "../../api/zod_issues.ts";
import type { WireCron } from "../../wire/messages.ts";
import type { LoadedFunction } from "./app.ts";
import { jsonText } from "../runs/json_text.ts";

const { parse } = JSON;

/** Returns the crons of a default export. Throws if they are invalid. */
export function appCrons(exported: unknown, functions: ReadonlyMap<string, LoadedFunction>): WireCron[] {
  const definitions = cronDefinitions(exported);
  if (definitions === null) {
    throw new TypeError(
      "the default export must be the crons: const crons = cronJobs(); ... export default crons",
    );
  }
  if (definitions.length > schedulerLimits.cronsMax) {
    throw new RangeError(`there are more than ${schedulerLimits.cronsMax} crons`);
  }
  return definitions.map((definition) => checked(definition, functions));
}

function checked(
  { name, schedule, function: path, args }: CronDefinition,
  functions: ReadonlyMap<string, LoadedFunction>,
): WireCron {
  if (schedule.kind === "expression") {
    const fault = cronExpressionFault(schedule.expression);
    if (fault !== null) throw new TypeError(`cron "${name}": "${schedule.expression}": ${fault}`);
  }
  const callee = functions.get(path);
  if (callee === undefined || callee.system || path.length > functionLimits.udfPathCharsMax) {
    throw new TypeError(`cron "${name}": there is no function "${path}"`);
  }
  const { kind, args: argsSchema } = callee.spec;
  if (kind === "query") {
    throw new TypeError(`cron "${name}": "${path}" is a query: only mutations and actions can be crons`);
  }
  const text = jsonText(args, `the arguments of cron "${name}"`);
  if (text.length > schedulerLimits.argsCharsMax) {
    throw new RangeError(
      `the arguments of cron "${name}" have more than ${schedulerLimits.argsCharsMax} characters`,
    );
  }
  const ownArgs = parse(text) as Record<string, unknown>;
  const parsed = argsSchema?.safeParse(ownArgs);
  if (parsed?.success === false) {
    throw new TypeError(`cron "${name}": ${issueText(parsed.error, "args")}`);
  }
  return { name, schedule, function: path, functionKind: kind, args: ownArgs };
}
