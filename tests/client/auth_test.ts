/** Tokens: sign-in over the socket, renewal, refusal, and invalid getters (CL12). */
import assert from "node:assert/strict";
import { tokenLife } from "../../mod/client/accounts/access_token.ts";
import type { FetchToken } from "../../mod/client/mod.ts";
import type { ClientMessage } from "../../mod/protocol/client_messages.ts";
import { type FakeClock, settle } from "./support/fake_clock.ts";
import type { FakeSocket } from "./support/fake_socket.ts";
import { makeTestClient, transition, updated } from "./support/test_client.ts";

/** A token with a lifetime in seconds, issued now. */
function jwt(clock: FakeClock, { life = 900, name = "a" } = {}): string {
  const iat = Math.floor(clock.now() / 1000);
  const payload = btoa(JSON.stringify({ iat, exp: iat + life, name })).replaceAll("=", "");
  return `e30.${payload}.sig`;
}

/** A getter that records its requests and returns the results of a list, then the last one repeatedly. */
function getter(...answers: (string | null | Error)[]): { fetchToken: FetchToken; asked: boolean[] } {
  const asked: boolean[] = [];
  const fetchToken: FetchToken = ({ forceRefresh }) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)];
    asked.push(forceRefresh);
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer ?? null);
  };
  return { fetchToken, asked };
}

function authenticates(socket: FakeSocket): ClientMessage[] {
  return socket.sent.filter(({ type }) => type === "Authenticate");
}

function types(messages: readonly ClientMessage[]): string[] {
  return messages.map(({ type }) => type);
}

Deno.test("CL1 the handshake waits for the token and sends Authenticate before queries and calls", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const answer = Promise.withResolvers<string>();
  const changes: boolean[] = [];
  client.subscribe("q", {}, () => {});
  client.mutation("m", {}).catch(() => {});
  client.setAuth(() => answer.promise, (isAuthenticated) => changes.push(isAuthenticated));
  const socket = await test.open();
  assert.deepEqual(types(socket.take()), ["Connect"]);
  const token = jwt(clock);
  answer.resolve(token);
  await settle();
  const sent = socket.take();
  assert.deepEqual(sent[0], { type: "Authenticate", baseVersion: 0, token });
  assert.deepEqual(types(sent), ["Authenticate", "ModifyQuerySet", "Mutation"]);
  assert.deepEqual(changes, [], "the server has not accepted it yet");
  socket.receive(transition([[0, 0, 0], [0, 1, 3]]));
  assert.deepEqual(changes, [true]);
});

Deno.test("setAuth and clearAuth on an open socket send Authenticate with rising versions", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const socket = await test.open();
  const changes: boolean[] = [];
  const token = jwt(clock);
  client.setAuth(getter(token).fetchToken, (isAuthenticated) => changes.push(isAuthenticated));
  await settle();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  client.clearAuth();
  assert.deepEqual(authenticates(socket), [
    { type: "Authenticate", baseVersion: 0, token },
    { type: "Authenticate", baseVersion: 1, token: null },
  ]);
  assert.deepEqual(changes, [true, false]);
  assert.equal(clock.pending, 1, "only the connection's own timer is left");
});

Deno.test("calls and queries after setAuth wait for its token, those before do not", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const socket = await test.open();
  socket.take();
  client.mutation("before", {}).catch(() => {});
  const answer = Promise.withResolvers<string>();
  client.setAuth(() => answer.promise);
  client.mutation("after", {}).catch(() => {});
  client.subscribe("q", {}, () => {});
  await settle();
  assert.deepEqual(types(socket.take()), ["Mutation"]);
  answer.resolve(jwt(clock));
  await settle();
  assert.deepEqual(types(socket.take()), ["Authenticate", "ModifyQuerySet", "Mutation"]);
});

Deno.test("CL12 a token is renewed 30 s before it expires, with forceRefresh, without a new socket", async () => {
  using test = makeTestClient();
  const { client, clock, sockets } = test;
  const socket = await test.open();
  const first = jwt(clock, { name: "first" });
  const second = jwt(clock, { name: "second", life: 1770 });
  const { fetchToken, asked } = getter(first, second);
  client.setAuth(fetchToken);
  await settle();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  for (let ping = 0; ping < 58; ping++) {
    await clock.advance(15_000);
    socket.receive({ type: "Ping" });
  }
  assert.deepEqual(asked, [false, true], "870 s have passed");
  await settle();
  assert.deepEqual(authenticates(socket).map((message) => message.type === "Authenticate" && message.token), [
    first,
    second,
  ]);
  assert.equal(sockets.all.length, 1);
});

