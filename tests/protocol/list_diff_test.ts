/** Diffs of lists computed from their JSON: as correct as diffs of the values, and not longer. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { applyDiff } from "../../mod/protocol/apply_diff.ts";
import { listDiff, ListText } from "../../mod/protocol/list_diff.ts";
import { resultDiff } from "../../mod/protocol/result_diff.ts";

const CHARS_MAX = 10_000;

function listOf(value: unknown): ListText {
  return new ListText(JSON.stringify(value));
}

function diffOf(before: unknown, after: unknown, charsMax = CHARS_MAX): string | null | undefined {
  return listDiff(listOf(before), { after: listOf(after), charsMax });
}

/** Elements with commas, brackets, quotes and backslashes inside strings. */
const element = fc.oneof(
  fc.constantFrom<unknown>(
    1,
    12,
    null,
    "",
    ",",
    '"',
    "\\",
    '\\"',
    "],[",
    '",',
    "a",
    [],
    [1],
    [[","], "]"],
    {},
  ),
  fc.record({ _id: fc.constantFrom("x", "y", "z"), n: fc.constantFrom<unknown>(1, 2, ",", "}", ["\\"]) }),
);
const list = fc.array(element, { maxLength: 7 }).map((made) => JSON.parse(JSON.stringify(made)) as unknown[]);

Deno.test("DF2 the diff of two lists' JSON turns any list into any other", () => {
  fc.assert(
    fc.property(list, list, list, list, (begin, end, before, after) => {
      const old = [...begin, ...before, ...end];
      const now = [...begin, ...after, ...end];
      const diff = diffOf(old, now);
      if (diff === null) return assert.deepEqual(old, now);
      // `listDiff` may be unable to find where the common suffix begins.
      const text = diff ?? resultDiff(old, now);
      assert.deepEqual(text === null ? old : applyDiff(old, JSON.parse(text)), now);
    }),
    { numRuns: 20_000 },
  );
});

Deno.test("DF2 a list that was compared is compared with the next one like a new list", () => {
  fc.assert(
    fc.property(fc.array(list, { minLength: 3, maxLength: 6 }), (values) => {
      let shown = listOf(values[0]);
      for (const value of values.slice(1)) {
        const next = listOf(value);
        const fresh = diffOf(JSON.parse(shown.text), value);
        assert.equal(listDiff(shown, { after: next, charsMax: CHARS_MAX }), fresh);
        assert.deepEqual(next.commas, listOf(value).commas);
        shown = next;
      }
    }),
    { numRuns: 5_000 },
  );
});

Deno.test("DF5 a change, an insert and a removal in a long list cost that row only", () => {
  const rows = Array.from(
    { length: 10_000 },
    (_, n) => ({ _id: `row ${n}`, text: "x".repeat(150), value: 0 }),
  );
  const changed = rows.with(7_000, { ...rows[7_000], value: 5 } as typeof rows[0]);
  const cases: readonly (readonly [readonly unknown[], string])[] = [
    [changed, '{"$a":[7000,{"$p":{"$o":{"s":{"value":5}}}}]}'],
    [rows.toSpliced(7_000, 1), '{"$a":[7000,-1]}'],
    [rows.slice(0, -1), '{"$a":[9999,-1]}'],
    [[{ _id: "new" }, ...rows], '{"$a":[[{"_id":"new"}]]}'],
    [[...rows, { _id: "new" }], '{"$a":[10000,[{"_id":"new"}]]}'],
    [rows.with(0, { _id: "other" } as typeof rows[0]), '{"$a":[-1,[{"_id":"other"}]]}'],
  ];
  for (const [after, expected] of cases) {
    assert.equal(diffOf(rows, after), expected);
    assert.deepEqual(applyDiff(rows, JSON.parse(expected)), after);
  }
  assert.equal(diffOf(rows, rows), null);
});

Deno.test("DF8 values that are no list, or differ too much, have no list diff", () => {
  assert.equal(diffOf({ a: 1 }, { a: 2 }), undefined);
  assert.equal(diffOf([1], { a: 2 }), undefined);
  const long = (text: string) => Array.from({ length: 100 }, (_, n) => `${text}${n}`);
  assert.equal(diffOf(long("a"), long("b"), 50), undefined);
  assert.notEqual(diffOf(long("a"), long("b"), 1_000), undefined);
});
