/** Diffs between outcomes, each computed once for all sockets that hold the same old result. */
import type { Outcome } from "../../functions/outcome.ts";
import { sharedQueryLimits } from "../limits.ts";
import { PairMemo } from "../pair_memo.ts";
import { listDiff } from "../../protocol/list_diff.ts";
import { resultDiff } from "../../protocol/result_diff.ts";

export class DiffCache {
  /** `null`: not worth sending. */
  readonly #diffs = new PairMemo<string | null>();

  /** JSON text of the diff from one result to the next, `null` when the whole value has to be sent. */
  diff(before: Outcome | null, after: Outcome): string | null {
    if (before === null || !before.ok || !after.ok) return null;
    return this.#diffs.get(after, before, () => worthwhileDiff(before.value, after.value));
  }
}

/** Only arrays and objects have parts worth sending alone. */
const HAS_PARTS = /^[[{]/;

function worthwhileDiff(before: string, after: string): string | null {
  const { diffedCharsMax, diffShareMax } = sharedQueryLimits;
  if (!HAS_PARTS.test(after) || before.charCodeAt(0) !== after.charCodeAt(0)) return null;
  const ofList = listDiff(before, { after, charsMax: diffedCharsMax });
  if (ofList === undefined && (before.length > diffedCharsMax || after.length > diffedCharsMax)) return null;
  const diff = ofList === undefined ? resultDiff(JSON.parse(before), JSON.parse(after)) : ofList;
  // Results whose texts differ in the order of keys only have no diff; the value is then as good as any.
  return diff !== null && diff.length <= diffShareMax * after.length ? diff : null;
}