Deno.test("CL12 an old token is renewed 30 s before it expires, and a short-lived one at half its lifetime", async () => {
  for (const [age, life, renewedAfter] of [[867, 900, 3], [0, 40, 20], [890, 900, 1]] as const) {
    using test = makeTestClient();
    const { client, clock } = test;
    await test.open();
    const iat = Math.floor(clock.now() / 1000) - age;
    const claims = { iat, exp: iat + life };
    const payload = btoa(JSON.stringify(claims)).replaceAll("=", "");
    const { fetchToken, asked } = getter(`h.${payload}.s`, jwt(clock, { name: "renewed" }));
    client.setAuth(fetchToken);
    await settle();
    await clock.advance(renewedAfter * 1000 - 500);
    assert.deepEqual(asked, [false], `${life} s, made ${age} s ago`);
    await clock.advance(1500);
    assert.deepEqual(asked, [false, true], `${life} s, made ${age} s ago`);
  }
});

Deno.test("CL12 a renewed token that expires soon, as with a fast clock, is not renewed each second", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  await test.open();
  const late = (name: string) => {
    const iat = Math.floor(clock.now() / 1000) - 880;
    return `h.${btoa(JSON.stringify({ iat, exp: iat + 900, name })).replaceAll("=", "")}.s`;
  };
  const { fetchToken, asked } = getter(late("first"), late("second"), late("third"));
  client.setAuth(fetchToken);
  await settle();
  await clock.advance(1_000);
  assert.deepEqual(asked, [false, true]);
  await clock.advance(8_000);
  assert.deepEqual(asked, [false, true], "19 s are left: it is renewed when half of them are");
  await clock.advance(4_000);
  assert.deepEqual(asked, [false, true, true]);
});

Deno.test("CL12 a token refused when it was new is renewed once by force, then the client continues without one", async () => {
  using test = makeTestClient();
  const { client, clock, sockets } = test;
  const changes: boolean[] = [];
  const seen: unknown[] = [];
  const { fetchToken, asked } = getter(
    jwt(clock, { name: "1" }),
    jwt(clock, { name: "2" }),
    jwt(clock, { name: "3" }),
  );
  client.subscribe("q", {}, (value) => seen.push(value));
  client.setAuth(fetchToken, (isAuthenticated) => changes.push(isAuthenticated));
  for (let attempt = 0; attempt < 2; attempt++) {
    const socket = await test.open();
    assert.equal(authenticates(socket).length, 1);
    socket.receive({ type: "AuthError", error: "invalid access token signature" });
    assert(socket.dropped);
    await clock.advance(1000);
  }
  assert.deepEqual(asked, [false, true]);
  const anonymous = await test.open();
  assert.deepEqual(types(anonymous.take()), ["Connect", "ModifyQuerySet"]);
  anonymous.receive(transition([[0, 0, 0], [1, 0, 1]], [updated(0, "public")]));
  assert.deepEqual(seen, ["public"]);
  assert.deepEqual(changes, [false]);
  await clock.advance(10_000);
  assert.deepEqual(asked, [false, true], "the getter is not asked again before the next setAuth");
  assert.equal(sockets.all.length, 3);
});

Deno.test("CL12 a session that ends is renewed by force, also when the token had been renewed before", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const changes: boolean[] = [];
  const { fetchToken, asked } = getter(jwt(clock, { name: "1" }), jwt(clock, { name: "2" }), null);
  client.setAuth(fetchToken, (isAuthenticated) => changes.push(isAuthenticated));
  for (let round = 0; round < 2; round++) {
    const socket = await test.open();
    socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
    socket.receive({ type: "AuthError", error: "session has ended" });
    await clock.advance(1000);
  }
  const anonymous = await test.open();
  assert.deepEqual(authenticates(anonymous), []);
  assert.deepEqual(asked, [false, true, true]);
  assert.deepEqual(changes, [true, false]);
});

