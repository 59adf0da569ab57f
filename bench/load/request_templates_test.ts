import assert from "node:assert/strict";
import { failureOf, requestsOf } from "./request_templates.ts";

Deno.test("each request of a template contains the next number and a random key", () => {
  const next = requestsOf({
    method: "POST",
    path: "/rows/{key}",
    body: '{"number":{n},"again":{n}}',
    keys: ["a", "b"],
    expected: '"{key}",{n}',
  }, 1);
  const requests = Array.from({ length: 50 }, next);
  assert.equal(requests[7]?.body, '{"number":7,"again":7}');
  assert.deepEqual([...new Set(requests.map(({ path }) => path))].sort(), ["/rows/a", "/rows/b"]);
  for (const [n, { path, expected }] of requests.entries()) {
    assert.equal(expected, `"${path.slice("/rows/".length)}",${n}`);
  }
});

Deno.test("an unexpected status or body is a failure", () => {
  const request = { method: "GET", path: "/", expected: '"id":1' } as const;
  assert.equal(failureOf({ status: 200, body: '{"id":1}' }, request), null);
  assert.equal(failureOf({ status: 500, body: '{"id":1}' }, request), '500 {"id":1}');
  assert.equal(failureOf({ status: 200, body: '{"id":2}' }, request), '200 {"id":2}');
});
