/** Anonymous users on a whole server: live queries, the statistics, exports, and a restored backup. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { createBackup } from "../../../mod/ops/backups/backup.ts";
import { stageRestore } from "../../../mod/ops/backups/restore/mod.ts";
import { testConfig } from "../../server/support/fake_backend.ts";
import { bearerOf, startTestServer, type TestSocket } from "./test_server.ts";

const functions = {
  "who.ts": `import { untypedQuery } from "syncline/server";
    export const isAnonymous = untypedQuery((ctx) => ctx.auth.isAnonymous());`,
};

/** Subscribes to `who:isAnonymous`. Returns a function that waits for a result. */
async function watch(socket: TestSocket): Promise<(expected: boolean) => Promise<unknown>> {
  await socket.identityVersion(1);
  socket.subscribe("who:isAnonymous");
  return (expected) =>
    socket.message(({ modifications = [] }) =>
      modifications.some(({ value }: { value?: unknown }) => value === expected)
    );
}

Deno.test("AN4 anonymous users are known in live queries, the statistics and a restored backup, but not in exports", async (t) => {
  const { policy } = testConfig({ dataDir: "" }).accounts;
  await using server = await startTestServer({
    functions,
    accounts: { policy: { ...policy, anonymous: true } },
  });
  const admin = await bearerOf(server);
  const anonymous = (await server.post("/api/auth/anonymous", {})).body;
  const account = { email: "a@example.com", password: "correct horse" };
  const user = (await server.post("/api/auth/signup", account)).body;

  await t.step(
    "/api/admin/stats lists the tables of anonymous users and devices, and no export has them",
    async () => {
      const get = (path: string) =>
        fetch(`${server.url}/api/admin/${path}`, { headers: { Authorization: `Bearer ${admin}` } });
      let tables: { tables: { table: string; documents: number }[] } | null = null;
      while (tables === null) ({ tables } = await (await get("stats")).json());
      for (const [name, documents] of [["_anonymous_users", 1], ["_devices", 3]] as const) {
        assert.equal(tables.tables.find(({ table }) => table === name)?.documents, documents, name);
        const exported = await get(`export/${name}`);
        await exported.body?.cancel();
        assert.equal(exported.status, 404, name);
      }
    },
  );

  const archive = join(server.dataDir, "..", "one.tar.zst");
  const parts = { withAux: false, withFiles: false, includeSecret: false };
  await createBackup({ dataDir: server.dataDir, out: archive, ...parts });

  await t.step(
    "AN4 a live query is answered for each user, and again when the user is no longer anonymous",
    async () => {
      await using one = await server.socket(anonymous.accessToken);
      const changes = await watch(one);
      await changes(true);
      await using other = await server.socket(user.accessToken);
      await (await watch(other))(false);
      const edit = { userId: anonymous.userId, email: "b@example.com" };
      const edited = await server.post("/api/mutation", { path: "_admin/users:edit", args: edit }, {
        bearer: admin,
      });
      assert.equal(edited.status, 200, JSON.stringify(edited.body));
      await changes(false);
    },
  );

  await t.step("a restored backup has the anonymous users of its time", async () => {
    const isAnonymous = async () => {
      const call = { path: "who:isAnonymous", args: {} };
      return (await server.post("/api/query", call, { bearer: anonymous.accessToken })).body.value;
    };
    assert.equal(await isAnonymous(), false);
    await server.restart(async () => {
      await stageRestore({ dataDir: server.dataDir, archive, source: "one", withSecret: false });
    });
    assert.equal(await isAnonymous(), true);
  });
});