Deno.test("a session that ended while the client was away is renewed by force once", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const { fetchToken, asked } = getter(
    jwt(clock, { life: 60 }),
    jwt(clock, { name: "2" }),
    jwt(clock, { name: "3" }),
  );
  const first = await test.open();
  client.setAuth(fetchToken);
  await settle();
  first.receive(transition([[0, 0, 0], [0, 1, 1]]));
  await clock.advance(29_000);
  first.receive({ type: "Ping" });
  await clock.advance(2000);
  first.receive(transition([[0, 1, 1], [0, 2, 1]]));
  first.closeWith(1006);
  await clock.advance(1000);
  const second = await test.open();
  second.receive({ type: "AuthError", error: "session has ended" });
  await settle();
  assert.deepEqual(asked, [false, true, true], "the token was accepted once, so a new one may be");
});

Deno.test("an AuthError for the old token keeps the new one", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const fresh = jwt(clock, { name: "fresh" });
  const { fetchToken, asked } = getter(jwt(clock, { life: 60 }), fresh);
  const socket = await test.open();
  client.setAuth(fetchToken);
  await settle();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  await clock.advance(20_000);
  socket.receive({ type: "Ping" });
  await clock.advance(11_000);
  assert.equal(authenticates(socket).length, 2, "the new token is on its way");
  socket.receive({ type: "AuthError", error: "access token expired" });
  await clock.advance(1000);
  const next = await test.open();
  assert.deepEqual(authenticates(next), [{ type: "Authenticate", baseVersion: 0, token: fresh }]);
  assert.deepEqual(asked, [false, true]);
});

Deno.test("after a getter throws, the client is anonymous and calls it again with growing delays", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const changes: boolean[] = [];
  const token = jwt(clock);
  const { fetchToken, asked } = getter(
    new Error("offline"),
    new Error("offline"),
    new Error("offline"),
    token,
  );
  client.setAuth(fetchToken, (isAuthenticated) => changes.push(isAuthenticated));
  const socket = await test.open();
  assert.deepEqual(types(socket.take()), ["Connect"], "anonymous is what a new socket is");
  assert.deepEqual(changes, [false]);
  await clock.advance(999);
  assert.equal(asked.length, 1);
  await clock.advance(1);
  assert.equal(asked.length, 2);
  await clock.advance(2000);
  assert.equal(asked.length, 3);
  await clock.advance(4000);
  assert.deepEqual(authenticates(socket), [{ type: "Authenticate", baseVersion: 0, token }]);
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  assert.deepEqual(changes, [false, true]);
});

Deno.test("a getter that hangs is skipped after 15 s, and its late result is used", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const answer = Promise.withResolvers<string>();
  let calls = 0;
  client.subscribe("q", {}, () => {});
  client.setAuth(() => ++calls === 1 ? answer.promise : new Promise(() => {}));
  const socket = await test.open();
  await clock.advance(14_999);
  assert.deepEqual(types(socket.take()), ["Connect"]);
  await clock.advance(1);
  assert.deepEqual(types(socket.take()), ["ModifyQuerySet"]);
  const token = jwt(clock);
  answer.resolve(token);
  await settle();
  assert.deepEqual(authenticates(socket), [{ type: "Authenticate", baseVersion: 0, token }]);
});

Deno.test("a getter that repeats a refused or expiring token is not called in a loop", async () => {
  using test = makeTestClient();
  const { client, clock, sockets } = test;
  const { fetchToken, asked } = getter(jwt(clock, { life: 40 }));
  client.setAuth(fetchToken);
  const socket = await test.open();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  await clock.advance(20_000);
  socket.receive({ type: "Ping" });
  await clock.advance(19_000);
  assert(asked.length >= 3 && asked.length <= 7, `asked ${asked.length} times`);
  socket.receive({ type: "AuthError", error: "access token expired" });
  await clock.advance(1000);
  const anonymous = await test.open();
  await clock.advance(10_000);
  assert.deepEqual(authenticates(anonymous), []);
  assert(asked.length < 12, `asked ${asked.length} times`);
  assert.equal(sockets.all.length, 2);
});

