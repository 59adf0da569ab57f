/** Caches diffs between outcomes. Each is computed once for all sockets with the same previous result. */
import type { Outcome } from "../../functions/outcome.ts";
import { sharedQueryLimits } from "../limits.ts";
import { PairMemo } from "../pair_memo.ts";
import { listDiff } from "../../protocol/list_diff.ts";
import { resultDiff } from "../../protocol/result_diff.ts";

export class DiffCache {
  /** `null` if the diff is not worth sending. */
  readonly #diffs = new PairMemo<string | null>();

  /** Returns the diff as JSON, or `null` if the whole value has to be sent. */
  diff(before: Outcome | null, after: Outcome): string | null {
    if (before === null || !before.ok || !after.ok) return null;
    return this.#diffs.get(after, before, () => worthwhileDiff(before.value, after.value));
  }
}

/** Only arrays and objects can be diffed. */
const HAS_PARTS = /^[[{]/;

function worthwhileDiff(before: string, after: string): string | null {
  const { diffedCharsMax, diffShareMax } = sharedQueryLimits;
  if (!HAS_PARTS.test(after) || before.charCodeAt(0) !== after.charCodeAt(0)) return null;
  const ofList = listDiff(before, { after, charsMax: diffedCharsMax });
  if (ofList === undefined && (before.length > diffedCharsMax || after.length > diffedCharsMax)) return null;
  const diff = ofList === undefined ? resultDiff(JSON.parse(before), JSON.parse(after)) : ofList;
  // Results that differ only in key order have no diff.
  return diff !== null && diff.length <= diffShareMax * after.length ? diff : null;
}
