/** Migrations: an internal mutation runs once for each document of a table, across interruptions. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { found } from "../../support/waiting.ts";
import { startDeployWorld } from "./support.ts";

const functions = {
  "schema.ts": `
    import { defineSchema, defineTable } from "syncline/server";
    import { z } from "zod";
    export default defineSchema({
      notes: defineTable({ body: z.string(), kind: z.string().optional(), runs: z.number() }),
      log: defineTable({ kind: z.string() }),
    });`,
  "notes.ts": `
    import { id, untypedInternalMutation, untypedMutation, untypedQuery } from "syncline/server";
    import { z } from "zod";
    export const list = untypedQuery({ handler: async (ctx) => await ctx.db.query("notes").collect() });
    export const add = untypedMutation({ args: { count: z.number() }, handler: async (ctx, { count }) => {
      for (let at = 0; at < count; at++) await ctx.db.insert("notes", { body: "note " + at, runs: 0 });
    } });
    export const addKind = untypedInternalMutation({ args: { id: id("notes") }, handler: async (ctx, { id }) => {
      const note = await ctx.db.get(id);
      await ctx.db.patch(id, { kind: "note", runs: note.runs + 1 });
    } });
    export const slowly = untypedInternalMutation({ args: { id: id("notes") }, handler: async (ctx, { id }) => {
      let spun = 0;
      for (let at = 0; at < 1_000_000; at++) spun = (spun * 31 + at) % 1_000_003;
      const note = await ctx.db.get(id);
      await ctx.db.patch(id, { runs: note.runs + (spun < 0 ? 2 : 1) });
    } });
    export const split = untypedInternalMutation({ args: { id: id("notes") }, handler: async (ctx, { id }) => {
      const { _id, _creationTime, ...fields } = await ctx.db.get(id);
      await ctx.db.insert("notes", fields);
      await ctx.db.delete(id);
    } });
    export const picky = untypedInternalMutation({ args: { id: id("notes") }, handler: async (ctx, { id }) => {
      await ctx.db.patch(id, { kind: "picky" });
      if ((await ctx.db.get(id)).body === "note 30") throw new Error("not this one");
    } });
    export const open = untypedMutation({ args: { id: id("notes") }, handler: () => null });
    export const watch = untypedInternalMutation({ handler: () => null });`,
};

interface Note {
  readonly _id: string;
  readonly body: string;
  readonly kind?: string;
  readonly runs: number;
}

/** Whether the next start must continue a migration of a stopped server. */
function isLeft(dataDir: string, migrationId: string): boolean {
  using database = new DatabaseSync(join(dataDir, "data.db"), { readOnly: true });
  const table = database.prepare("SELECT number FROM syncline_tables WHERE name = '_migrations'").get();
  const row = database.prepare(`SELECT doc FROM d${table?.["number"]} WHERE id = ?`).get(migrationId);
  return JSON.parse(String(row?.["doc"])).onServer === true;
}

