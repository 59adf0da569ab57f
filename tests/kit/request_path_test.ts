import assert from "node:assert/strict";
import { normalPath, normalRequest, requestPath, requestSearch } from "../../mod/kit/http_request.ts";

const NORMAL: readonly (readonly [given: string, path: string | null])[] = [
  ["/api/query", "/api/query"],
  ["/", "/"],
  ["/%61pi/query", "/api/query"],
  ["/api/%71uery", "/api/query"],
  ["/%2e/api/query", "/api/query"],
  ["/x/%2E%2e/api/query", "/api/query"],
  ["/x/../api/query", "/api/query"],
  ["/\\api\\query", "//api/query"],
  ["/.\\api", "/api"],
  ["//api/query", "//api/query"],
  ["/a%7eb%2d", "/a~b-"],
  ["/caf%c3%a9", "/caf%C3%A9"],
  ["/café", "/caf%C3%A9"],
  ["/a b", "/a%20b"],
  ["/a%2541", "/a%2541"],
  ["/a%25", "/a%25"],
  ["/.well-known/x", "/.well-known/x"],
  ["/..x/...", "/..x/..."],
  ["/%", null],
  ["/%4", null],
  ["/%zz", null],
  ["/%ff", null],
  ["/%c3", null],
  ["/files/a%2fb%5c", "/files/a%2Fb%5C"],
  ["/api%2fquery", "/api%2Fquery"],
  ["/x/..%2fapi/query", "/x/..%2Fapi/query"],
  ["/x/%2e%2e%2f%2e%2e/api/query", "/x/..%2F../api/query"],
  ["/{id}", "/%7Bid%7D"],
  ["/%7bid%7d", "/%7Bid%7D"],
  ["/a|b", "/a%7Cb"],
  ["/a%7cb", "/a%7Cb"],
  ['/a[b]^`<>"', "/a%5Bb%5D%5E%60%3C%3E%22"],
  ["/a!$&'()*+,;=:@b", "/a!$&'()*+,;=:@b"],
  ["/api%00", null],
  ["/api%0d%0a", null],
  ["/api%7f", null],
];

Deno.test("HP1 a path has one normal form, which is stable", () => {
  for (const [given, path] of NORMAL) {
    assert.equal(normalPath(given), path, given);
    if (path !== null) assert.equal(normalPath(path), path, path);
  }
});

Deno.test("HP1 a request keeps its method, its query and its host when its path is normalised", async () => {
  const given = new Request("http://Host.example:80/%61pi/query?a=%2f#x", {
    method: "POST",
    headers: { "x-mine": "1" },
    body: "text",
  });
  const normal = normalRequest(given);
  assert.ok(normal !== null);
  assert.deepEqual([requestPath(normal), requestSearch(normal)], ["/api/query", "?a=%2f"]);
  assert.deepEqual([normal.method, normal.headers.get("x-mine"), await normal.text()], ["POST", "1", "text"]);
  const plain = new Request("http://host.example/api/query?a=%zz");
  assert.equal(normalRequest(plain), plain, "a query is nobody's path");
  assert.equal(normalRequest(new Request("http://host.example/%zz")), null);
});
