/** One-shot calls over HTTP: shapes, statuses, identities. */
import assert from "node:assert/strict";
import { Hono } from "hono";
import { ServiceError } from "../../mod/errors.ts";
import { failed, type Outcome, outcomeUnknown, unavailable } from "../../mod/functions/outcome.ts";
import { type HttpCalls, httpCalls } from "../../mod/sync/http_calls.ts";
import { World } from "./support/world.ts";

interface Scenario {
  readonly name: string;
  readonly path: string;
  readonly body?: unknown;
  readonly raw?: string;
  readonly method?: string;
  readonly authorization?: string;
  readonly dev?: boolean;
  readonly status: number;
  readonly answer: unknown;
}

const invalidToken = (reason: string) => ({
  status: "error",
  errorMessage: `The access token is not valid${reason}`,
  errorData: { code: "invalid_token", data: null },
});
const failure = (errorMessage: string, errorData: unknown = null) => ({
  status: "error",
  errorMessage,
  errorData,
  logLines: [],
});

const scenarios: Scenario[] = [
  {
    name: "HC1 a query answers with value and logLines",
    path: "/api/query",
    body: { path: "get", args: { key: "a" } },
    status: 200,
    answer: { status: "success", value: 1, logLines: [] },
  },
  {
    name: "HC1 unknown query parameters and headers do not matter",
    path: "/api/query?debug=1&path=sum",
    body: { path: "get", args: { key: "a" }, extra: true },
    status: 200,
    answer: { status: "success", value: 1, logLines: [] },
  },
  {
    name: "HC2 a mutation answers with its ts too",
    path: "/api/mutation",
    body: { path: "add", args: { key: "a" } },
    status: 200,
    answer: { status: "success", value: 2, ts: 2, logLines: [] },
  },
  {
    name: "HC1 an action answers with value and logLines",
    path: "/api/action",
    body: { path: "double", args: { n: 4 } },
    status: 200,
    answer: { status: "success", value: 8, logLines: [] },
  },
  {
    name: "HC3 without the header the call is anonymous",
    path: "/api/query",
    body: { path: "me", args: {} },
    status: 200,
    answer: { status: "success", value: { principal: null, value: 1 }, logLines: [] },
  },
  {
    name: "HC3 with a token the call is the token's",
    path: "/api/query",
    body: { path: "me", args: {} },
    authorization: "Bearer u1.s1",
    status: 200,
    answer: { status: "success", value: { principal: "user:u1", value: 1 }, logLines: [] },
  },
  {
    name: "HC4 a token that is not valid is refused",
    path: "/api/query",
    body: { path: "me", args: {} },
    authorization: "Bearer rubbish",
    status: 401,
    answer: invalidToken(": malformed access token"),
  },
  {
    name: "HC4 the token of an ended session is refused",
    path: "/api/mutation",
    body: { path: "who", args: {} },
    authorization: "Bearer u9.s9",
    status: 401,
    answer: invalidToken(": session has ended"),
  },
  {
    name: "HC4 a header that is no bearer token is refused, not anonymous",
    path: "/api/action",
    body: { path: "double", args: { n: 1 } },
    authorization: "Basic dTpw",
    status: 401,
    answer: invalidToken(""),
  },
  {
    name: "HC4 an empty header is refused, not anonymous",
    path: "/api/query",
    body: { path: "me", args: {} },
    authorization: "",
    status: 401,
    answer: invalidToken(""),
  },
  {
    name: "HC5 a user error is 400 with code and data",
    path: "/api/mutation",
    body: { path: "fail", args: {} },
    status: 400,
    answer: failure("Refused", { code: "refused", data: [1] }),
  },
  {
    name: "HC5 an unknown function is 404",
    path: "/api/query",
    body: { path: "no:such", args: {} },
    status: 404,
    answer: failure("Unknown function no:such"),
  },
  {
    name: "HC5 anything else is 500 without its text",
    path: "/api/mutation",
    body: { path: "bug", args: {} },
    status: 500,
    answer: failure("Server Error"),
  },
  {
    name: "HC5 and with its text in development",
    path: "/api/mutation",
    body: { path: "bug", args: {} },
    dev: true,
    status: 500,
    answer: failure("secret detail"),
  },
  {
    name: "HC5 a body that is not JSON is 400",
    path: "/api/query",
    raw: "{",
    status: 400,
    answer: failure(
      "The request body is not JSON: Expected property name or '}' in JSON at position 1 (line 1 column 2)",
    ),
  },
  {
    name: "HC5 a body that is no call is 400",
    path: "/api/query",
    body: { path: 5, args: {} },
    status: 400,
    answer: failure("The request is not a call: path: Invalid input: expected string, received number"),
  },
  {
    name: "HC5 arguments that are no object are 400",
    path: "/api/query",
    body: { path: "get", args: [] },
    status: 400,
    answer: failure("The request is not a call: args: Invalid input: expected object"),
  },
  {
    name: "HC5 numbers out of range are 400",
    path: "/api/mutation",
    raw: '{"path":"set","args":{"value":1e400}}',
    status: 400,
    answer: failure("args.value: number out of range"),
  },
  {
    name: "HC9 other methods are refused",
    path: "/api/query",
    method: "GET",
    status: 405,
    answer: {
      status: "error",
      errorMessage: "Method not allowed",
      errorData: { code: "method_not_allowed", data: null },
    },
  },
  {
    name: "HC9 a body over the limit is refused",
    path: "/api/query",
    raw: `{"path":"get","args":{"key":"${"x".repeat(17 * 1024 * 1024)}"}}`,
    status: 413,
    answer: {
      status: "error",
      errorMessage: "The request body is too large",
      errorData: { code: "body_too_large", data: null },
    },
  },
  {
    name: "SG10 log lines leave the server with --dev only",
    path: "/api/query",
    body: { path: "logging", args: {} },
    dev: true,
    status: 200,
    answer: { status: "success", value: 1, logLines: ["[INFO] looked"] },
  },
];

