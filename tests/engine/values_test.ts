/** Values of documents: rare ones are refused with the path and advice; tests/behaviour has the frequent ones. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { documentLimits } from "../../mod/limits.ts";
import { EngineError } from "../../mod/engine/mod.ts";
import { storableFields } from "../../mod/engine/documents/values.ts";
import { anyValue } from "./support.ts";

function store(fields: Record<string, unknown>, reservedNames = true): unknown {
  return storableFields(fields, { reservedNames });
}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { inner: value };
  return value;
}

const shared = Array.from({ length: 1_000 }, () => "x");
const wide = Array.from({ length: 1_000 }, () => shared);

const refused: [name: string, fields: Record<string, unknown>, message: RegExp][] = [
  ["a hole in an array", { list: [1, , 3] }, /field "list\[1\]".*undefined/],
  ["NaN", { a: { b: [0, NaN] } }, /field "a\.b\[1\]".*NaN is not a JSON number/],
  ["bytes", { a: new Uint8Array(2) }, /field "a".*binary data/],
  ["too deep nesting", { a: nested(documentLimits.valueDepthMax) }, /deeper than 64 levels/],
  ["a name that begins with $", { $where: 1 }, /field "\$where".*begin with "_" or "\$"/],
  ["a long name", { ["n".repeat(1025)]: 1 }, /has 1025 characters and the limit is 1024/],
  ["one array shared a million times", { a: wide, b: wide }, /longer than 1048576 characters/],
];

for (const [name, fields, message] of refused) {
  Deno.test(`storing ${name} is refused, with the path and advice`, () => {
    assert.throws(() => store(fields), (error) => {
      assert.ok(error instanceof EngineError);
      assert.equal(error.code, "not_storable");
      assert.match(error.message, message);
      return true;
    });
  });
}

Deno.test("any JSON value is stored unchanged, as a copy", () => {
  fc.assert(fc.property(anyValue, (value) => {
    const copy = store({ value }) as { value: unknown };
    assert.deepEqual(JSON.parse(JSON.stringify(copy)), JSON.parse(JSON.stringify({ value })));
    if (typeof value === "object" && value !== null) assert.notEqual(copy.value, value);
  }));
});

Deno.test("undefined fields are omitted and -0 becomes 0", () => {
  const copy = store({ a: undefined, b: -0, c: { d: undefined } }) as { b: number };
  assert.deepEqual(copy, { b: 0, c: {} });
  assert.ok(Object.is(copy.b, 0));
});

Deno.test("a field named __proto__ is an ordinary field", () => {
  const fields = JSON.parse('{"a":{"__proto__":{"x":1}}}');
  assert.equal(JSON.stringify(store(fields)), '{"a":{"__proto__":{"x":1}}}');
});

Deno.test("system tables may use names that start with _", () => {
  assert.deepEqual(store({ _internal: 1 }, false), { _internal: 1 });
});

Deno.test("nesting up to the limit is stored", () => {
  assert.doesNotThrow(() => store({ a: nested(documentLimits.valueDepthMax - 1) }));
});

Deno.test("an endless value of getters is refused as too deep", () => {
  const endless = (): unknown => ({
    get inner() {
      return endless();
    },
  });
  assert.throws(() => store({ a: endless() }), /nested deeper than 64 levels/);
});
