/** Tokens while the client polls: the rules of the socket, signaled by status 401 (CL12). */
import assert from "node:assert/strict";
import type { FetchToken } from "../../mod/client/mod.ts";
import { type HttpCalls, type HttpRequest, invalidToken, success } from "./support/http_calls.ts";
import { makePollingTest, turns } from "./support/polling_client.ts";

/** Answers calls without a token or with an accepted one, and refuses other tokens. */
function accept(http: HttpCalls, accepted: Set<string | null>): void {
  const answer = ({ path, token }: HttpRequest) =>
    token === null || accepted.has(token) ? success(`${path} for ${token}`, { ts: 1 }) : invalidToken();
  for (const kind of ["query", "mutation", "action"]) http.answers.set(kind, answer);
}

/** A getter that records its requests and returns the results of a list, then the last one repeatedly. */
function getter(
  ...answers: (string | null | Promise<string>)[]
): { fetchToken: FetchToken; asked: boolean[] } {
  const asked: boolean[] = [];
  const fetchToken: FetchToken = async ({ forceRefresh }) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)] ?? null;
    asked.push(forceRefresh);
    return await answer;
  };
  return { fetchToken, asked };
}

Deno.test("polling waits for the token, uses it for every request and reports that it was accepted", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  accept(http, new Set(["a"]));
  const answer = Promise.withResolvers<string>();
  const [changes, shown]: [boolean[], unknown[]] = [[], []];
  client.subscribe("q", {}, (value) => shown.push(value));
  client.setAuth(getter(answer.promise).fetchToken, (isAuthenticated) => changes.push(isAuthenticated));
  const mutation = client.mutation("m", {});
  await test.block();
  assert.deepEqual(http.take(), []);
  answer.resolve("a");
  await turns();
  assert.deepEqual(http.take().slice(0, 2).map(({ kind, token }) => [kind, token]), [["query", "a"], [
    "mutation",
    "a",
  ]]);
  assert.deepEqual(shown, ["q for a"]);
  assert.deepEqual(changes, [true]);
  assert.equal(await mutation, "m for a");
});

Deno.test("CL12 a token refused over HTTP is renewed once by force, and the refused request is repeated", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  accept(http, new Set(["new"]));
  const { fetchToken, asked } = getter("old", "new");
  const changes: boolean[] = [];
  for (let n = 0; n < 10; n++) client.subscribe("q", { n }, () => {});
  client.setAuth(fetchToken, (isAuthenticated) => changes.push(isAuthenticated));
  const calls = [client.mutation("first", {}), client.mutation("second", {}), client.action("act", {})];
  await test.block();
  assert.deepEqual(await Promise.all(calls), ["first for new", "second for new", "act for new"]);
  assert.deepEqual(asked, [false, true]);
  assert.deepEqual(changes, [true]);
  const ran = http.requests.filter(({ kind, token }) => kind === "mutation" && token === "new");
  assert.deepEqual(ran.map(({ path }) => path), ["first", "second"]);
});

Deno.test("CL12 a session that ended while polling is renewed by force; if that fails, the client continues anonymously", async () => {
  using test = makePollingTest();
  const { client, http, clock } = test;
  const accepted = new Set(["a"]);
  accept(http, accepted);
  const { fetchToken, asked } = getter("a", "b");
  const [changes, shown]: [boolean[], unknown[]] = [[], []];
  client.subscribe("q", {}, (value) => shown.push(value));
  client.setAuth(fetchToken, (isAuthenticated) => changes.push(isAuthenticated));
  await test.block();
  accepted.clear();
  await clock.advance(3_750);
  await turns();
  assert.deepEqual(asked, [false, true]);
  assert.deepEqual(shown, ["q for a", "q for null"]);
  assert.deepEqual(changes, [true, false]);
});

Deno.test("after a sign-out or sign-in no result of the previous identity is returned", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  accept(http, new Set(["a", "b"]));
  const shown: unknown[] = [];
  client.subscribe("q", {}, (value) => shown.push(value));
  client.setAuth(getter("a").fetchToken);
  await test.block();
  const gate = Promise.withResolvers<void>();
  http.answers.set("query", ({ token }) => gate.promise.then(() => success(`late for ${token}`)));
  client.reconnectNow();
  await turns();
  client.clearAuth();
  accept(http, new Set(["a", "b"]));
  await turns();
  gate.resolve();
  client.setAuth(getter("b").fetchToken);
  await turns();
  assert.deepEqual(shown, ["q for a", "q for null", "q for b"]);
});

Deno.test("without queries the token is tried as well", async () => {
  using test = makePollingTest();
  const { client, http } = test;
  accept(http, new Set(["a"]));
  const changes: boolean[] = [];
  client.setAuth(getter("a").fetchToken, (isAuthenticated) => changes.push(isAuthenticated));
  await test.block();
  assert.deepEqual(http.take().map(({ path, token }) => [path, token]), [["_auth:account", "a"]]);
  assert.deepEqual(changes, [true]);
});
