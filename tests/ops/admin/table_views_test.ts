/** Saved views of tables, and labels of referenced documents. */
import assert from "node:assert/strict";
import { opsLimits } from "../../../mod/ops/limits.ts";
import { until } from "../../support/waiting.ts";
import { startWorld } from "./support/world.ts";

Deno.test("views of tables and labels of documents", async (t) => {
  await using world = await startWorld();
  const { ok, call } = world;
  const view = { table: "messages", filters: "field=likes&op=gt&value=1", hidden: ["meta"], frozen: 2 };
  const { accessToken: other, adminId } = await world.addAdmin("other@example.com");

  await t.step("DA20 a view is stored for its administrator only, and replaced by its name", async () => {
    const list = (bearer?: string) => ok("query", "_admin/views:list", { table: "messages" }, bearer);
    await ok("mutation", "_admin/views:save", { ...view, name: "Liked", widths: { body: 400 } });
    await ok("mutation", "_admin/views:save", { ...view, name: "Liked", widths: { body: 300 } });
    await ok("mutation", "_admin/views:save", { ...view, name: "", widths: {} }, other);
    const { table: _, ...stored } = view;
    assert.deepEqual(await list(), [{ ...stored, name: "Liked", widths: { body: 300 } }]);
    assert.deepEqual((await list(other)).map(({ name }: { name: string }) => name), [""]);
    assert.deepEqual(await ok("query", "_admin/views:list", { table: "channels" }), []);
    await ok("mutation", "_admin/views:remove", { table: "messages", name: "Liked" }, other);
    assert.equal((await list()).length, 1);
    await ok("mutation", "_admin/views:remove", { table: "messages", name: "Liked" });
    assert.deepEqual(await list(), []);
  });

  await t.step("DA20 a query of the console is stored like a view, without a table", async () => {
    const query = { name: "Open", query: "async (ctx) => 1" };
    const saved = { ...query, filters: "", hidden: [], widths: {}, frozen: 0 };
    await ok("mutation", "_admin/views:saveQuery", query);
    assert.deepEqual(await ok("query", "_admin/views:list", { table: "" }), [saved]);
    assert.deepEqual(await ok("query", "_admin/views:list", { table: "" }, other), []);
    const long = { ...query, query: "x".repeat(opsLimits.viewQueryCharsMax + 1) };
    assert.equal((await call("mutation", "_admin/views:saveQuery", long)).status, 400);
    await ok("mutation", "_admin/views:remove", { table: "", name: "Open" });
  });

  await t.step("DA20 views are not in the audit log", async () => {
    const { page } = await ok("query", "_admin/audit:list", {
      paginationOpts: { cursor: null, numItems: 10 },
      action: "_admin/views:",
    });
    assert.deepEqual(page, []);
  });

  await t.step("the number of views is bounded, and named views replace arranged columns", async () => {
    const save = (table: string, name: string) =>
      call("mutation", "_admin/views:save", { ...view, table, name, widths: {} });
    await save("channels", "");
    const calls = Array.from({ length: opsLimits.viewsMax }, (_, at) => save("messages", `View ${at}`));
    assert.ok((await Promise.all(calls)).every(({ status }) => status === 200));
    assert.deepEqual(await ok("query", "_admin/views:list", { table: "channels" }), []);
    assert.equal((await save("messages", "One more")).code, "too_many_views");
    assert.equal((await save("messages", "View 1")).status, 200, "replaces one");
  });

  await t.step("the largest views of an administrator can be listed, replaced and deleted", async () => {
    const { accessToken: full, adminId: removed } = await world.addAdmin("full@example.com");
    const query = "\u{1f600}".repeat(opsLimits.viewQueryCharsMax / 2);
    for (let at = 0; at < opsLimits.viewsMax; at++) {
      await ok("mutation", "_admin/views:saveQuery", { name: `Query ${at}`, query }, full);
    }
    const list = () => ok("query", "_admin/views:list", { table: "" }, full);
    assert.equal((await list()).length, opsLimits.viewsMax);
    await ok("mutation", "_admin/views:saveQuery", { name: "Query 1", query: "short" }, full);
    await ok("mutation", "_admin/views:remove", { table: "", name: "Query 2" }, full);
    assert.equal((await list()).length, opsLimits.viewsMax - 1);
    await ok("mutation", "_admin/administrators:remove", { adminId: removed });
  });

  await t.step("views of a removed administrator are deleted", async () => {
    await ok("mutation", "_admin/administrators:remove", { adminId });
    await ok("mutation", "_admin/schedule:runCronNow", { name: "svc-clean-audit" });
    await until(async () => {
      const crons = await ok("query", "_admin/schedule:crons");
      return crons.find(({ name }: { name: string }) => name === "svc-clean-audit").lastState?.kind ===
        "success";
    });
    const { tables } = await ok("action", "_admin/data:sizes");
    const stored = tables.find(({ table }: { table: string }) => table === "_admin_views");
    assert.equal(stored.documents, opsLimits.viewsMax);
  });

  await t.step(
    "documents have labels: a field that names them, or none; missing ones are left out",
    async () => {
      const { ids: [channel] } = await ok("mutation", "_admin/data:insert", {
        table: "channels",
        documents: [{ name: "General" }],
      });
      const { ids: [message, gone] } = await ok("mutation", "_admin/data:insert", {
        table: "messages",
        documents: [{ channel: "general", body: "hi" }, { channel: "general", body: "bye" }],
      });
      await ok("mutation", "_admin/data:remove", { ids: [gone] });
      const ids = [channel, message, gone, world.userId, world.adminId, "nothing"];
      assert.deepEqual(await ok("query", "_admin/data:labels", { ids }), {
        [channel]: "General",
        [message]: null,
        [world.userId]: "ada@example.com",
      });
      const choices = (text: string) => ok("query", "_admin/data:choices", { table: "channels", text });
      assert.deepEqual(await choices("GEN"), [{ id: channel, label: "General" }]);
      assert.deepEqual(await choices(channel), [{ id: channel, label: "General" }]);
      assert.deepEqual(await choices("other"), []);
      assert.equal(
        (await call("query", "_admin/data:choices", { table: "_admins", text: "" })).code,
        "unknown_table",
      );
      assert.equal(
        (await call("query", "_admin/data:choices", { table: "none", text: "" })).code,
        "bad_request",
      );
    },
  );
});
