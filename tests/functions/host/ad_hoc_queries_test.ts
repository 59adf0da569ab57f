/** Queries that are not part of the app: limits, and the processes in which they run. */
import assert from "node:assert/strict";
import { anonymous } from "../../../mod/functions/identity.ts";
import { until } from "../../support/waiting.ts";
import { RealHost } from "./support/real_host.ts";

const files = {
  "schema.ts": `import { defineSchema, defineTable } from "syncline/server";
    import { z } from "zod";
    export default defineSchema({ notes: defineTable({ text: z.string() }) });`,
  "notes.ts": `import { untypedMutation, untypedQuery } from "syncline/server";
    export const count = untypedQuery({ handler: async (ctx) => (await ctx.db.query("notes").collect()).length });
    export const add = untypedMutation({ handler: (ctx) => ctx.db.insert("notes", { text: "new" }) });`,
};

Deno.test("DA22 a query that does not end or fills its memory is ended alone", async () => {
  await using it = await RealHost.start(files, {
    hurry: 5,
    // Mutations have as long as the query that does not end.
    timeouts: { queryMs: 30_000, mutationMs: 30_000 },
  });
  const run = (source: string) => it.host.swaps.adHoc.run(source, anonymous);
  const messageOf = async (source: string) => {
    const { outcome } = await run(source);
    assert.ok(!outcome.ok);
    return outcome.error.message;
  };
  const endless = messageOf("() => { for (;;); }");
  await assert.rejects(run("() => 1"), { code: "overloaded" });
  let process: number | undefined;
  await until(async () => ([process] = await it.pids("reader")).length === 1);
  await it.mutate("notes:add");
  assert.equal(await it.query("notes:count"), 1);
  assert.match(await endless, /^The query took longer than 30 s$/);
  assert.match(
    await messageOf("() => { const all = []; for (;;) all.push(new Array(1e6).fill(all.length)); }"),
    /out of memory|took longer/,
  );
  assert.match(await messageOf("(() => { throw new Error('at the top'); })()"), /at the top/);
  assert.match(await messageOf("() => 'x'.repeat(40_000_000)"), /result/i);
  const { outcome, reads } = await run("(ctx) => ctx.db.query('notes').count()");
  assert.deepEqual([outcome.ok && outcome.value, reads.length], ["1", 1]);
  assert.equal(await it.query("notes:count"), 1, "queries of the app still run");
  await until(async () => !(await it.pids("reader")).some((pid) => pid === process));
});
