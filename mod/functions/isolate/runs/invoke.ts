/** Runs a handler, with its arguments and result validated. */
import { withHelp } from "../../../explained.ts";
import { functionLimits } from "../../../limits.ts";
import { issueText } from "../../api/zod_issues.ts";
import type { LoadedFunction } from "../app/app.ts";
import { RefusedCallError } from "./call_errors.ts";
import { jsonText } from "./json_text.ts";

/** Returns the handler's result as JSON. @throws RefusedCallError for invalid arguments, and what the handler throws. */
export async function invoke(
  { udfPath, spec }: LoadedFunction,
  ctx: unknown,
  { args, settle }: {
    readonly args: Record<string, unknown>;
    readonly settle: (result: PromiseLike<unknown>) => Promise<unknown>;
  },
): Promise<string> {
  let checkedArgs = args;
  if (spec.args !== null) {
    const parsed = spec.args.safeParse(args);
    if (!parsed.success) throw new RefusedCallError("args", issueText(parsed.error, "args"));
    checkedArgs = parsed.data;
  }
  let result = spec.handler(ctx, checkedArgs);
  if (isThenable(result)) result = await settle(result);
  if (spec.returns !== null) {
    const parsed = spec.returns.safeParse(result);
    if (!parsed.success) {
      throw new TypeError(`The result of "${udfPath}" does not fit: ${issueText(parsed.error, "returns")}`);
    }
    result = parsed.data;
  }
  const text = jsonText(result, `The result of "${udfPath}"`);
  if (text.length > functionLimits.resultCharsMax) {
    throw withHelp(
      new RangeError(
        `The result of "${udfPath}" has ${text.length} characters of JSON, more than the limit of ${functionLimits.resultCharsMax}`,
      ),
      "limit",
    );
  }
  return text;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null &&
    typeof (value as { readonly then?: unknown }).then === "function";
}