interface Setup {
  readonly app: Hono;
  readonly calls: HttpCalls;
  readonly world: World;
  readonly logged: string[];
}

function appOf(dev: boolean): Setup {
  const logged: string[] = [];
  const world = new World({ dev, actions: { double: ({ n }) => Number(n) * 2 } });
  world.authenticator.ended.add("s9");
  world.host.write({ a: 1 });
  const app = new Hono();
  const calls = httpCalls({
    hub: world.hub,
    host: world.host,
    authenticator: world.authenticator,
    dev,
    headers,
    log: (level, message) => logged.push(`${level} ${message}`),
  });
  // As the server's router handles errors of the service.
  app.onError(errorAnswer);
  app.route("/", calls.routes);
  return { app, calls, world, logged };
}

/** Handles requests like the server: calls first, then the router. */
async function ask({ app, calls }: Setup, path: string, init: RequestInit): Promise<Response> {
  const request = new Request(`http://localhost${path}`, init);
  return await (calls.handleDirectly(request) ?? app.request(request));
}

const origin = "https://app.example.com";

/** Every answer to a call of a page has them. */
const headers = { "X-Common": "yes" };

function errorAnswer(error: unknown): Response {
  if (!(error instanceof ServiceError)) throw error;
  return Response.json(
    { status: "error", errorMessage: error.message, errorData: { code: error.code, data: null } },
    { status: error.status },
  );
}

for (
  const { name, path, body, raw, method = "POST", authorization, dev = false, status, answer } of scenarios
) {
  Deno.test(name, async () => {
    const request = new Request(`http://localhost${path}`, {
      method,
      headers: {
        ...{ "Content-Type": "application/json", origin },
        ...(authorization !== undefined && { authorization }),
      },
      ...(method === "POST" && { body: raw ?? JSON.stringify(body) }),
    });
    const { app, calls } = appOf(dev);
    const atOnce = await calls.handleDirectly(request);
    // All other requests are left to the router.
    assert.equal(atOnce === null, method !== "POST");
    const response = atOnce ?? await app.request(request);
    assert.deepEqual([response.status, await response.json()], [status, answer]);
    assert.match(response.headers.get("content-type") ?? "", /^application\/json/);
    // Errors thrown by the router get their headers there.
    assert.equal(response.headers.get("x-common"), atOnce === null ? null : "yes");
  });
}

Deno.test("HC1 an unexpected error is logged, and answered without its text", async () => {
  const { calls, world, logged } = appOf(false);
  world.host.act = () => Promise.reject(new Error("the disk is on fire"));
  const body = JSON.stringify({ path: "double", args: { n: 4 } });
  const request = new Request("http://localhost/api/action", { method: "POST", body });
  const response = await calls.handleDirectly(request) ?? assert.fail();
  assert.equal(response.status, 500);
  assert.equal(response.headers.get("x-common"), "yes");
  assert.doesNotMatch(await response.text(), /fire/);
  assert.deepEqual(logged, ["error A request failed"]);
});

Deno.test("HC1 answers to programs have no headers for browsers", async () => {
  const { calls } = appOf(false);
  const body = JSON.stringify({ path: "double", args: { n: 4 } });
  const headersOf = async (headers: HeadersInit) => {
    const request = new Request("http://localhost/api/action", { method: "POST", body, headers });
    const response = await calls.handleDirectly(request) ?? assert.fail();
    await response.body?.cancel();
    return [...response.headers];
  };
  assert.deepEqual(await headersOf({}), [["content-type", "application/json"]]);
  assert.deepEqual(await headersOf({ origin }), [["content-type", "application/json"], ["x-common", "yes"]]);
});

Deno.test("HC1 only calls are answered without a router", () => {
  const { calls } = appOf(false);
  for (
    const path of [
      "/",
      "/api",
      "/api/quer",
      "/api/query/",
      "/api/query/x",
      "/x/api/query",
      "/api/health",
      "/api/auth/signin",
    ]
  ) {
    assert.equal(calls.handleDirectly(new Request(`http://localhost${path}`, { method: "POST" })), null);
  }
  assert.equal(calls.handleDirectly(new Request("http://localhost/api/query")), null);
});

