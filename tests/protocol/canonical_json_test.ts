/** Canonical JSON: equal values have equal strings. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { canonicalJson } from "../../mod/protocol/canonical_json.ts";

Deno.test("QI1 the order in which keys were written does not matter", () => {
  const shuffled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).reverse().map(([key, inner]) => [key, shuffled(inner)]));
  };
  fc.assert(fc.property(fc.jsonValue(), (value) => {
    const text = canonicalJson(value);
    assert.equal(canonicalJson(shuffled(value)), text);
    assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
  }));
});

Deno.test("QI1 keys are sorted at every level, for any names", () => {
  assert.equal(
    canonicalJson(JSON.parse('{"b":[{"z":1,"__proto__":2}],"a":{"10":1,"9":2}}')),
    '{"a":{"10":1,"9":2},"b":[{"__proto__":2,"z":1}]}',
  );
});

Deno.test("QI1 different values have different strings", () => {
  const texts = [null, 0, "0", false, "", [], {}, [[]], { a: undefined, b: 1 }, { a: null, b: 1 }, "\ud800"]
    .map(
      canonicalJson,
    );
  assert.equal(new Set(texts).size, texts.length);
});

Deno.test("QI1 values outside JSON are refused", () => {
  for (const value of [Infinity, NaN, 1n, () => 1, Symbol(), undefined]) {
    assert.throws(() => canonicalJson(value), TypeError);
  }
});
