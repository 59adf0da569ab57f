/** Access to deploys: endpoints by guests, users, administrators and deploy keys; the keys; the audit log. */
import assert from "node:assert/strict";
import { bundleOf, firstApp, password, secondApp, startDeployWorld } from "./support.ts";

Deno.test("deploys require an administrator or a deploy key", async (t) => {
  await using world = await startDeployWorld();
  const { server, admin, admin_, call } = world;
  const signUp = async () =>
    (await server.post("/api/auth/signup", { email: "ada@example.com", password })).body;
  const user = await signUp();
  const { body: impersonated } = await admin_("POST", "/impersonate", { userId: user.userId });
  await call("action", "_admin/administrators:create", { email: "old@example.com", password }, admin);
  const { body: ended } = await server.post("/api/auth/admin/signin", { email: "old@example.com", password });
  await server.post("/api/auth/signout", { refreshToken: ended.refreshToken });
  const create = (name: string) => call("action", "_admin/apiKeys:create", { name, deploy: true }, admin);
  const key = await create("ci");
  const revoked = await create("old");
  await call("mutation", "_admin/apiKeys:revoke", { keyId: revoked.keyId }, admin);
  const bundle = (await bundleOf(firstApp)).bytes;

  const callers: Record<string, string | null> = {
    "a guest": null,
    "a user": user.accessToken,
    "an ended administrator": ended.accessToken,
    "an impersonated user": impersonated.accessToken,
    "a revoked key": revoked.key,
    "a key that is none": `${key.key.slice(0, -4)}AAAA`,
    "a deploy key": key.key,
    "an administrator": admin,
  };
  const requests: Record<string, readonly [string, string, (BodyInit | object)?]> = {
    "deploy": ["PUT", "/functions?dryRun=true", bundle],
    "versions": ["GET", "/functions/versions"],
    "roll back": ["POST", "/functions/rollback", { hash: "0".repeat(32) }],
    "set variables": ["PATCH", "/functions/env", { NAME: null }],
    "read variables": ["GET", "/functions/env"],
    "list backups": ["GET", "/backups"],
    "another path below": ["GET", "/functions/other"],
    "unknown": ["GET", "/nothing"],
  };
  const expected: Record<string, Record<string, number>> = {
    "a deploy key": {
      "deploy": 200,
      "versions": 200,
      "roll back": 404,
      "set variables": 200,
      "read variables": 401,
      "list backups": 401,
      "another path below": 401,
      "unknown": 401,
    },
    "an administrator": {
      "deploy": 200,
      "versions": 200,
      "roll back": 404,
      "set variables": 200,
      "read variables": 200,
      "list backups": 200,
      "another path below": 404,
      "unknown": 404,
    },
  };
  for (const [who, token] of Object.entries(callers)) {
    for (const [what, [method, path, body]] of Object.entries(requests)) {
      await t.step(`DK2 ${who}: ${what}`, async () => {
        const answer = await admin_(method, path, body, token);
        assert.equal(answer.status, expected[who]?.[what] ?? 401, answer.body.errorMessage);
        if (answer.status === 401) assert.equal(answer.code, "invalid_token");
      });
    }
  }

  await t.step("DK2 a deploy key cannot call admin functions or open a socket", async () => {
    for (const kind of ["query", "action"] as const) {
      const path = kind === "query" ? "_admin/apiKeys:list" : "_admin/apiKeys:create";
      const { status, body } = await server.post(`/api/${kind}`, { path, args: {} }, { bearer: key.key });
      assert.deepEqual([status, body.errorData.code], [401, "invalid_token"]);
    }
    await using socket = await server.socket(key.key);
    assert.equal((await socket.message(({ type }) => type === "AuthError")).type, "AuthError");
  });

  await t.step(
    "DK1 DK4 keys are listed with creator and last use, never with the key itself",
    async () => {
      const found = async () => {
        const keys = await call("query", "_admin/apiKeys:list", {}, admin);
        return keys.find(({ name }: { name: string }) => name === "ci");
      };
      while ((await found()).lastUsedAt === null) await new Promise((done) => setTimeout(done, 5));
      const { createdBy, createdAt, deploy, functions } = await found();
      assert.ok(createdBy !== "" && createdAt > 0);
      assert.deepEqual([deploy, functions], [true, []]);
      assert.ok(!JSON.stringify(await call("query", "_admin/apiKeys:list", {}, admin)).includes(key.key));
      for await (const { name, isFile } of Deno.readDir(server.dataDir)) {
        if (!isFile) continue;
        const text = new TextDecoder("latin1").decode(await Deno.readFile(`${server.dataDir}/${name}`));
        assert.ok(!text.includes(key.key.slice(-43)), `${name} holds the key`);
      }
    },
  );

  await t.step("DK3 a revoked key is invalid immediately", async () => {
    const { keyId, key: short } = await create("short");
    assert.equal((await admin_("GET", "/functions/versions", undefined, short)).status, 200);
    await call("mutation", "_admin/apiKeys:revoke", { keyId }, admin);
    assert.equal((await admin_("GET", "/functions/versions", undefined, short)).status, 401);
  });

  await t.step("DK2 AK6 look-ups of unknown keys are limited, and keys in use are not", async () => {
    const unknown = `${key.key.slice(0, -43)}${"a".repeat(43)}`;
    let answer = await admin_("GET", "/functions/versions", undefined, unknown);
    for (let tries = 0; answer.status === 401 && tries < 1_000; tries++) {
      answer = await admin_("GET", "/functions/versions", undefined, unknown);
    }
    assert.deepEqual([answer.status, answer.code], [429, "rate_limited"]);
    assert.equal((await admin_("GET", "/functions/versions", undefined, key.key)).status, 200);
  });

  await t.step(
    "DP12 deploys are in the audit log, with the key or the administrator",
    async () => {
      const deployed = await world.deploy(secondApp, { bearer: key.key });
      assert.equal(deployed.status, 200, deployed.body.errorMessage);
      await world.deploy({ "functions/bad.ts": "throw new Error();" });
      const { page } = await call(
        "query",
        "_admin/audit:list",
        { paginationOpts: { cursor: null, numItems: 100 } },
        admin,
      );
      const [failed, byKey] = page;
      assert.deepEqual([failed.action, failed.outcome, failed.email], [
        "PUT /api/admin/functions",
        "broken_functions",
        "root@example.com",
      ]);
      assert.deepEqual([byKey.action, byKey.outcome, byKey.args.by, byKey.args.hash], [
        "PUT /api/admin/functions",
        "ok",
        "deploy key ci",
        deployed.body.hash,
      ]);
      const made = page.find(({ action }: { action: string }) => action === "_admin/apiKeys:create");
      assert.ok(made !== undefined && !JSON.stringify(page).includes(key.key));
      const { versions } = (await admin_("GET", "/functions/versions")).body;
      assert.equal(versions[0].by, "deploy key ci");
    },
  );
});
