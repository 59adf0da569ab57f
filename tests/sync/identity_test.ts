/** The identity of a socket: Authenticate, token expiry and session ends. */
import assert from "node:assert/strict";
import { World } from "./support/world.ts";
import { settle, type TestSocket } from "./support/test_socket.ts";

function assertAuthError(socket: TestSocket, error: string): void {
  assert.deepEqual(socket.frames.at(-1), { type: "AuthError", error });
  assert.notEqual(socket.closedWith, null);
}

Deno.test("SV3 a valid token changes the identity and brings the results that differ for it", async () => {
  const world = new World();
  const socket = world.connected();
  socket.modify(
    { type: "Add", queryId: 0, udfPath: "me", args: {} },
    { type: "Add", queryId: 1, udfPath: "get", args: { key: "a" } },
  );
  await settle();
  socket.take();
  socket.authenticate(0, "u1.s1");
  await settle();
  assert.deepEqual(socket.take(), [{
    type: "Transition",
    startVersion: { querySet: 1, identity: 0, ts: 0 },
    endVersion: { querySet: 1, identity: 1, ts: 0 },
    modifications: [{
      type: "QueryUpdated",
      queryId: 0,
      value: { principal: "user:u1", value: null },
      logLines: [],
    }],
  }]);
});

Deno.test("SV4 the token null makes the socket anonymous again", async () => {
  const world = new World();
  const socket = world.connected();
  socket.add(0, "me");
  socket.authenticate(0, "u1.s1");
  socket.authenticate(1, null);
  await settle();
  assert.deepEqual(socket.value(0), { principal: null, value: null });
  assert.deepEqual(socket.version, { querySet: 1, identity: 2, ts: 0 });
});

Deno.test("SG3 every Authenticate gets its own Transition, in order with ModifyQuerySets", async () => {
  const world = new World();
  const socket = world.connected();
  socket.authenticate(0, "u1.s1");
  socket.add(0, "me");
  socket.authenticate(1, "u2.s2");
  socket.add(1, "me");
  socket.authenticate(2, null);
  await settle();
  assert.deepEqual(
    socket.all("Transition").map(({ endVersion }) => [endVersion.querySet, endVersion.identity]),
    [[0, 1], [1, 1], [1, 2], [2, 2], [2, 3]],
  );
});

Deno.test("SV5 a token that is not valid ends the socket, the identity unchanged", async () => {
  const world = new World();
  const socket = world.connected();
  socket.add(0, "me");
  await settle();
  socket.authenticate(0, "rubbish");
  socket.add(1, "me");
  await settle();
  assertAuthError(socket, "malformed access token");
  assert.equal(socket.all("Transition").length, 1);
});

Deno.test("SV5 a server without accounts refuses every token", async () => {
  const { noAccounts } = await import("../../mod/sync/authenticator.ts");
  assert.deepEqual(await noAccounts.verify("x"), { ok: false, error: "malformed access token" });
  assert.deepEqual(await noAccounts.verify("eyJh.eyJi.c2ln"), {
    ok: false,
    error: "invalid access token signature",
  });
});

Deno.test("WE1 Authenticate with another baseVersion is a FatalError", async () => {
  const world = new World();
  const socket = world.connected();
  socket.authenticate(1, null);
  await settle();
  assert.deepEqual(socket.frames.at(-1), {
    type: "FatalError",
    error: "Authenticate: baseVersion is 1, expected 0",
  });
  assert.equal(socket.closedWith, 1008);
});

Deno.test("SV6 SG8 a token that expires ends the socket, a fresher one keeps it", async () => {
  const world = new World();
  world.authenticator.expiresAt.set("u1.s1", world.clock.now() + 10_000);
  world.authenticator.expiresAt.set("u2.s2", world.clock.now() + 10_000);
  world.authenticator.expiresAt.set("u2.s3", world.clock.now() + 60_000);
  const [stale, fresh] = [world.connected(), world.connected()];
  stale.authenticate(0, "u1.s1");
  fresh.authenticate(0, "u2.s2");
  await settle();
  fresh.authenticate(1, "u2.s3");
  await settle();
  world.clock.move(9_900);
  assert.equal(stale.closedWith, null);
  world.clock.move(200);
  assertAuthError(stale, "access token expired");
  assert.equal(fresh.closedWith, null);
});

Deno.test("SV6 a token that has expired already is refused", async () => {
  const world = new World();
  world.authenticator.expiresAt.set("u1.s1", world.clock.now());
  const socket = world.connected();
  socket.authenticate(0, "u1.s1");
  await settle();
  assertAuthError(socket, "access token expired");
});

