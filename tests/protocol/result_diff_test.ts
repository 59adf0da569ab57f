/** Result diffs can be applied, are small, and are refused for another value. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { applyDiff, DiffMismatchError } from "../../mod/protocol/apply_diff.ts";
import { resultDiff } from "../../mod/protocol/result_diff.ts";

interface Row {
  readonly _id: string;
  readonly body: string;
  readonly likes: number;
}

function rows(count: number): Row[] {
  return Array.from(
    { length: count },
    (_, i) => ({ _id: `m${i}`, body: `message number ${i}`, likes: i % 7 }),
  );
}

function diffOf(before: unknown, after: unknown): unknown {
  const text = resultDiff(before, after);
  return text === null ? null : JSON.parse(text);
}

/** Values with repeated parts, to mix edits, moves and duplicates. */
const value = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    fc.constantFrom(null, true, false, 0, 1, 2, "a", "b", "", "\u2028"),
    fc.array(tie("value"), { maxLength: 6 }),
    fc.dictionary(fc.constantFrom("a", "b", "_id", "$r", "$o", "__proto__", "toString"), tie("value"), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
    fc.array(
      fc.record({ _id: fc.constantFrom("x", "y", "z", "w", 1, 2), n: fc.constantFrom(1, 2, 3) }),
      { maxLength: 6 },
    ),
  ),
})).value.map((made) => JSON.parse(JSON.stringify(made)) as unknown);

Deno.test("DF2 a diff turns any result into any other", () => {
  fc.assert(
    fc.property(value, value, (before, after) => {
      const snapshot = JSON.stringify(before);
      const diff = diffOf(before, after);
      if (diff === null) assert.deepEqual(before, after);
      else assert.deepEqual(applyDiff(before, diff), after);
      assert.equal(JSON.stringify(before), snapshot, "the old result must stay as it was");
    }),
    { numRuns: 20_000 },
  );
});

Deno.test("DF2 equal results have no diff", () => {
  fc.assert(fc.property(value, (same) => {
    assert.equal(resultDiff(same, JSON.parse(JSON.stringify(same))), null);
  }));
});

Deno.test("DF3 ops of an array keep, delete, insert and patch", () => {
  assert.deepEqual(applyDiff([1, 2, 3, 4, 5], { $a: [1, -1, ["x", "y"], 1, { $p: { $r: "z" } }] }), [
    1,
    "x",
    "y",
    3,
    "z",
    5,
  ]);
  assert.deepEqual(applyDiff([], { $a: [[1]] }), [1]);
});

Deno.test("DF4 an edit of an object sets, deletes and patches keys", () => {
  const before = { a: 1, b: { c: 1, d: 2 }, e: 3 };
  const diff = { $o: { s: { f: [1] }, d: ["e"], p: { b: { $o: { s: { c: 5 } } } } } };
  assert.deepEqual(applyDiff(before, diff), { a: 1, b: { c: 5, d: 2 }, f: [1] });
});

Deno.test("DF4 a key such as __proto__ is data", () => {
  const before = JSON.parse('{"__proto__":{"a":1},"b":1}') as unknown;
  const after = JSON.parse('{"__proto__":{"a":2},"b":1}') as unknown;
  const applied = applyDiff(before, diffOf(before, after));
  assert.equal(JSON.stringify(applied), '{"__proto__":{"a":2},"b":1}');
  assert.equal(Object.getPrototypeOf(applied), Object.prototype);
});

Deno.test("DF5 one changed row of a thousand costs that row only", () => {
  const before = rows(1000);
  const after = before.map((row, i) => i === 500 ? { ...row, likes: 99 } : row);
  assert.deepEqual(diffOf(before, after), { $a: [500, { $p: { $o: { s: { likes: 99 } } } }] });
});

Deno.test("DF5 rows are matched by _id: a moved row costs that row only", () => {
  const before = rows(1000);
  const after = [...before.slice(1, 900), before[0], ...before.slice(900)];
  assert.deepEqual(diffOf(before, after), { $a: [-1, 899, [before[0]]] });
});

Deno.test("DF5 a row added at the front and one removed at the end are two small operations", () => {
  const before = rows(50);
  const added = { _id: "new", body: "hello", likes: 0 };
  assert.deepEqual(diffOf(before, [added, ...before.slice(0, 49)]), { $a: [[added], 49, -1] });
});

Deno.test("DF5 a row that moved and changed is sent completely, the others are not sent", () => {
  const before = rows(10);
  const changed = { ...before[0], likes: 42 };
  assert.deepEqual(diffOf(before, [...before.slice(1), changed]), { $a: [-1, 9, [changed]] });
});

Deno.test("DF5 elements without _id are edited in place", () => {
  const before = [{ name: "a long enough name", n: 1 }, { name: "another long name", n: 2 }];
  const after = [{ name: "a long enough name", n: 1 }, { name: "another long name", n: 3 }];
  assert.deepEqual(diffOf(before, after), { $a: [1, { $p: { $o: { s: { n: 3 } } } }] });
});

Deno.test("DF6 a diff of another value is refused", () => {
  const misfits: [before: unknown, diff: unknown][] = [
    [[1], { $a: [2] }],
    [[1], { $a: [-2] }],
    [[1], { $a: [1, { $p: { $r: 1 } }] }],
    [[1], { $a: [0] }],
    [[1], { $a: [0.5] }],
    [[1], { $a: ["x"] }],
    [[1], { $a: 1 }],
    [{ a: 1 }, { $a: [1] }],
    ["text", { $a: [1] }],
    [[1], { $o: {} }],
    [null, { $o: { s: { a: 1 } } }],
    [{ a: 1 }, { $o: { d: ["b"] } }],
    [{ a: 1 }, { $o: { p: { b: { $r: 1 } } } }],
    [{ a: 1 }, { $o: { p: { toString: { $r: 1 } } } }],
    [{ a: 1 }, { $o: { q: 1 } }],
    [{ a: 1 }, { $o: 5 }],
    [1, {}],
    [1, { $r: 1, $a: [] }],
    [1, { $x: 1 }],
    [1, null],
    [1, [1]],
  ];
  for (const [before, diff] of misfits) {
    assert.throws(() => applyDiff(before, diff), DiffMismatchError, JSON.stringify({ before, diff }));
  }
});

Deno.test("DF7 values that a diff does not change keep their identity", () => {
  const before = rows(100);
  const after = applyDiff(before, { $a: [3, { $p: { $o: { s: { likes: 7 } } } }] }) as Row[];
  assert.notEqual(after, before);
  assert.equal(after[2], before[2]);
  assert.equal(after[99], before[99]);
  assert.notEqual(after[3], before[3]);
  assert.equal(applyDiff(before, { $a: [100] }), before);
});
