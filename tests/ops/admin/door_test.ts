/** Access to admin functions over sockets, and the errors other callers get; `callers_test.ts` has HTTP. */
import assert from "node:assert/strict";
import type { TestSocket } from "../../auth/server/test_server.ts";
import { type Registry, watchFeatures } from "./support/registry.ts";
import { type Kind, startWorld, type World } from "./support/world.ts";

async function adminPaths(world: World, registry: Registry): Promise<{ path: string; kind: Kind }[]> {
  const listed = await world.ok("query", "_admin/functions:list");
  const inIsolates = listed.filter(({ visibility }: { visibility: string }) => visibility === "admin");
  return [
    ...inIsolates.map(({ path, kind }: { path: string; kind: Kind }) => ({ path, kind })),
    ...registry.actions.map((path) => ({ path, kind: "action" as const })),
  ];
}

Deno.test("admin functions", async (t) => {
  using registry = watchFeatures();
  await using world = await startWorld();
  const { server, call } = world;
  const paths = await adminPaths(world, registry);
  assert.ok(paths.length > 40, `${paths.length} functions`);
  const acting = await world.impersonate(world.userId);
  const strangers: Record<string, string | null> = {
    guest: null,
    user: world.user,
    "an administrator who acts as a user": acting,
  };

  for (const [name, bearer] of Object.entries(strangers)) {
    await t.step(`[SY1] over a socket the error is the same: ${name}`, async () => {
      await using socket = await server.socket(bearer ?? undefined);
      const failure = (message: string) => ({ errorMessage: message, errorData: null, logLines: [] });
      const asked = [...paths, { path: "_admin/users:none", kind: "query" as const }];
      socket.send({
        type: "ModifyQuerySet",
        baseVersion: 0,
        newVersion: 1,
        modifications: asked.map(({ path: udfPath }, queryId) => ({
          type: "Add",
          queryId,
          udfPath,
          args: {},
        })),
      });
      const { modifications } = await socket.message(({ type, endVersion }) =>
        type === "Transition" && endVersion.querySet === 1
      );
      assert.equal(modifications.length, asked.length);
      for (const { queryId, type, ...rest } of modifications) {
        assert.equal(type, "QueryFailed");
        assert.deepEqual(rest, failure(`There is no function "${asked[queryId]?.path}"`));
      }
      for (const [requestId, { path: udfPath }] of asked.entries()) {
        const type = requestId % 2 === 0 ? "Mutation" : "Action";
        socket.send({ type, requestId, udfPath, args: { wrong: true } });
        const answer = await socket.message((message) => message.requestId === requestId);
        assert.deepEqual([answer.success, answer.errorMessage, answer.errorData], [
          false,
          `There is no function "${udfPath}"`,
          null,
        ]);
      }
    });
  }

  await t.step("[SY2] app code cannot call them under any identity", async () => {
    for (const bearer of [null, world.admin]) {
      const path = "_admin/administrators:list";
      const tried = await world.ok("action", "messages:sneak", { path }, bearer);
      assert.deepEqual(tried, { refused: `There is no function "${path}"` });
    }
  });

  await t.step("[SY3] an administrator's subscriptions are live", async () => {
    await using socket = await server.socket(world.admin);
    await socket.identityVersion(1);
    const channels = await subscribe(socket, "_admin/data:documents", {
      table: "channels",
      paginationOpts: { cursor: null, numItems: 10 },
    });
    assert.deepEqual(channels.value.page.map(({ name }: { name: string }) => name), ["tick"]);
    await world.ok("mutation", "_admin/data:insert", { table: "channels", documents: [{ name: "general" }] });
    const next = await socket.message(({ type, modifications }) =>
      type === "Transition" &&
      modifications.some((item: { type: string; value?: { page: unknown[] } }) =>
        item.type === "QueryUpdated" && item.value?.page.length === 2
      )
    );
    assert.equal(next.modifications[0].value.page[0].name, "general");
  });

  await t.step(
    "[SY4] results are not shared with another administrator or a guest",
    async () => {
      const other = await world.addAdmin("second@example.com");
      await using mine = await server.socket(world.admin);
      await using theirs = await server.socket(other.accessToken);
      await using guest = await server.socket();
      const me = await Promise.all(
        [mine, theirs].map((socket) => subscribe(socket, "_admin/administrators:me", {})),
      );
      assert.deepEqual(me.map(({ value }) => value.email), ["root@example.com", "second@example.com"]);
      const none = await subscribe(guest, "_admin/administrators:me", {});
      assert.equal(none.errorMessage, 'There is no function "_admin/administrators:me"');
    },
  );

  await t.step(
    "[SY5] when the administrator's session ends the socket is closed, and calls are rejected",
    async () => {
      const other = await world.addAdmin("leaving@example.com");
      await using socket = await server.socket(other.accessToken);
      await subscribe(socket, "_admin/users:list", { paginationOpts: { cursor: null, numItems: 5 } });
      await world.ok("mutation", "_admin/administrators:endSessions", { adminId: other.adminId });
      assert.equal((await socket.message(({ type }) => type === "AuthError")).error, "session has ended");
      await socket.closed;
      for (const { path, kind } of paths) {
        const { status, code } = await call(kind, path, {}, other.accessToken);
        assert.deepEqual([status, code], [401, "invalid_token"], path);
      }
    },
  );

  await t.step("[SY6] impersonation ends with the administrator's own session", async () => {
    const other = await world.addAdmin("actor@example.com");
    const token = await world.impersonate(world.userId, other.accessToken);
    await using socket = await server.socket(token);
    await socket.identityVersion(1);
    assert.equal(await world.ok("action", "messages:who", {}, token), world.userId);
    await server.post("/api/auth/signout", { refreshToken: other.refreshToken });
    assert.equal((await socket.message(({ type }) => type === "AuthError")).error, "session has ended");
    assert.equal((await call("action", "messages:who", {}, token)).code, "invalid_token");
    assert.equal(
      await world.ok("action", "messages:who", {}, world.user),
      world.userId,
      "the user's own session continues",
    );
  });
});

// deno-lint-ignore no-explicit-any -- modifications of many shapes
async function subscribe(socket: TestSocket, udfPath: string, args: unknown): Promise<any> {
  socket.send({
    type: "ModifyQuerySet",
    baseVersion: 0,
    newVersion: 1,
    modifications: [{ type: "Add", queryId: 1, udfPath, args }],
  });
  const { modifications } = await socket.message(({ type, endVersion }) =>
    type === "Transition" && endVersion.querySet === 1
  );
  return modifications[0];
}
