/** The query console: results, limits, traced reads with advice, and what such a query cannot do. */
import assert from "node:assert/strict";
import type { ConsoleRun } from "../../../mod/ops/admin/query_console.ts";
import { startWorld } from "./support/world.ts";

Deno.test("query console", async (t) => {
  await using world = await startWorld();
  const { ok, call, server } = world;
  const run = async (source: string, as: object | null = null): Promise<ConsoleRun> =>
    await ok("action", "_admin/functions:console", { source, as });
  const valueOf = async (source: string): Promise<unknown> => {
    const { result } = await run(source);
    assert.ok(result.ok, JSON.stringify(result));
    return result.value;
  };
  const errorOf = async (source: string): Promise<string> => {
    const { result } = await run(source);
    assert.ok(!result.ok);
    return result.error.message;
  };
  const documents = Array.from({ length: 30 }, (_, at) => ({
    channel: at % 3 === 0 ? "general" : "other",
    body: `Message ${at}`,
    likes: at,
  }));
  await ok("mutation", "_admin/data:insert", { table: "messages", documents });

  await t.step("DA22 a function in TypeScript runs at a snapshot and reports its reads", async () => {
    const { result, ms, ts, use, reads } = await run(
      `async (ctx: { db: any }): Promise<number> => {
        const found = await ctx.db.query("messages").withIndex("by_channel", (q: any) => q.eq("channel", "general")).collect();
        await ctx.db.get(found[0]._id);
        console.log("found", found.length);
        return found.length;
      }`,
    );
    assert.deepEqual(result, { ok: true, value: 10 });
    assert.ok(ms > 0 && ts !== null && ts > 0);
    assert.equal(use?.documentsRead, 11);
    assert.deepEqual(
      reads.map((
        { index, fields, calls, documents, returned, scan, advice },
      ) => [index, fields, calls, documents, returned, scan, advice]),
      [
        ["by_channel", ["channel"], 1, 10, 10, false, null],
        ["by_id", ["_id"], 1, 1, 1, false, null],
      ],
    );
  });

  await t.step("DA22 a filter that reads too much gets advice: another index, or a new one", async () => {
    const { reads: [scan] } = await run(
      `(ctx) => ctx.db.query("messages").filter((q) => q.eq(q.field("channel"), "general")).collect()`,
    );
    assert.deepEqual([scan?.scan, scan?.filtered, scan?.documents, scan?.returned], [
      true,
      ["channel"],
      30,
      10,
    ]);
    assert.match(scan?.advice ?? "", /read 30 documents and returned 10.*withIndex\("by_channel"\)/);
    const { reads: [partial] } = await run(
      `(ctx) => ctx.db.query("messages").withIndex("by_channel", (q) => q.eq("channel", "general"))
        .filter((message) => message.body === "Message 3").collect()`,
    );
    assert.match(partial?.advice ?? "", /\.index\("by_channel_body", \["channel","body"\]\) in messages/);
  });

  await t.step("DA22 a module may have helpers, imports and functions of the app", async () => {
    const value = await valueOf(`import { z } from "zod";
      interface Row { likes: number }
      const total = (rows: Row[]) => rows.reduce((sum, { likes }) => sum + likes, 0);
      export default async (ctx) => [
        total(await ctx.db.query("messages").take(2)), z.string().parse("text"),
        await ctx.runQuery("messages:secretCount", {}),
      ];`);
    assert.deepEqual(value, [1, "text", 30]);
  });

  await t.step("a filter may copy its documents", async () => {
    const source = `(ctx) => ctx.db.query("messages").filter((m) => structuredClone(m).likes > 27).collect()`;
    assert.equal((await valueOf(source) as unknown[]).length, 2);
    assert.match(
      await errorOf(`(ctx) => ctx.db.query("messages").filter(() => { throw new Error("no"); }).first()`),
      /no/,
    );
  });

  await t.step("DA22 it runs as a user", async () => {
    const source = "(ctx) => ctx.auth.userId()";
    assert.equal(await valueOf(source), null);
    const { result } = await run(source, { userId: world.userId });
    assert.deepEqual(result, { ok: true, value: world.userId });
    const answer = await call("action", "_admin/functions:console", { source, as: { userId: "none" } });
    assert.equal(answer.code, "user_not_found");
  });

  await t.step("errors contain the line, and only functions are accepted", async () => {
    assert.match(await errorOf("async (ctx) => {\n  return await await;\n}"), /^console\.ts:2:/);
    assert.match(await errorOf("42"), /must be a function/);
    assert.match(
      await errorOf('import "node:fs"; export const none = 1;'),
      /must be a function|not available/,
    );
    assert.match(await errorOf('(ctx) => ctx.db.query("none").collect()'), /none/);
    const { result } = await run('(ctx) => {\n  throw new Error("broken");\n}');
    assert.ok(!result.ok);
    assert.equal(result.error.message, "broken");
    assert.match(result.error.stack ?? "", /console\.ts:2:/);
    const tooLong = await call("action", "_admin/functions:console", { source: "x".repeat(200_000) });
    assert.equal(tooLong.status, 400);
  });

  await t.step("DA22 it cannot write, read secrets, files or the network, or reach the server", async () => {
    const channels = async () => (await ok("query", "_admin/data:count", { table: "channels" })).count;
    const before = await channels();
    assert.match(await errorOf('(ctx) => ctx.db.insert("channels", { name: "x" })'), /cannot write/);
    assert.match(await errorOf('(ctx) => ctx.db.query("_admins").collect()'), /_admins/);
    assert.match(await errorOf('(ctx) => ctx.runQuery("_admin/data:tables", {})'), /There is no function/);
    assert.match(
      await errorOf('(ctx) => ctx.runQuery("_system/admin:settingRows", {})'),
      /There is no function/,
    );
    assert.match(await errorOf('() => fetch("http://localhost")'), /not available/);
    assert.match(await errorOf('() => Deno.readTextFileSync("/etc/passwd")'), /not available/);
    assert.notEqual(
      await errorOf(
        `import text from "file:///etc/passwd" with { type: "text" }; export default () => text;`,
      ),
      "",
    );
    const own = import.meta.resolve("../../../mod/functions/isolate/runs/call.ts");
    assert.notEqual(
      await errorOf(`import { currentCall } from "${own}"; export default () => currentCall();`),
      "",
    );
    assert.match(await errorOf('() => import("node:child_process").then((m) => m.execSync("id"))'), /.+/);
    assert.equal(await valueOf("() => Object.keys(process.env).length"), 0);
    assert.equal(await channels(), before);
  });

  await t.step("DA22 the audit log has the tables and no text of the query", async () => {
    await run(`(ctx) => ctx.db.query("messages").filter((m) => m.body === "Message 7").first()`);
    const { page: [row] } = await ok("query", "_admin/audit:list", {
      paginationOpts: { cursor: null, numItems: 1 },
      action: "_admin/functions:console",
    });
    assert.deepEqual([row.outcome, row.args.tables, row.args.documents], ["ok", "messages", 8]);
    assert.doesNotMatch(JSON.stringify(row), /Message 7/);
  });

  await t.step(
    "DA22 a query of the app is explained, and the audit log has its name without arguments",
    async () => {
      const { result, reads } = await ok("action", "_admin/functions:console", {
        path: "messages:list",
        args: { channel: "private words" },
        as: null,
      });
      assert.deepEqual([result, reads[0].index], [{ ok: true, value: [] }, "by_channel"]);
      const { page: [row] } = await ok("query", "_admin/audit:list", {
        paginationOpts: { cursor: null, numItems: 1 },
      });
      assert.deepEqual([row.action, row.outcome, row.args], ["_admin/functions:console", "ok", {
        path: "messages:list",
        tables: "messages",
        documents: 0,
      }]);
    },
  );

  await t.step("AD15 viewers, users and signed-out callers cannot use it", async () => {
    const account = { email: "viewer@example.com", password: "correct horse battery" };
    await ok("action", "_admin/administrators:create", { ...account, role: "viewer" });
    const { accessToken } = await world.signInAdmin(account.email);
    const codeFor = async (bearer: string | null) =>
      (await call("action", "_admin/functions:console", { source: "() => 1" }, bearer)).code;
    assert.equal(await codeFor(accessToken), "role_required");
    assert.equal(
      (await call("action", "_admin/functions:console", { source: "() => 1" }, world.user)).status,
      404,
    );
    assert.equal((await call("action", "_admin/functions:console", { source: "() => 1" }, null)).status, 404);
    assert.ok(!server.logged.some((line) => line.startsWith("error")));
  });
});
