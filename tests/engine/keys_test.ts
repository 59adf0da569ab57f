/** Order of keys: SQLite, JavaScript's `<` and the comparison of values agree. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { compareValues, encodeKey, keyAfter } from "../../mod/engine/mod.ts";
import { rangeOfBounds } from "../../mod/engine/indexes/keys.ts";
import type { Value } from "../../mod/engine/mod.ts";
import { anyValue, hostileNumber, hostileText } from "./support.ts";

const maybeValue = fc.oneof(anyValue, fc.constant(undefined));

function compareLists(a: readonly (Value | undefined)[], b: readonly (Value | undefined)[]): number {
  for (let index = 0; index < Math.min(a.length, b.length); index++) {
    const order = compareValues(a[index], b[index]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

Deno.test("keys of single values sort as the values do", () => {
  fc.assert(
    fc.property(maybeValue, maybeValue, (a, b) => {
      assert.equal(compareTexts(encodeKey([a]), encodeKey([b])), Math.sign(compareValues(a, b)));
    }),
    { numRuns: 20_000 },
  );
});

for (const [name, values] of [["numbers", hostileNumber], ["texts", hostileText]] as const) {
  Deno.test(`keys of ${name} sort as the ${name} do`, () => {
    fc.assert(
      fc.property(values, values, (a, b) => {
        assert.equal(compareTexts(encodeKey([a]), encodeKey([b])), a < b ? -1 : a > b ? 1 : 0);
      }),
      { numRuns: 20_000 },
    );
  });
}

Deno.test("keys of lists of values sort field by field", () => {
  const list = fc.array(maybeValue, { minLength: 3, maxLength: 3 });
  fc.assert(
    fc.property(list, list, (a, b) => {
      assert.equal(compareTexts(encodeKey(a), encodeKey(b)), Math.sign(compareLists(a, b)));
    }),
    { numRuns: 10_000 },
  );
});

Deno.test("keys are printable ASCII and none is a prefix of another", () => {
  fc.assert(
    fc.property(maybeValue, maybeValue, (a, b) => {
      const [keyA, keyB] = [encodeKey([a]), encodeKey([b])];
      assert.match(keyA, /^[ -~]+$/);
      if (keyA !== keyB) assert.ok(!keyA.startsWith(keyB) && !keyB.startsWith(keyA));
    }),
    { numRuns: 10_000 },
  );
});

Deno.test("SQLite sorts keys as JavaScript does and returns them unchanged", () => {
  using db = new DatabaseSync(":memory:");
  db.exec("CREATE TABLE k (key TEXT PRIMARY KEY) WITHOUT ROWID");
  const insert = db.prepare("INSERT OR IGNORE INTO k VALUES (?)");
  fc.assert(
    fc.property(fc.array(maybeValue, { minLength: 2, maxLength: 60 }), (values) => {
      db.exec("DELETE FROM k");
      const keys = values.map((value) => encodeKey([value]));
      for (const key of keys) insert.run(key);
      const sorted = db.prepare("SELECT key FROM k ORDER BY key").all().map((row) => row["key"]);
      assert.deepEqual(sorted, [...new Set(keys)].sort(compareTexts));
    }),
    { numRuns: 300 },
  );
});

Deno.test("the order of types is missing, null, number, boolean, string, array, object", () => {
  const ascending: (Value | undefined)[] = [
    undefined,
    null,
    -Number.MAX_VALUE,
    -1,
    -5e-324,
    0,
    5e-324,
    0.1,
    1,
    2 ** 53,
    false,
    true,
    "",
    "\u0000",
    "A",
    "a",
    "aa",
    "\ud83d\ude00",
    "\uffff",
    [],
    [null],
    [1],
    [1, 2],
    [2],
    ["a"],
    {},
    { a: 1 },
    { a: 1, b: 1 },
    { a: 2 },
    { b: 0 },
  ];
  for (let index = 1; index < ascending.length; index++) {
    const [lower, upper] = [ascending[index - 1], ascending[index]];
    assert.ok(encodeKey([lower]) < encodeKey([upper]), `${JSON.stringify(lower)} < ${JSON.stringify(upper)}`);
    assert.ok(compareValues(lower, upper) < 0);
  }
});

Deno.test("-0 and 0 have one key", () => {
  assert.equal(encodeKey([-0]), encodeKey([0]));
  assert.equal(compareValues(-0, 0), 0);
});

Deno.test("a range has exactly the keys within its bounds", () => {
  const bound = fc.record({ value: maybeValue, inclusive: fc.boolean() });
  const maybeBound = fc.option(bound, { nil: undefined });
  fc.assert(
    fc.property(
      maybeValue,
      maybeBound,
      maybeBound,
      fc.tuple(maybeValue, maybeValue),
      (eq, lower, upper, row) => {
        const { lo, hi } = rangeOfBounds({
          eq: [eq],
          ...(lower === undefined ? {} : { lower }),
          ...(upper === undefined ? {} : { upper }),
        });
        const key = encodeKey(row) + "the rest of a key";
        const [first, second] = row;
        const above = lower === undefined || compareValues(second, lower.value) > 0 ||
          (lower.inclusive && compareValues(second, lower.value) === 0);
        const below = upper === undefined || compareValues(second, upper.value) < 0 ||
          (upper.inclusive && compareValues(second, upper.value) === 0);
        assert.equal(lo <= key && key < hi, compareValues(first, eq) === 0 && above && below);
      },
    ),
    { numRuns: 20_000 },
  );
});

Deno.test("no key is between a key and the key after it", () => {
  fc.assert(fc.property(maybeValue, maybeValue, (a, b) => {
    const [keyA, keyB] = [encodeKey([a]), encodeKey([b])];
    assert.equal(keyA < keyB, keyAfter(keyA) <= keyB);
  }));
});

Deno.test("values without a position in the order are refused", () => {
  for (const value of [NaN, 1n, () => 1, Symbol("x")]) {
    assert.throws(() => encodeKey([value as never]), /has no place in the order of values/);
  }
});