Deno.test("SV6 a token that expires while a fresher one is being verified does not end the socket", async () => {
  const world = new World();
  world.authenticator.expiresAt.set("u1.s1", world.clock.now() + 1_000);
  const socket = world.connected();
  socket.authenticate(0, "u1.s1");
  await settle();
  const gate = Promise.withResolvers<void>();
  world.authenticator.gate = gate.promise;
  socket.authenticate(1, "u1.s2");
  world.clock.move(5_000);
  gate.resolve();
  await settle();
  assert.equal(socket.closedWith, null);
  assert.equal(socket.version.identity, 2);
});

Deno.test("SV7 SG9 the end of a session closes its sockets immediately, and no Transition follows", async () => {
  const world = new World();
  const [one, two, other] = [world.connected(), world.connected(), world.connected()];
  for (const [socket, token] of [[one, "u1.s1"], [two, "u1.s1"], [other, "u1.s2"]] as const) {
    socket.add(0, "me");
    socket.authenticate(0, token);
  }
  await settle();
  world.host.write({ a: 1 });
  world.authenticator.end({ sessionId: "s1" });
  assertAuthError(one, "session has ended");
  assertAuthError(two, "session has ended");
  await settle();
  assertAuthError(one, "session has ended");
  assert.equal(other.closedWith, null);
  assert.deepEqual(other.value(0), { principal: "user:u1", value: 1 });
});

Deno.test("SV7 the end of a principal closes its sockets", async () => {
  const world = new World();
  const [one, other] = [world.connected(), world.connected()];
  one.authenticate(0, "u1.s1");
  other.authenticate(0, "u2.s1");
  await settle();
  world.authenticator.end({ principal: "user:u1" });
  assertAuthError(one, "session has ended");
  assert.equal(other.closedWith, null);
});

Deno.test("SV7 a session that ends while its token is verified is rejected", async () => {
  const world = new World();
  const gate = Promise.withResolvers<void>();
  world.authenticator.gate = gate.promise;
  const socket = world.connected();
  socket.authenticate(0, "u1.s1");
  await settle();
  world.authenticator.end({ sessionId: "s1" });
  gate.resolve();
  await settle();
  assertAuthError(socket, "session has ended");
});

Deno.test("SV7 a signed-out socket is not affected by the end of its old session", async () => {
  const world = new World();
  const socket = world.connected();
  socket.authenticate(0, "u1.s1");
  socket.authenticate(1, null);
  await settle();
  world.authenticator.end({ sessionId: "s1" });
  await settle();
  assert.equal(socket.closedWith, null);
});

Deno.test("SV3 messages after an Authenticate keep their order and use the new identity", async () => {
  const world = new World();
  const gate = Promise.withResolvers<void>();
  world.authenticator.gate = gate.promise;
  const socket = world.connected();
  socket.mutate(1, "who");
  socket.authenticate(0, "u1.s1");
  socket.mutate(2, "who");
  socket.add(0, "me");
  await settle();
  assert.deepEqual(socket.all("MutationResponse").map(({ requestId }) => requestId), [1]);
  gate.resolve();
  await settle();
  assert.deepEqual(
    socket.all("MutationResponse").map((response) => response.success && response.result),
    [null, "user:u1"],
  );
  assert.deepEqual(socket.value(0), { principal: "user:u1", value: null });
});

Deno.test("SV3 a refreshed token of the same session runs nothing again", async () => {
  const world = new World();
  const socket = world.connected();
  socket.modify(
    { type: "Add", queryId: 0, udfPath: "me", args: {} },
    { type: "Add", queryId: 1, udfPath: "session", args: {} },
  );
  socket.authenticate(0, "u1.s1");
  await settle();
  const runs = world.host.runs.length;
  socket.take();
  socket.authenticate(1, "u1.s1");
  await settle();
  assert.equal(world.host.runs.length, runs);
  assert.deepEqual(socket.take().map((frame) => frame.type === "Transition" && frame.modifications), [[]]);
});

Deno.test("SV5 a fault while a token is verified ends the socket without an AuthError", async () => {
  const world = new World();
  const socket = world.connected();
  socket.authenticate(0, "throws");
  await settle();
  assert.deepEqual(socket.frames.at(-1), { type: "FatalError", error: "Server Error" });
  assert.equal(socket.closedWith, 1011);
});
