/** Whether a new outcome shows a client anything new. */
import { type Outcome, publicError } from "../functions/outcome.ts";
import { canonicalJson } from "../protocol/canonical_json.ts";
import { deepEqual } from "../protocol/deep_equal.ts";

/** Whether two outcomes are the same to whoever sees them: equal values, or the same error. Log lines do not count. */
export function sameOutcome(a: Outcome, b: Outcome, options: { readonly dev: boolean }): boolean {
  if (a === b) return true;
  if (a.ok || b.ok) return a.ok && b.ok && sameValue(a.value, b.value);
  const left = publicError(a.error, options);
  const right = publicError(b.error, options);
  return left.errorMessage === right.errorMessage &&
    canonicalJson(left.errorData) === canonicalJson(right.errorData);
}

/** Whether two JSON texts are of equal values. Unless they are, they are parsed only if they may differ in the order of keys. */
function sameValue(a: string, b: string): boolean {
  if (a === b) return true;
  return a.length === b.length && charSum(a) === charSum(b) && deepEqual(JSON.parse(a), JSON.parse(b));
}

/** The same for all texts of the same characters. */
function charSum(text: string): number {
  let sum = 0;
  for (let i = 0; i < text.length; i++) sum += text.charCodeAt(i);
  return sum;
}
