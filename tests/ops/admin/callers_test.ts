/**
 * Every endpoint below `/api/admin` and every admin function registered by the server, called by each kind of caller.
 */
import assert from "node:assert/strict";
import { watchFeatures } from "./support/registry.ts";
import { type Kind, startWorld } from "./support/world.ts";

const kinds: readonly Kind[] = ["query", "mutation", "action"];

Deno.test("admin endpoints and functions by caller", async (t) => {
  using registry = watchFeatures();
  await using world = await startWorld({ config: { restartExitCode: 75 }, onRestart: () => {} });
  const { server, call } = world;
  const ended = await world.addAdmin("left@example.com");
  await server.post("/api/auth/signout", { refreshToken: ended.refreshToken });
  const strangers: Record<string, string | null> = {
    guest: null,
    user: world.user,
    "ended administrator": ended.accessToken,
    "administrator who acts as a user": await world.impersonate(world.userId),
    "API key": (await world.ok("action", "_admin/apiKeys:create", { name: "ci", functions: ["*"] })).key,
  };
  const { routes, actions } = registry;
  const listed: { path: string; kind: Kind; visibility: string }[] = await world.ok(
    "query",
    "_admin/functions:list",
  );
  const functions = [
    ...listed.filter(({ visibility }) => visibility === "admin"),
    // The other one is for the command line.
    ...actions.filter((path) => path !== "_admin/mcp:handle").map((path) => ({
      path,
      kind: "action" as const,
    })),
  ];

  await t.step("[AD1] [SY1] the registry is complete", () => {
    const paths = new Set(routes.map(({ method, path }) => `${method} ${path}`));
    for (
      const known of [
        "POST /api/admin/impersonate",
        "GET /api/admin/logs",
        "GET /api/admin/stats",
        "PUT /api/admin/functions",
        "POST /api/admin/replication/snapshot",
        "POST /api/admin/restore/point-in-time",
      ]
    ) assert.ok(paths.has(known), `${known}: ${[...paths].join(", ")}`);
    assert.ok(functions.length > 50, `${functions.length} functions`);
    for (const path of ["_admin/users:remove", "_admin/users:list", "_admin/settings:list"]) {
      assert.ok(functions.some((known) => known.path === path), path);
    }
  });

  const ask = (method: string, path: string, bearer: string | null) =>
    fetch(`${server.url}${path.replaceAll(/:\w+(\{[^}]*\})?/g, "none")}`, {
      method,
      ...(bearer !== null && { headers: { Authorization: `Bearer ${bearer}` } }),
    });

  for (const [who, bearer] of Object.entries(strangers)) {
    await t.step(`[AD1] every endpoint rejects with the same message: ${who}`, async () => {
      for (const { method, path } of routes) {
        const response = await ask(method, path, bearer);
        assert.equal(response.status, 401, `${method} ${path}`);
        const { errorMessage, errorData } = await response.json();
        assert.deepEqual([errorMessage, errorData.code], [
          "The access token is not valid",
          "invalid_token",
        ], `${method} ${path}`);
      }
    });

    await t.step(`[SY1] [SY5] no function is disclosed to: ${who}`, async () => {
      // An unknown function gets the same response.
      for (const path of [...functions.map(({ path }) => path), "_admin/users:none"]) {
        for (const kind of kinds) {
          const { status, message, code } = await call(kind, path, { wrong: true }, bearer);
          const expected = who === "ended administrator"
            ? [401, "invalid_token"]
            : who === "API key"
            ? [400, "key_not_permitted"]
            : [404, `There is no function "${path}"`];
          const found = [status, status === 404 ? message : code];
          assert.deepEqual(found, expected, `${kind} ${path}`);
        }
      }
    });
  }

  await t.step("[SY1] every function is available to an administrator", async () => {
    for (const { path, kind } of functions) {
      // Invalid arguments, so that the calls have no effect.
      const { status, message } = await call(kind, path, { wrong: true });
      assert.notEqual(status, 401, path);
      assert.notEqual(message, `There is no function "${path}"`);
    }
  });

  await t.step("[AD1] every endpoint admits an administrator", async () => {
    for (const { method, path } of routes) {
      const response = await ask(method, path, world.admin);
      await response.body?.cancel();
      assert.notEqual(response.status, 401, `${method} ${path}`);
      assert.ok(response.status < 500, `${method} ${path}: ${response.status}`);
    }
  });
});
