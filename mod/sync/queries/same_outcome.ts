/** Compares outcomes as a client sees them. */
import { type Outcome, publicError } from "../../functions/outcome.ts";
import { sharedQueryLimits } from "../limits.ts";
import { PairMemo } from "../pair_memo.ts";
import { canonicalJson } from "../../protocol/canonical_json.ts";
import { deepEqual } from "../../protocol/deep_equal.ts";

type Success = Extract<Outcome, { readonly ok: true }>;

/** Whether a client would see the same value or error. Ignores log lines. */
export function sameOutcome(a: Outcome, b: Outcome, options: { readonly dev: boolean }): boolean {
  if (a === b) return true;
  if (a.ok || b.ok) return a.ok && b.ok && sameValue(a, b);
  const left = publicError(a.error, options);
  const right = publicError(b.error, options);
  return left.errorMessage === right.errorMessage &&
    canonicalJson(left.errorData) === canonicalJson(right.errorData);
}

/** Cached comparisons of texts that may differ only in key order. */
const verdicts = new PairMemo<boolean>();

function sameValue(a: Success, b: Success): boolean {
  if (a.value === b.value) return true;
  if (a.value.length !== b.value.length || a.value.length > sharedQueryLimits.diffedCharsMax) return false;
  return verdicts.get(a, b, () => sameButForOrder(a.value, b.value));
}

/** Whether two texts of equal length encode equal values. */
function sameButForOrder(a: string, b: string): boolean {
  return charSum(a) === charSum(b) && deepEqual(JSON.parse(a), JSON.parse(b));
}

/** Checksum that ignores character order. Distinguishes most texts without parsing. */
function charSum(text: string): number {
  let sum = 0;
  for (let i = 0; i < text.length; i++) sum += text.charCodeAt(i);
  return sum;
}
