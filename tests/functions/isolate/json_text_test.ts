/** Valid JSON, and the texts of errors for other values. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { jsonText, NotJsonError } from "../../../mod/functions/isolate/runs/json_text.ts";

const cycle: Record<string, unknown> = {};
cycle["self"] = cycle;
class Point {}

const refused: readonly (readonly [value: unknown, message: RegExp])[] = [
  [NaN, /^It is NaN/],
  [{ a: { b: [1, Infinity] } }, /^It at a\.b\[1\] is Infinity/],
  [[undefined], /^It at \[0\] is undefined: use null/],
  [{ "odd key": 1n }, /^It at \["odd key"\] is a BigInt/],
  [{ when: new Date() }, /^It at when is a Date: use date\.getTime/],
  [new Map(), /^It is a Map/],
  [{ set: new Set() }, /is a Set/],
  [{ later: Promise.resolve() }, /^It at later is a promise: await it/],
  [new Uint8Array(1), /binary data/],
  [() => 1, /is a function/],
  [Symbol("x"), /is a symbol/],
  [new Point(), /instance of Point: use a plain object/],
  [cycle, /contains itself/],
];

Deno.test("values that are not JSON are refused with their path", () => {
  for (const [value, message] of refused) {
    assert.throws(() => jsonText(value, "It"), (error: unknown) => {
      assert.ok(error instanceof NotJsonError);
      assert.match(error.message, message);
      assert.ok(error.message.length < 500);
      return true;
    });
  }
});

Deno.test("JSON values are unchanged, undefined is null at the top and omitted in objects", () => {
  assert.equal(jsonText(undefined, "It"), "null");
  assert.equal(jsonText({ a: undefined, b: -0, c: "\ud800" }, "It"), '{"b":0,"c":"\\ud800"}');
  assert.equal(jsonText(Object.assign(Object.create(null), { a: 1 }), "It"), '{"a":1}');
  fc.assert(fc.property(fc.jsonValue(), (value) => {
    assert.equal(jsonText(value, "It"), JSON.stringify(value));
  }));
});

Deno.test("functions hidden as toJSON are refused rather than called", () => {
  let called = false;
  const toJSON = () => {
    called = true;
  };
  assert.throws(() => jsonText({ toJSON }, "It"), NotJsonError);
  assert.equal(called, false);
});

Deno.test("one object referred to more often than anyone can walk is refused in a moment", () => {
  let many: unknown = {};
  for (let level = 0; level < 60; level++) many = [many, many];
  assert.throws(() => jsonText(many, "It"), /does it hold the same object many times\?$/);
  assert.equal(jsonText([1, [2]], "It"), "[1,[2]]");
});

Deno.test("a value that a hidden toJSON removes is refused", () => {
  const hidden = Object.defineProperty({}, "toJSON", { value: () => undefined });
  assert.throws(() => jsonText(hidden, "It"), NotJsonError);
});