Deno.test("HC1 a path with a trailing slash is not a call with any method", async () => {
  for (const call of ["query", "mutation", "action"]) {
    for (const method of ["POST", "GET"]) {
      const response = await appOf(false).app.request(`http://localhost/api/${call}/`, { method });
      assert.equal(response.status, 404, `${method} /api/${call}/`);
    }
    const response = await appOf(false).app.request(`http://localhost/api/${call}`, { method: "PUT" });
    assert.equal(response.status, 405);
  }
});

Deno.test("HC1 a body is parsed as JSON with any content type, with or without a byte order mark", async () => {
  const setup = appOf(false);
  const call = JSON.stringify({ path: "get", args: { key: "a" } });
  for (const type of [null, "application/x-www-form-urlencoded", "text/plain"]) {
    const response = await ask(setup, "/api/query", {
      method: "POST",
      headers: type === null ? {} : { "Content-Type": type },
      body: new TextEncoder().encode(`\ufeff${call}`),
    });
    assert.deepEqual([response.status, (await response.json()).value], [200, 1]);
  }
});

Deno.test("HC2 HTTP mutations are not de-duplicated", async () => {
  const setup = appOf(false);
  const call = () =>
    ask(setup, "/api/mutation", {
      method: "POST",
      body: JSON.stringify({ path: "add", args: { key: "a" } }),
    });
  await (await call()).text();
  await (await call()).text();
  assert.equal(setup.world.host.mutationRuns, 2);
});

Deno.test("HC12 a mutation that names its request is recognised, and runs once", async () => {
  const setup = appOf(false);
  const session = crypto.randomUUID();
  const call = async (name: string) => {
    const headers = { "Syncline-Request": name };
    const body = JSON.stringify({ path: "add", args: { key: "a" } });
    const response = await ask(setup, "/api/mutation", { method: "POST", headers, body });
    const reported = response.headers.get("Syncline-Request");
    return { ...await response.json(), status: response.status, reported };
  };
  const first = await call(`${session} 0`);
  assert.equal(first.reported, "recognised");
  assert.deepEqual(await call(`${session} 0`), first);
  assert.equal(setup.world.host.mutationRuns, 1);
  const second = await call(`${session} 1`);
  assert.equal(second.ts, first.ts + 1);
  await call(`${crypto.randomUUID()} 0`);
  assert.equal(setup.world.host.mutationRuns, 3);
  const wrong = ["", session, "0", `${session} x`, `${session} 1.5`, `x 1`, `${session} 99999999999999999`];
  for (const name of wrong) {
    const { status, errorMessage, reported } = await call(name);
    assert.deepEqual([status, /Syncline-Request/.test(errorMessage), reported], [400, true, null], name);
  }
  assert.equal(setup.world.host.mutationRuns, 3);
});

Deno.test("HC6 a query sees the caller's earlier mutations", async () => {
  const setup = appOf(false);
  const post = async (path: string, body: unknown) =>
    await (await ask(setup, path, { method: "POST", body: JSON.stringify(body) })).json();
  for (let i = 2; i < 10; i++) {
    await post("/api/mutation", { path: "add", args: { key: "a" } });
    assert.equal((await post("/api/query", { path: "get", args: { key: "a" } })).value, i);
  }
});

Deno.test("HC10 a rejected call gets the code overloaded and a Retry-After header", async () => {
  const setup = appOf(false);
  setup.world.host.mutate = () =>
    Promise.resolve({ outcome: failed("internal", "full", { retryable: true }), ts: 1, replayed: false });
  const body = JSON.stringify({ path: "add", args: { key: "a" } });
  const answer = await ask(setup, "/api/mutation", { method: "POST", body });
  assert.equal(answer.status, 503);
  assert.equal((await answer.json()).errorData.code, "overloaded");
  assert.equal(answer.headers.get("retry-after"), "1");
});

Deno.test("HC14 an unknown outcome is 503 with its own code, and so is a named mutation that could not be run", async () => {
  const setup = appOf(false);
  const body = JSON.stringify({ path: "add", args: { key: "a" } });
  const codeOf = async (outcome: Outcome, headers: Record<string, string> = {}) => {
    setup.world.host.mutate = () => Promise.resolve({ outcome, ts: 1, replayed: false });
    const answer = await ask(setup, "/api/mutation", { method: "POST", headers, body });
    assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"]);
    return (await answer.json()).errorData.code;
  };
  const named = { "Syncline-Request": `${crypto.randomUUID()} 0` };
  assert.equal(await codeOf(outcomeUnknown("It was lost")), "outcome_unknown");
  assert.equal(await codeOf(outcomeUnknown("It was lost"), named), "outcome_unknown");
  assert.equal(await codeOf(unavailable("There is no leader")), "unavailable");
  assert.equal(await codeOf(unavailable("There is no leader"), named), "outcome_unknown");
});
