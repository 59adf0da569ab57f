/** Arguments as copies, results that keep what did not change, and frozen results. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { freezeDeep } from "../../mod/client/queries/freeze_deep.ts";
import { jsonArgs } from "../../mod/client/json_args.ts";
import { shareStructure } from "../../mod/client/queries/share_structure.ts";

const json = fc.jsonValue({ maxDepth: 4 });
const row = fc.record({
  _id: fc.constantFrom("a", "b", "c", "d", "e"),
  n: fc.nat(2),
  list: fc.array(fc.nat(2)),
});

Deno.test("shareStructure returns an equal value and leaves both inputs unchanged", () => {
  fc.assert(fc.property(fc.oneof(json, fc.array(row)), fc.oneof(json, fc.array(row)), (old, next) => {
    const before = JSON.stringify([old, next]);
    assert.deepEqual(JSON.stringify(shareStructure(old, next)), JSON.stringify(next));
    assert.equal(JSON.stringify([old, next]), before);
  }));
});

Deno.test("shareStructure returns the old value itself for an equal one", () => {
  fc.assert(fc.property(json, (value) => {
    assert(Object.is(shareStructure(value, structuredClone(value)), value));
  }));
});

Deno.test("shareStructure finds moved documents by their id", () => {
  const old = [{ _id: "a", deep: { x: 1 } }, { _id: "b", deep: { x: 2 } }];
  const next = structuredClone([{ _id: "new", deep: { x: 0 } }, ...old]);
  const shared = shareStructure(old, next) as typeof old;
  assert.equal(shared[1], old[0]);
  assert.equal(shared[2], old[1]);
  const changed = shareStructure(old, [{ _id: "b", deep: { x: 2 }, more: 1 }]) as typeof old;
  assert.equal(changed[0]?.deep, old[1]?.deep);
});

Deno.test("a key such as __proto__ is plain data everywhere", () => {
  const value = JSON.parse('{"__proto__":{"a":1},"constructor":2,"hasOwnProperty":3}');
  assert.equal(JSON.stringify(jsonArgs(value)), JSON.stringify(value));
  const next = JSON.parse('{"__proto__":{"a":1,"b":2},"constructor":2}');
  const shared = shareStructure(value, next) as object;
  assert.equal(JSON.stringify(shared), JSON.stringify(next));
  assert.equal(Object.getPrototypeOf(shared), Object.prototype);
  freezeDeep(shared);
  assert(!Object.isFrozen(Object.prototype));
});

Deno.test("jsonArgs copies values as JSON does", () => {
  fc.assert(fc.property(fc.dictionary(fc.string(), json), (args) => {
    const copy = jsonArgs(args);
    assert.equal(JSON.stringify(copy), JSON.stringify(args));
    assert.notEqual(copy, args);
  }));
  assert.deepEqual(jsonArgs({ a: undefined, b: Object.create(null) }), { b: {} });
});

Deno.test("jsonArgs names the position of values that are not JSON", () => {
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  const cases: [unknown, RegExp][] = [
    [{ a: { b: [1, NaN] } }, /NaN as JSON, at args\.a\.b\[1\]/],
    [{ a: Infinity }, /Infinity/],
    [{ a: 1n }, /bigint/],
    [{ a: [undefined] }, /undefined as JSON, at args\.a\[0\]/],
    [{ a: new Array(2) }, /args\.a\[0\]/],
    [{ a: () => 1 }, /function/],
    [{ a: Symbol("x") }, /symbol/],
    [{ a: new Date(0) }, /Date/],
    [{ a: new Map() }, /Map/],
    [{ a: new Uint8Array(1) }, /Uint8Array/],
    [circle, /deeper than 64/],
    [[], /expected an object/],
    [null, /expected an object/],
    ["x", /expected an object/],
    [{ a: "x".repeat(16 * 1024 * 1024) }, /the limit is 16777216/],
  ];
  for (const [args, message] of cases) assert.throws(() => jsonArgs(args), message);
});

Deno.test("freezeDeep freezes everything in a value", () => {
  const value = { a: [{ b: 1 }], c: "text", d: null };
  freezeDeep(value);
  assert(Object.isFrozen(value) && Object.isFrozen(value.a) && Object.isFrozen(value.a[0]));
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level++) deep = [deep];
  freezeDeep(deep);
});
