/** The audit log: actions of administrators, with client addresses. */
import assert from "node:assert/strict";
import { AuditLog } from "../../../mod/ops/admin/mod.ts";
import { SystemCalls } from "../../../mod/functions/system_calls.ts";
import { password, startWorld } from "./support/world.ts";

interface Row {
  readonly action: string;
  readonly outcome: string;
  readonly email: string;
  readonly admin: string;
  readonly address?: string;
  readonly userAgent?: string;
  readonly args: Record<string, unknown>;
}

Deno.test("the audit log", async (t) => {
  await using world = await startWorld();
  const { ok, call, server } = world;
  const list = async (args: object = {}): Promise<Row[]> =>
    (await ok("query", "_admin/audit:list", { paginationOpts: { cursor: null, numItems: 100 }, ...args }))
      .page;

  await t.step(
    "[AU1] it records changes with the administrator and address, but no reads",
    async () => {
      await ok("query", "_admin/users:list", { paginationOpts: { cursor: null, numItems: 5 } });
      await ok("action", "_admin/data:sizes");
      assert.deepEqual(await list(), []);
      await ok("mutation", "_admin/users:edit", { userId: world.userId, name: "Ada" });
      await ok("action", "_admin/users:create", { email: "new@example.com", password });
      await world.impersonate(world.userId);
      const [impersonated, created, edited] = await list();
      assert.deepEqual([edited?.action, edited?.args, edited?.outcome], [
        "_admin/users:edit",
        { userId: world.userId, name: "Ada" },
        "ok",
      ]);
      assert.deepEqual([edited?.email, edited?.admin], ["root@example.com", world.adminId]);
      for (const row of [edited, created, impersonated]) {
        assert.match(row?.address ?? "", /^(127\.0\.0\.1|::1)$/);
        assert.match(row?.userAgent ?? "", /Deno/);
      }
      assert.deepEqual(created?.args, { email: "new@example.com", password: "(hidden)" });
      assert.deepEqual([impersonated?.action, impersonated?.args["userId"]], [
        "POST /api/admin/impersonate",
        world.userId,
      ]);
    },
  );

  await t.step("[AU2] it contains neither document contents nor secrets", async () => {
    const { ids } = await ok("mutation", "_admin/data:insert", {
      table: "messages",
      documents: [{ channel: "c", body: "private words" }, { channel: "c", body: "more private words" }],
    });
    await ok("mutation", "_admin/data:patch", { id: ids[0], set: { body: "other private words" } });
    const [patched, inserted] = await list();
    assert.deepEqual(inserted?.args, { table: "messages", documents: "(2)" });
    assert.deepEqual(patched?.args, { id: ids[0], set: "(body)", table: "messages" });
    assert.ok(!JSON.stringify(await list()).includes("private words"));
  });

  await t.step(
    "[AU2] [EX17] it contains no search terms, whether or not the request was rejected",
    async () => {
      const sought = "a particular person";
      const asked: readonly object[] = [
        { conditions: [{ field: "body", op: "contains", value: sought }] },
        { conditions: [{ field: sought, op: "missing" }] },
        { index: "by_channel", range: { eq: [sought] } },
        { index: "by_channel", range: { gte: sought } },
        { search: { index: "search_body", text: sought, eq: { channel: sought } } },
        { search: { index: "search_body", text: sought }, order: "asc" },
      ];
      const before = (await list()).length;
      for (const where of asked) {
        await call("action", "_admin/data:deleteWhere", { table: "messages", ...where });
        for (
          const [query, body] of [["", JSON.stringify(where)], [
            `&${new URLSearchParams({ where: JSON.stringify(where) })}`,
          ]] as const
        ) {
          const response = await fetch(`${server.url}/api/admin/export/messages?format=csv${query}`, {
            headers: { Authorization: `Bearer ${world.admin}` },
            ...(body !== undefined && { method: "POST", body }),
          });
          await response.body?.cancel();
        }
      }
      const noted = await list();
      assert.equal(noted.length, before + 3 * asked.length);
      assert.ok(!JSON.stringify(noted).includes(sought), JSON.stringify(noted));
      const [refused, exported] = noted;
      assert.deepEqual([refused?.action, refused?.outcome, refused?.args], [
        "GET /api/admin/export/messages",
        "bad_request",
        { format: "csv", where: "…" },
      ]);
      assert.deepEqual([exported?.action, exported?.args], [
        "POST /api/admin/export/messages",
        { format: "csv", where: "…" },
      ]);
    },
  );

  await t.step("[AU1] a parameter of the request does not name another actor", async () => {
    const response = await fetch(`${server.url}/api/admin/import/messages?mode=none&by=Mallory`, {
      method: "POST",
      headers: { Authorization: `Bearer ${world.admin}` },
      body: "",
    });
    assert.equal(response.status, 400, await response.text());
    assert.deepEqual((await list())[0]?.args, { mode: "none" });
  });

  await t.step(
    "[AU1] dry runs are not recorded, and a revoked deploy key has its id, name and kind",
    async () => {
      const before = (await list()).length;
      const response = await fetch(`${server.url}/api/admin/import/messages?dryRun=true`, {
        method: "POST",
        headers: { Authorization: `Bearer ${world.admin}` },
        body: '{"channel":"c","body":"a"}',
      });
      assert.equal(response.status, 200, await response.text());
      assert.equal((await list()).length, before);
      const { keyId } = await ok("action", "_admin/apiKeys:create", { name: "CI", deploy: true });
      await ok("mutation", "_admin/apiKeys:revoke", { keyId });
      const [revoked] = await list();
      assert.deepEqual([revoked?.action, revoked?.args], [
        "_admin/apiKeys:revoke",
        { keyId, name: "CI", deploy: true },
      ]);
    },
  );

  await t.step(
    "[AU3] a failed mutation is not recorded; a failed action is recorded with its code",
    async () => {
      const before = await list();
      assert.equal((await call("mutation", "_admin/users:edit", { userId: "x" })).code, "user_not_found");
      assert.equal((await call("mutation", "_admin/users:edit", {})).status, 400);
      assert.deepEqual(await list(), before);
      await call("action", "_admin/users:create", { email: "new@example.com" });
      const [failed] = await list();
      assert.deepEqual([failed?.action, failed?.outcome], ["_admin/users:create", "email_in_use"]);
      await server.post("/api/admin/impersonate", { userId: "x" }, { bearer: world.admin });
      assert.equal((await list())[0]?.action, "_admin/users:create", "nothing was done");
    },
  );

  await t.step("[AU4] it is searched for text, such as the ID of a document", async () => {
    const { ids: [id, other] } = await ok("mutation", "_admin/data:insert", {
      table: "messages",
      documents: [{ channel: "c", body: "a" }, { channel: "c", body: "b" }],
    });
    await ok("mutation", "_admin/data:patch", { id: other, set: { body: "c" } });
    await ok("mutation", "_admin/data:patch", { id, set: { body: "d" } });
    const { documents } = await ok("mutation", "_admin/data:remove", { ids: [id, other] });
    await ok("mutation", "_admin/data:insert", { table: "messages", documents, restored: 1_000 });
    const actionsOf = async (args: object) => (await list(args)).map(({ action }) => action);
    assert.deepEqual(await actionsOf({ text: id.toUpperCase() }), [
      "_admin/data:insert",
      "_admin/data:remove",
      "_admin/data:patch",
    ]);
    assert.deepEqual((await list({ text: id }))[0]?.args, {
      table: "messages",
      documents: "(2)",
      restored: 1_000,
      ids: `${id}, ${other}`,
    });
    assert.deepEqual(await actionsOf({ text: id, action: "_admin/data:remove" }), ["_admin/data:remove"]);
    for (const absent of ["no such text", "null", '"table":']) {
      assert.deepEqual(await actionsOf({ text: absent }), [], absent);
    }
    assert.equal(await ok("query", "_admin/data:tableOf", { id }), "messages");
    assert.equal(await ok("query", "_admin/data:tableOf", { id: "x" }), null);
  });

  await t.step(
    "[AU4] it is filtered by administrator and action, and keeps removed administrators",
    async () => {
      const other = await world.addAdmin("second@example.com");
      await ok("mutation", "_admin/administrators:remove", { adminId: other.adminId }, other.accessToken);
      const theirs = await list({ adminId: other.adminId });
      assert.deepEqual(theirs.map(({ action, email }) => [action, email]), [
        ["_admin/administrators:remove", "second@example.com"],
      ]);
      const users = await list({ action: "_admin/users:" });
      assert.ok(users.length >= 2 && users.every(({ action }) => action.startsWith("_admin/users:")));
      assert.equal(
        (await call("mutation", "_admin/data:insert", { table: "_audit", documents: [{}] })).code,
        "unknown_table",
      );
    },
  );
});

Deno.test("[AU5] rows of the last 90 days are never deleted", async () => {
  const asked: unknown[] = [];
  const calls = new SystemCalls({
    mutate: ({ udfPath, args }) => {
      asked.push([udfPath, args]);
      const value = udfPath.endsWith(":cleanViews") ? "null" : "false";
      return Promise.resolve({ outcome: { ok: true, value, logLines: [] }, ts: 1, replayed: false });
    },
    query: () => Promise.reject(new Error("not asked")),
  });
  const now = Date.UTC(2030, 0, 1);
  const log = new AuditLog({ calls, log: () => {}, now: () => now });
  const [clean] = [...log.actions.values()];
  await clean?.run({}, { principal: null, userId: null, adminId: null, sessionId: null });
  const [[path, { before }]] = asked as [[string, { before: number }]];
  assert.equal(path, "_system/admin:cleanAudit");
  assert.ok(now - before >= 90 * 86_400_000);
});
