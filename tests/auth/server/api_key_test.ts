/** API keys on a whole server: over HTTP, in routes and on sockets. */
import assert from "node:assert/strict";
import { bearerOf, startTestServer } from "./test_server.ts";

const functions = {
  "tasks.ts": `import { untypedAction, untypedMutation, untypedQuery } from "syncline/server";
    export const list = untypedQuery(async (ctx) => await ctx.runQuery("secret:read"));
    export const who = untypedQuery((ctx) => [ctx.auth.userId(), ctx.auth.keyId()]);
    export const add = untypedMutation(() => "added");
    export const act = untypedAction(async (ctx) => await ctx.runQuery("secret:read"));`,
  "secret.ts": `import { untypedQuery } from "syncline/server";
    export const read = untypedQuery(() => "secret");`,
  "http.ts": `import { httpAction, httpRouter } from "syncline/server";
    const http = httpRouter();
    for (const path of ["/hook", "/closed"]) {
      http.route({ path, method: "POST", handler: httpAction((ctx) => new Response(ctx.auth.keyId())) });
    }
    export default http;`,
};

Deno.test("AK3 AK4 a key works over HTTP, in routes and on sockets, in its scope, until it is revoked", async (t) => {
  await using server = await startTestServer({ functions, accounts: {} });
  const admin = await bearerOf(server);
  const manage = async (kind: string, name: string, args: object) =>
    (await server.post(`/api/${kind}`, { path: `_admin/apiKeys:${name}`, args }, { bearer: admin })).body
      .value;
  const scope = { name: "ci", functions: ["tasks:*", "POST /hook"] };
  const { key, keyId } = await manage("action", "create", scope);
  const call = async (kind: string, path: string, bearer = key) =>
    (await server.post(`/api/${kind}`, { path, args: {} }, { bearer })).body;

  await t.step("AK3 functions in the scope run, also those that they call, and no others", async () => {
    assert.deepEqual((await call("query", "tasks:who")).value, [null, keyId]);
    assert.equal((await call("query", "tasks:list")).value, "secret");
    assert.equal((await call("mutation", "tasks:add")).value, "added");
    assert.equal((await call("action", "tasks:act")).value, "secret");
    for (const path of ["secret:read", "_auth:account", "_auth:listSessions", "_admin/users:list"]) {
      assert.equal((await call("query", path)).errorData.code, "key_not_permitted", path);
    }
    for (const path of ["_auth:changePassword", "_auth:createApiKey", "_admin/apiKeys:create"]) {
      assert.equal((await call("action", path)).errorData.code, "key_not_permitted", path);
    }
    const queries = await manage("action", "create", { name: "reader", functions: ["*"], kinds: ["query"] });
    assert.equal((await call("query", "tasks:list", queries.key)).value, "secret");
    assert.equal((await call("mutation", "tasks:add", queries.key)).errorData.code, "key_not_permitted");
    assert.equal((await call("action", "tasks:act", queries.key)).errorData.code, "key_not_permitted");
  });

  await t.step(
    "AK3 users cannot manage the keys of administrators, and a key is no administrator",
    async () => {
      const { body } = await server.post("/api/auth/signup", {
        email: "a@example.com",
        password: "correct horse",
      });
      for (const bearer of [body.accessToken, undefined]) {
        for (
          const [kind, name] of [["query", "list"], ["action", "create"], ["mutation", "revoke"]] as const
        ) {
          const args = { path: `_admin/apiKeys:${name}`, args: name === "list" ? {} : { ...scope, keyId } };
          const { body } = await server.post(`/api/${kind}`, args, bearer === undefined ? {} : { bearer });
          assert.match(body.errorMessage, /^There is no function/, `${kind} ${name}`);
        }
      }
      const response = await fetch(`${server.url}/api/admin/stats`, {
        headers: { Authorization: `Bearer ${key}` },
      });
      assert.equal(response.status, 401);
      await response.body?.cancel();
    },
  );

  await t.step("AK3 routes are in the scope by method and path", async () => {
    const post = async (path: string) => {
      const response = await fetch(`${server.url}${path}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${key}` },
      });
      return [response.status, await response.text()];
    };
    assert.deepEqual(await post("/hook"), [200, keyId]);
    assert.equal((await post("/closed"))[0], 403);
  });

  await t.step("AK3 live queries follow the scope of the current key", async () => {
    await using socket = await server.socket(undefined, ["presence"]);
    socket.subscribe("tasks:list", "secret:read");
    const before = await socket.message(({ modifications = [] }) => modifications.length === 2);
    assert.deepEqual(before.modifications.map(({ value }: { value: unknown }) => value), [
      "secret",
      "secret",
    ]);
    socket.send({ type: "Authenticate", baseVersion: 0, token: key });
    const limited = await socket.identityVersion(1);
    assert.deepEqual(
      limited.modifications.map((
        { queryId, errorData }: { queryId: number; errorData: { code: string } },
      ) => [
        queryId,
        errorData.code,
      ]),
      [[1, "key_not_permitted"]],
    );
    socket.send({ type: "Mutation", requestId: 0, udfPath: "secret:read", args: {} });
    const refused = await socket.message(({ type }) => type === "MutationResponse");
    assert.equal(refused.errorData.code, "key_not_permitted");
    socket.send({ type: "SetPresence", room: "lobby", state: {} });
    const room = await socket.message(({ type }) => type === "RoomRefused");
    assert.equal(room.errorData.code, "key_not_permitted");
    socket.send({ type: "Authenticate", baseVersion: 1, token: null });
    const open = await socket.identityVersion(2);
    assert.deepEqual(open.modifications.map(({ value }: { value: unknown }) => value), ["secret"]);
  });

  await t.step("AK4 a revoked key closes its sockets, and no others, and calls nothing", async () => {
    await using socket = await server.socket(key);
    await socket.identityVersion(1);
    await using other = await server.socket(admin);
    await other.identityVersion(1);
    await manage("mutation", "revoke", { keyId });
    await socket.message(({ type }) => type === "AuthError");
    const { status } = await server.post("/api/query", { path: "tasks:list", args: {} }, { bearer: key });
    assert.equal(status, 401);
    assert.equal(other.closeCode, null);
  });

  await t.step("AK4 keys survive a restart", async () => {
    const { key: kept } = await manage("action", "create", { ...scope, name: "kept" });
    await server.restart();
    assert.equal((await call("query", "tasks:list", kept)).value, "secret");
  });
});
