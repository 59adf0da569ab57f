/** Environment variables stored by the server: access, precedence, encryption. */
import assert from "node:assert/strict";
import { startDeployWorld } from "./support.ts";

Deno.test("environment variables are stored by the server", async (t) => {
  await using world = await startDeployWorld({ config: { actionEnv: { GIVEN: "by the operator" } } });
  const { server, admin, admin_, call } = world;
  const env = () => call("action", "notes:env");
  assert.deepEqual(await env(), { GIVEN: "by the operator" });

  await t.step("EV1 they apply to actions started later, without and after a restart", async () => {
    const { status, body } = await admin_("PATCH", "/functions/env", {
      API_KEY: "a secret text",
      OTHER: "1",
    });
    assert.deepEqual([status, body], [200, { overridden: [] }]);
    assert.deepEqual(await env(), { GIVEN: "by the operator", API_KEY: "a secret text", OTHER: "1" });
    await server.restart();
    assert.deepEqual(await env(), { GIVEN: "by the operator", API_KEY: "a secret text", OTHER: "1" });
    await call("action", "_admin/env:set", { changes: { OTHER: null } }, admin);
    assert.deepEqual(await env(), { GIVEN: "by the operator", API_KEY: "a secret text" });
  });

  await t.step("EV2 --env-file takes precedence, and the answer reports it", async () => {
    const { body } = await admin_("PATCH", "/functions/env", { GIVEN: "by an administrator" });
    assert.deepEqual(body, { overridden: ["GIVEN"] });
    assert.equal((await env()).GIVEN, "by the operator");
    assert.deepEqual(await call("action", "_admin/env:list", {}, admin), [
      { name: "API_KEY", value: "a secret text", overridden: false },
      { name: "GIVEN", value: "by an administrator", overridden: true },
    ]);
  });

  await t.step(
    "EV3 they are stored encrypted in the data folder, and the audit log contains names only",
    async () => {
      for await (const { name, isFile } of Deno.readDir(server.dataDir)) {
        if (!isFile) continue;
        const text = new TextDecoder("latin1").decode(await Deno.readFile(`${server.dataDir}/${name}`));
        assert.ok(!text.includes("a secret text"), name);
      }
      const { page } = await call(
        "query",
        "_admin/audit:list",
        { paginationOpts: { cursor: null, numItems: 10 } },
        admin,
      );
      assert.ok(page.some(({ args }: { args: object }) => JSON.stringify(args).includes("API_KEY")));
      assert.ok(!JSON.stringify(page).includes("a secret text"));
    },
  );

  await t.step(
    "EV4 invalid names and long values are rejected, and nothing changes",
    async () => {
      for (
        const changes of [
          { "1A": "x" },
          { "A-B": "x" },
          { A: 1 },
          { A: "x".repeat(16 * 1024 + 1) },
          Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`V${at}`, "x"])),
        ]
      ) {
        const { status } = await admin_("PATCH", "/functions/env", { ...changes });
        assert.equal(status, 400);
      }
      assert.deepEqual(await env(), { GIVEN: "by the operator", API_KEY: "a secret text" });
    },
  );
});