Deno.test("a table is migrated while the app serves", async (t) => {
  await using world = await startDeployWorld({ functions });
  const { server, admin, call } = world;
  const act = (name: string, args: object) => call("action", `_admin/migrations:${name}`, args, admin);
  const refused = async (name: string, args: object) => {
    const { body } = await server.post("/api/action", { path: `_admin/migrations:${name}`, args }, {
      bearer: admin,
    });
    return [body.errorData?.code, body.errorMessage] as const;
  };
  const notes = (): Promise<Note[]> => call("query", "notes:list");
  const place = { path: "notes:addKind", table: "notes" };
  await call("mutation", "notes:add", { count: 100 });

  await t.step("MG2 a dry run tries some documents and rolls back", async () => {
    assert.deepEqual(await act("tryOut", place), { documents: 20, changed: 20 });
    assert.ok((await notes()).every(({ kind, runs }) => kind === undefined && runs === 0));
    assert.deepEqual((await refused("tryOut", { ...place, path: "notes:none" }))[0], "unknown_function");
  });

  await t.step(
    "MG1 MG3 each document is migrated once, in steps between which others write, also across a restart",
    async () => {
      const begun = await act("begin", place);
      assert.deepEqual([begun.documents, begun.resumed], [0, false]);
      const first = await act("step", { migrationId: begun.migrationId, rows: 30 });
      assert.deepEqual([first.documents, first.done], [30, false]);
      // They are created later, by the code live at that time.
      await call("mutation", "notes:add", { count: 5 });
      await server.restart();
      const again = await act("begin", place);
      assert.deepEqual([again.migrationId, again.documents, again.resumed], [begun.migrationId, 30, true]);
      let rows = 30;
      for (;;) {
        const step = await act("step", { migrationId: begun.migrationId, rows });
        assert.ok(step.rows >= 1 && step.rows <= 256);
        rows = 30;
        if (!step.done) continue;
        assert.equal(step.documents, 100);
        break;
      }
      const all = await notes();
      assert.deepEqual(all.slice(0, 100).map(({ runs }) => runs), Array(100).fill(1));
      assert.deepEqual(all.slice(100).map(({ runs }) => runs), Array(5).fill(0));
    },
  );

  await t.step("MG1 documents inserted and deleted by the mutation are not visited", async () => {
    const { migrationId } = await act("begin", { path: "notes:split", table: "notes" });
    let documents = 0;
    for (let done = false; !done;) ({ documents, done } = await act("step", { migrationId, rows: 50 }));
    assert.equal(documents, 105);
    assert.equal((await notes()).length, 105);
  });

  await t.step(
    "MG4 a failing document is named, earlier ones are kept, and the migration resumes there",
    async () => {
      const { migrationId } = await act("begin", { path: "notes:picky", table: "notes" });
      assert.equal((await act("step", { migrationId, rows: 20 })).documents, 20);
      // A failing step is retried with half of its documents.
      assert.equal((await act("step", { migrationId, rows: 20 })).documents, 30);
      const unfit = (await notes()).find(({ body }) => body === "note 30");
      const [code, message] = await refused("step", { migrationId, rows: 20 });
      assert.equal(code, "migration_failed");
      assert.match(message, new RegExp(`notes:picky failed for document ${unfit?._id}: not this one`));
      assert.equal((await notes()).filter(({ kind }) => kind === "picky").length, 30);
      assert.equal((await act("begin", { path: "notes:picky", table: "notes" })).documents, 30);
      const restarted = await act("begin", { path: "notes:picky", table: "notes", fromStart: true });
      assert.deepEqual([restarted.documents, restarted.resumed], [0, false]);
      assert.equal((await refused("step", { migrationId }))[0], "migration_not_found");
    },
  );

  await t.step("MG1 documents with creation times in the future are migrated too", async () => {
    const ahead = { body: "ahead", runs: 0, _creationTime: Date.now() + 3_600_000 };
    const rows = new TextEncoder().encode(`${JSON.stringify(ahead)}\n`);
    const imported = await world.admin_("POST", "/import/notes", rows);
    assert.equal(imported.status, 200, imported.body.errorMessage);
    await call("mutation", "notes:add", { count: 1 });
    const { migrationId } = await act("begin", { ...place, fromStart: true });
    while (!(await act("step", { migrationId })).done);
    assert.deepEqual((await notes()).slice(-2).map(({ runs }) => runs), [1, 1]);
  });

  interface Listed {
    readonly migrationId: string;
    readonly path: string;
    readonly state: string;
    readonly onServer: boolean;
    readonly error: string | null;
    readonly documents: number;
  }
  const list = (): Promise<Listed[]> => call("query", "_admin/migrations:list", {}, admin);
  const ended = (migrationId: string) =>
    found(async () =>
      (await list()).find((listed) => listed.migrationId === migrationId && !listed.onServer)
    );
  const runsOf = async () => (await notes()).map(({ runs }) => runs);

  await t.step("MG5 the server runs a migration on its own and resumes it after a restart", async () => {
    await call("mutation", "notes:add", { count: 300 });
    const slow = { path: "notes:slowly", table: "notes", fromStart: true };
    let [before, migrationId, left]: [number[], string, boolean] = [[], "", false];
    // If it finished before the server stopped, it is run again.
    for (let tries = 0; !left; tries++) {
      assert.ok(tries < 10, "the migration was never running when the server stopped");
      before = await runsOf();
      ({ migrationId } = await act("run", slow));
      await server.restart(() => {
        left = isLeft(server.dataDir, migrationId);
        return Promise.resolve();
      });
    }
    const { state, error, documents } = await ended(migrationId);
    assert.deepEqual([state, error, documents], ["done", null, before.length]);
    assert.deepEqual(await runsOf(), before.map((runs) => runs + 1));
  });

  await t.step("MG5 it stops after a step on request and can be resumed", async () => {
    const before = await runsOf();
    const { migrationId } = await act("run", { ...place, fromStart: true });
    await call("mutation", "_admin/migrations:halt", { migrationId }, admin);
    const left = await ended(migrationId);
    // No document is migrated twice, wherever it stopped.
    assert.equal((await runsOf()).filter((runs, at) => runs !== before[at]).length, left.documents);
    if (left.state === "running") assert.equal((await act("run", place)).migrationId, migrationId);
    assert.equal((await ended(migrationId)).state, "done");
    assert.deepEqual(await runsOf(), before.map((runs) => runs + 1));
  });

  await t.step("MG5 MG4 a failure is reported, and the migration can be resumed", async () => {
    // The name of `fromStart` in commands of older versions.
    const { migrationId } = await act("run", { path: "notes:picky", table: "notes", anew: true });
    const first = await ended(migrationId);
    assert.match(first.error ?? "", /notes:picky failed for document .*: not this one/);
    assert.equal(first.state, "running");
    await act("run", { path: "notes:picky", table: "notes" });
    assert.deepEqual(await ended(migrationId), first);
  });

  await t.step("MG4 only an internal mutation and an app table are accepted", async () => {
    for (const path of ["notes:open", "notes:list", "notes:none", "_system/deploy:addKey"]) {
      const [code, message] = await refused("begin", { path, table: "notes" });
      assert.equal(code, "unknown_function", path);
      assert.match(message, /internalMutation/);
    }
    for (const table of ["none", "_users"]) {
      assert.equal((await refused("begin", { path: "notes:addKind", table }))[0], "unknown_table");
    }
    const { body } = await server.post("/api/action", { path: "_admin/migrations:begin", args: place });
    assert.match(body.errorMessage, /There is no function/);
  });
});
