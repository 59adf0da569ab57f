import assert from "node:assert/strict";
import { mock } from "node:test";
import type { Outcome } from "../../mod/functions/outcome.ts";
import { sharedQueryLimits } from "../../mod/sync/limits.ts";
import { sameOutcome } from "../../mod/sync/queries/shared_query.ts";

function success(value: unknown): Outcome {
  return { ok: true, value: JSON.stringify(value), logLines: [] };
}

const same = (a: Outcome, b: Outcome) => sameOutcome(a, b, { dev: false });

Deno.test("results are equal in any key order, and only then", () => {
  assert.ok(same(success({ a: 1, b: [{ c: 2, d: 3 }] }), success({ b: [{ d: 3, c: 2 }], a: 1 })));
  assert.ok(!same(success({ a: 1, b: 2 }), success({ a: 2, b: 1 })));
  assert.ok(!same(success([1, 2]), success([2, 1])));
  assert.ok(!same(success("ab"), success("ba")));
});

Deno.test("two results are compared once, however many sockets subscribe to them, and large ones only as text", () => {
  const [a, b] = [success({ x: 12, y: 21 }), success({ y: 21, x: 12 })];
  const parse = mock.method(JSON, "parse");
  try {
    for (let socket = 0; socket < 1000; socket++) assert.ok(same(a, b));
    assert.equal(parse.mock.callCount(), 2);
    const text = "x".repeat(sharedQueryLimits.diffedCharsMax);
    assert.ok(!same(success({ text, y: 1 }), success({ y: 1, text })));
    assert.equal(parse.mock.callCount(), 2);
  } finally {
    parse.mock.restore();
  }
});
