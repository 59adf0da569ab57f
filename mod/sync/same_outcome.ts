/** Whether a new outcome shows a client anything new. */
import { type Outcome, publicError } from "../functions/outcome.ts";
import { canonicalJson } from "../protocol/canonical_json.ts";

/** Whether two outcomes are the same to whoever sees them: equal JSON text, or the same error. Log lines do not count. */
export function sameOutcome(a: Outcome, b: Outcome, options: { readonly dev: boolean }): boolean {
  if (a === b) return true;
  if (a.ok || b.ok) return a.ok && b.ok && a.value === b.value;
  const left = publicError(a.error, options);
  const right = publicError(b.error, options);
  return left.errorMessage === right.errorMessage &&
    canonicalJson(left.errorData) === canonicalJson(right.errorData);
}
