/** Fields are reported as equal only if they are. */
import assert from "node:assert/strict";
import { hasFieldsInCommonPrefix } from "../../mod/engine/journal/row_applier.ts";

const received = (a: object, b: object, ...fields: string[]) =>
  hasFieldsInCommonPrefix(JSON.stringify(a), JSON.stringify(b), new Set(fields));

Deno.test("exactly the fields before the first difference are known to be equal", () => {
  const doc = {
    _id: "a",
    _creationTime: 1.5,
    n: 5,
    text: 'x "quoted\\" {[,',
    deep: { n: 1, list: [1, "]"] },
    last: 7,
  };
  assert.equal(received(doc, { ...doc, last: 8 }, "_id", "n", "text", "deep"), true);
  assert.equal(received(doc, { ...doc, last: 8 }, "_id", "last"), false);
  assert.equal(received(doc, { ...doc, last: 71 }, "last"), false, "one number may begin as another");
  assert.equal(received(doc, { ...doc, deep: { n: 2 } }, "deep"), false);
  assert.equal(received(doc, { ...doc, deep: { n: 2 } }, "text"), true);
  assert.equal(received(doc, { ...doc, text: 'x "quoted\\' }, "text"), false);
  assert.equal(
    received(doc, doc, "missing"),
    false,
    "a field that is missing may be further on in the other",
  );
  assert.equal(received({ deep: { n: 1 } }, { deep: { n: 1 } }, "n"), false);
  assert.equal(received({ "a:b": 1, "c": "\\" }, { "a:b": 1, "c": "\\" }, "a:b", "c"), true);
  assert.equal(received({ a: ["}", "{"], b: 1 }, { a: ["}", "{"], b: 2 }, "a"), true);
});

Deno.test("fields reported as equal are equal, for any two documents", () => {
  let state = 7;
  const pick = (end: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor(state / 2 ** 32 * end);
  };
  const value = (depth = 0): unknown => {
    const kinds = [1, 1.25, -3, true, null, "", "a", 'a"', "\\", "{", "]", ",", "a:b", "\u2028é"];
    if (depth < 2 && pick(4) === 0) return [value(depth + 1), value(depth + 1)];
    if (depth < 2 && pick(4) === 0) return { a: value(depth + 1), 'b"': value(depth + 1) };
    return kinds[pick(kinds.length)];
  };
  const names = ["a", "b", "_id", 'b"', "c\\"];
  let same = 0;
  for (let round = 0; round < 20_000; round++) {
    const doc = Object.fromEntries(names.slice(0, 1 + pick(names.length)).map((name) => [name, value()]));
    const changed = { ...doc, [names[pick(names.length)] ?? ""]: value() };
    const field = names[pick(3)] ?? "";
    if (!received(doc, changed, field)) continue;
    same++;
    assert.deepEqual(Reflect.get(doc, field), Reflect.get(changed, field), JSON.stringify([doc, changed]));
    assert.ok(field in doc && field in changed);
  }
  assert.ok(same > 1_000, `${same} were reported as equal`);
});
