/** Parts that the other version lacks are listed before and when it is served. */
import assert from "node:assert/strict";
import { changesText } from "../../../mod/cli/deploy/deploy_text.ts";
import { appWith, firstApp, startDeployWorld } from "./support.ts";

const richer = appWith({
  "functions/schema.ts": (text) =>
    text.replace(
      "drafts:",
      `orders: defineTable({ body: z.string() }).index("by_body", ["body"]), drafts:`,
    ).replace(
      'index("by_body", ["body"])',
      'index("by_body", ["body"]).index("by_more", ["body", "_creationTime"])',
    ),
  "functions/notes.ts": (text) =>
    text + `
    export const order = untypedMutation({ args: { body: z.string() }, handler: async (ctx, args) => {
      await ctx.db.insert("orders", args);
      await ctx.scheduler.runAfter(3_600_000, "notes:remind", {});
      await ctx.scheduler.runAfter(3_600_000, "notes:ship", {});
      await ctx.scheduler.runAfter(3_600_000, "notes:add", { body: "later" });
    } });
    export const remind = untypedMutation({ handler: () => null });
    export const ship = untypedAction({ handler: () => null });`,
  "functions/crons.ts": () => `
    import { cronJobs } from "syncline/server";
    const crons = cronJobs();
    crons.interval("remind", { hours: 5 }, "notes:remind", {});
    export default crons;`,
});

Deno.test("DP17 tables, indexes, cron jobs and pending jobs that the other version lacks are listed and kept", async (t) => {
  await using world = await startDeployWorld();
  const { admin, admin_, call } = world;
  const first = await world.deploy(firstApp);
  const deployed = await world.deploy(richer);
  assert.equal(deployed.status, 200, deployed.body.errorMessage);
  assert.deepEqual(deployed.body.changes.crons, { added: ["remind"], removed: [], changed: [] });
  assert.deepEqual(deployed.body.changes.jobs, { lost: [], complete: true });
  for (const body of ["one", "two"]) await call("mutation", "notes:order", { body });

  const back = { hash: first.body.hash };
  const lost = [{ function: "notes:remind", jobs: 2 }, { function: "notes:ship", jobs: 2 }];
  for (const dryRun of [true, false]) {
    const { status, body } = await admin_("POST", "/functions/rollback", { ...back, dryRun });
    assert.equal(status, 200, body.errorMessage);
    assert.deepEqual(body.changes.schema.unreachable, [{ table: "orders", documents: 2 }]);
    assert.deepEqual(body.changes.schema.droppedIndexes, ["notes.by_more"]);
    assert.deepEqual(body.changes.crons, { added: [], removed: ["remind"], changed: [] });
    assert.deepEqual(body.changes.jobs, { lost, complete: true });
    const text = changesText(body.changes);
    assert.match(text, /^! table orders is not in the schema: 2 documents of it stay in the database/m);
    assert.match(text, /^- index notes\.by_more$/m);
    assert.match(text, /^! cron remind is not in this version: it does not run any more$/m);
    assert.match(
      text,
      /^! function notes:ship is not in this version: 2 waiting jobs call it and fail when they are due/m,
    );
  }
  // The data, the index's documents and the jobs are there again with the version.
  const again = await admin_("POST", "/functions/rollback", { hash: deployed.body.hash });
  assert.deepEqual(again.body.changes.jobs, { lost: [], complete: true });
  const { page } = await call("query", "_admin/schedule:jobs", {
    paginationOpts: { cursor: null, numItems: 10 },
    state: "pending",
  }, admin);
  assert.equal(page.length, 6);

  await t.step(
    "DP17 another schedule of a cron job is a change, and output of an older server is still formatted",
    async () => {
      const { body } = await world.deploy({
        ...richer,
        "functions/crons.ts": (richer["functions/crons.ts"] ?? "").replace("hours: 5", "hours: 6"),
      }, { query: "?dryRun=true" });
      assert.deepEqual(body.changes.crons, { added: [], removed: [], changed: ["remind"] });
      assert.match(changesText(body.changes), /^~ cron remind$/m);
      const { crons: _, jobs: __, codeChanged, ...older } = body.changes;
      assert.equal(codeChanged, true);
      const files = { added: 0, removed: 0, changed: 1 };
      assert.match(changesText({ ...older, files }), /^0 files added, 0 removed, 1 changed$/m);
    },
  );
});
