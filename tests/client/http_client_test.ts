/** Calls over HTTP: requests, and the handling of all kinds of responses. */
import assert from "node:assert/strict";
import { FunctionError, SynclineHttpClient } from "../../mod/client/mod.ts";

interface Seen {
  readonly url: string;
  readonly headers: Headers;
  readonly body: unknown;
}

function server(status: number, answer: unknown): { fetch: typeof fetch; seen: Seen[] } {
  const seen: Seen[] = [];
  const answering: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    return request.text().then((text) => {
      seen.push({ url: request.url, headers: request.headers, body: JSON.parse(text) });
      return new Response(typeof answer === "string" ? answer : JSON.stringify(answer), { status });
    });
  };
  return { fetch: answering, seen };
}

Deno.test("each kind of call uses its own path with path and args", async () => {
  const { fetch, seen } = server(200, { status: "success", value: { n: 1 }, logLines: [] });
  const client = new SynclineHttpClient("https://host.test/app/", { fetch });
  assert.deepEqual(await client.query("a:b", { x: 1 }), { n: 1 });
  await client.mutation("a:c", {});
  await client.action("d", { y: undefined });
  assert.deepEqual(seen.map(({ url, body }) => [url, body]), [
    ["https://host.test/app/api/query", { path: "a:b", args: { x: 1 } }],
    ["https://host.test/app/api/mutation", { path: "a:c", args: {} }],
    ["https://host.test/app/api/action", { path: "d", args: {} }],
  ]);
  assert.equal(seen[0]?.headers.get("content-type"), "application/json");
  assert.equal(seen[0]?.headers.get("authorization"), null);
});

Deno.test("the token is sent as Bearer, and a getter is called for each call", async () => {
  const { fetch, seen } = server(200, { status: "success", value: null, logLines: [] });
  const client = new SynclineHttpClient("http://host.test", { fetch, token: "one" });
  await client.query("a", {});
  let calls = 0;
  client.setToken(() => Promise.resolve(++calls === 1 ? "two" : null));
  await client.query("a", {});
  await client.query("a", {});
  client.setToken(undefined);
  await client.query("a", {});
  assert.deepEqual(seen.map(({ headers }) => headers.get("authorization")), [
    "Bearer one",
    "Bearer two",
    null,
    null,
  ]);
});

Deno.test("errors carry message, code, data and log lines; an invalid response carries the status", async () => {
  const cases: [number, unknown, Partial<FunctionError>][] = [
    [
      400,
      { status: "error", errorMessage: "No", errorData: { code: "c", data: 5 }, logLines: ["[INFO] x"] },
      {
        message: "No",
        code: "c",
        data: 5,
        logLines: ["[INFO] x"],
      },
    ],
    [500, { status: "error", errorMessage: "Server Error", errorData: null, logLines: [] }, {
      message: "Server Error",
      code: null,
      data: null,
    }],
    [401, { status: "error", errorMessage: "Bad", errorData: { code: "invalid_token", data: null } }, {
      code: "invalid_token",
      logLines: [],
    }],
    [502, "<html>Bad gateway</html>", { message: "The server responded with status 502", code: null }],
    [200, "null", { message: "The server responded with status 200" }],
  ];
  for (const [status, answer, expected] of cases) {
    const { fetch } = server(status, answer);
    const error = await new SynclineHttpClient("http://host.test", { fetch }).mutation("m:x", {}).catch((e) =>
      e
    );
    assert(error instanceof FunctionError);
    assert.equal(error.udfPath, "m:x");
    for (const [key, value] of Object.entries(expected)) {
      assert.deepEqual(error[key as keyof FunctionError], value);
    }
  }
});

Deno.test("an address that is no http address is refused", async () => {
  const { fetch } = server(200, {});
  await assert.rejects(new SynclineHttpClient("file:///x", { fetch }).query("a", {}), TypeError);
});