Deno.test("a result that arrives after sign-out or for another setAuth is ignored", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const socket = await test.open();
  const slow = Promise.withResolvers<string>();
  const changes: string[] = [];
  client.setAuth(() => slow.promise, (isAuthenticated) => changes.push(`first ${isAuthenticated}`));
  client.clearAuth();
  slow.resolve(jwt(clock));
  await settle();
  assert.deepEqual(authenticates(socket), []);
  const slower = Promise.withResolvers<string>();
  client.setAuth(() => slower.promise, (isAuthenticated) => changes.push(`second ${isAuthenticated}`));
  const mine = jwt(clock, { name: "mine" });
  client.setAuth(getter(mine).fetchToken, (isAuthenticated) => changes.push(`third ${isAuthenticated}`));
  slower.resolve(jwt(clock, { name: "other" }));
  await settle();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  assert.deepEqual(authenticates(socket).map((message) => message.type === "Authenticate" && message.token), [
    mine,
  ]);
  assert.deepEqual(changes, ["third true"]);
});

Deno.test("a failing getter of a new setAuth signs the previous user out", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const socket = await test.open();
  client.setAuth(getter(jwt(clock)).fetchToken);
  await settle();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  client.setAuth(getter(new Error("no")).fetchToken);
  await settle();
  const last = authenticates(socket).at(-1);
  assert.deepEqual(last, { type: "Authenticate", baseVersion: 1, token: null });
});

Deno.test("a new setAuth with the same token sends no message and still notifies the app", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const socket = await test.open();
  const token = jwt(clock);
  client.setAuth(getter(token).fetchToken);
  await settle();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  const changes: boolean[] = [];
  client.setAuth(getter(token).fetchToken, (isAuthenticated) => changes.push(isAuthenticated));
  await settle();
  assert.equal(authenticates(socket).length, 1);
  assert.deepEqual(changes, [true]);
});

Deno.test("after sleep a token that has expired is renewed before the handshake", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const first = await test.open();
  const old = jwt(clock, { life: 100 });
  const wake = Promise.withResolvers<string>();
  const asked: boolean[] = [];
  client.setAuth(({ forceRefresh }) => {
    asked.push(forceRefresh);
    return asked.length === 1 ? Promise.resolve(old) : wake.promise;
  });
  await settle();
  first.receive(transition([[0, 0, 0], [0, 1, 1]]));
  first.closeWith(1006);
  await clock.advance(3_600_000);
  const next = await test.open();
  assert.deepEqual(types(next.take()), ["Connect"]);
  const fresh = jwt(clock);
  wake.resolve(fresh);
  await settle();
  assert.deepEqual(next.take(), [{ type: "Authenticate", baseVersion: 0, token: fresh }]);
});

Deno.test("onChange that throws or signs out immediately does no harm", async () => {
  using test = makeTestClient();
  const { client, clock } = test;
  const socket = await test.open();
  const changes: boolean[] = [];
  client.setAuth(getter(jwt(clock)).fetchToken, (isAuthenticated) => {
    changes.push(isAuthenticated);
    if (isAuthenticated) client.clearAuth();
  });
  await settle();
  socket.receive(transition([[0, 0, 0], [0, 1, 1]]));
  assert.deepEqual(changes, [true, false]);
  assert.deepEqual(types(authenticates(socket)), ["Authenticate", "Authenticate"]);
  assert(!socket.dropped);
});

Deno.test("tokenLife reads the lifetime of tokens and ignores everything else", () => {
  const token = (claims: unknown) =>
    `x.${btoa(JSON.stringify(claims)).replaceAll("+", "-").replaceAll("/", "_")}.y`;
  const now = 1_000_000;
  assert.deepEqual(tokenLife(token({ iat: 900, exp: 1100 }), now), { leftMs: 100_000, fullMs: 200_000 });
  assert.deepEqual(tokenLife(token({ exp: 1100 }), now), { leftMs: 100_000, fullMs: 100_000 });
  assert.deepEqual(tokenLife(token({ iat: 1900, exp: 2100 }), now), { leftMs: 200_000, fullMs: 200_000 });
  for (const text of ["", "a.b", "a.%%%.c", "opaque", token(null), token({ exp: "soon" }), token([])]) {
    assert.equal(tokenLife(text, now), null, text);
  }
});
