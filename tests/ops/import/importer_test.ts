/** Imports: writes in each mode, rejections and their messages. */
import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import { z } from "zod";
import { newId } from "../../../mod/engine/documents/ids.ts";
import { anonymous } from "../../../mod/functions/identity.ts";
import { action, defineTable, id, mutation, query } from "../../../mod/functions/api/mod.ts";
import { opsLimits } from "../../../mod/ops/limits.ts";
import { ImportError, type ImportSource } from "../../../mod/ops/tables/import/mod.ts";
import { ImportWorld, jsonl, source } from "./support/import_world.ts";

const tables = () => ({
  users: defineTable({ name: z.string() }).index("by_name", ["name"]),
  notes: defineTable({
    text: z.string(),
    stars: z.number().optional(),
    author: id("users").optional(),
  }).index("by_text", ["text"]),
});

Deno.test("[IM1] rows keep their ids and creation times, also referenced ones", async () => {
  await using from = new ImportWorld(tables());
  const author = await from.insert("users", { name: "Ann" });
  from.clock.now += 1_000;
  await from.insert("notes", { text: "one", author });
  await from.insert("notes", { text: "two", stars: 2 });
  const before = { users: await from.rows("users"), notes: await from.rows("notes") };

  await using to = new ImportWorld(tables());
  // The note first, because references are not checked.
  const notes = await to.import(source("notes", jsonl(before.notes)));
  const users = await to.import(source("users", jsonl(before.users)));
  assert.deepEqual({ users: await to.rows("users"), notes: await to.rows("notes") }, before);
  assert.deepEqual([notes.imported, notes.deleted, users.imported], [2, 0, 1]);
  assert.deepEqual([notes.ts, users.ts], [1, 2]);
});

Deno.test("[IM2] rows without an id get one, and those without a creation time the time of the import", async () => {
  await using world = new ImportWorld(tables());
  const own = await world.insert("notes", { text: "own" });
  const created = (await world.rows("notes"))[0]?.["_creationTime"];
  world.clock.now += 60_000;
  const free = (await world.insert("notes", { text: "gone" })).slice(0, 4);
  await world.import(
    source("notes", jsonl([{ text: "new" }, { text: "old", _creationTime: 5 }, { text: "owner", _id: own }])),
    "upsert",
  );
  const rows = await world.rows("notes");
  assert.deepEqual(rows.map(({ text }) => text), ["old", "owner", "gone", "new"]);
  assert.ok(rows.every(({ _id }) => String(_id).startsWith(free)));
  assert.equal(rows[0]?.["_creationTime"], 5);
  assert.equal(rows[1]?.["_creationTime"], created);
  assert.ok(Number(rows[3]?.["_creationTime"]) >= world.clock.now);
});

Deno.test("[IM3] insert rejects existing documents, upsert replaces them, replace empties the table first", async () => {
  await using world = new ImportWorld(tables());
  const kept = await world.insert("notes", { text: "kept", stars: 1 });
  await world.insert("notes", { text: "other" });
  const rows = jsonl([{ text: "new" }, { _id: kept, text: "changed" }]);
  const before = await world.rows("notes");
  assert.match(
    await world.refusal(source("notes", rows), "insert"),
    new RegExp(`^Nothing was imported\\.\nnotes\\.jsonl, line 2: .*"${kept}".*has it already$`),
  );
  assert.deepEqual(await world.rows("notes"), before);

  assert.equal((await world.import(source("notes", rows), "upsert")).imported, 2);
  assert.deepEqual(await world.fields("notes"), [{ text: "changed" }, { text: "other" }, { text: "new" }]);

  const { imported, deleted } = await world.import(source("notes", rows), "replace");
  assert.deepEqual([imported, deleted], [2, 3]);
  assert.deepEqual((await world.fields("notes")).map(({ text }) => text).sort(), ["changed", "new"]);

  const emptied = await world.import(source("notes", ""), "replace");
  assert.deepEqual([emptied.imported, emptied.deleted], [0, 2]);
  assert.deepEqual(await world.rows("notes"), []);
});

Deno.test("[IM3] replace deletes documents that existed at the start, but not later ones", async () => {
  await using world = new ImportWorld(tables());
  const documents = opsLimits.importDeletedRowsMax + 100;
  await world.import(source("notes", jsonl(Array.from({ length: documents }, () => ({ text: "old" })))));
  const inserted: Promise<string>[] = [];
  const file = source("notes", jsonl([{ text: "new" }]));
  const { deleted } = await world.import(file, "replace", ({ step }) => {
    if (step !== "deleted" || inserted.length >= 5) return;
    world.clock.now++;
    inserted.push(world.insert("notes", { text: "meanwhile" }));
  });
  await Promise.all(inserted);
  assert.equal(inserted.length, 2);
  assert.equal(deleted, documents);
  assert.deepEqual((await world.fields("notes")).map(({ text }) => text).sort(), [
    "meanwhile",
    "meanwhile",
    "new",
  ]);
});

Deno.test("[IM4] bad rows are reported with file, line and field, and nothing is written", async () => {
  await using world = new ImportWorld(tables());
  const user = await world.insert("users", { name: "Ann" });
  const good = JSON.stringify({ text: "good" });
  const cases: [string, RegExp][] = [
    [`{"text": "x"`, /Not JSON/],
    [`["x"]`, /Expected a JSON object .* received an array$/],
    ["null", /received null$/],
    ["3", /received a number$/],
    [`{"text": 3}`, /text: .*expected string, received number/],
    [`{"text": "x", "stars": 1e999}`, /stars: .*number/],
    [`{}`, /text: /],
    [`{"text": "x", "wrong": 1}`, /Unrecognized key.*"wrong"/],
    [`{"text": "x", "author": "${newId(1_000)}"}`, /author: Expected an id of table "users"/],
    [`{"text": "x", "_id": "${user}"}`, /it is an id of table "users"$/],
    [`{"text": "x", "_id": "${newId(1_000)}"}`, /it is not an id of this database$/],
    [`{"text": "x", "_id": "nonsense"}`, /"nonsense".*not an id/],
    [`{"text": "x", "_id": 5}`, /its _id must be a text/],
    [`{"text": "x", "_id": null}`, /its _id must be a text/],
    [`{"text": "x", "_creationTime": "yesterday"}`, /its _creationTime must be a number/],
    [`{"text": ${JSON.stringify("x".repeat(1_048_576))}}`, /longer than 1048576 characters/],
  ];
  for (const [line, message] of cases) {
    const [head, line3 = "", ...more] =
      (await world.refusal(source("notes", `${good}\n\n${line}\n${good}\n`)))
        .split("\n");
    assert.equal(head, "Nothing was imported.");
    assert.match(line3, /^notes\.jsonl, line 3: /);
    assert.match(line3, message);
    assert.deepEqual(more, []);
  }
  assert.deepEqual(await world.rows("notes"), []);
  assert.equal(world.host.ts, 1);
});

Deno.test("[IM4] bad rows are reported up to a limit, and the rest of the file is not read", async () => {
  await using world = new ImportWorld(tables());
  const rows = Array.from({ length: 100 }, (_, n) => n % 3 === 0 ? { text: n } : { text: String(n) });
  const lines = (await world.refusal(source("notes", jsonl(rows)))).split("\n");
  assert.equal(lines.length, opsLimits.importFaultsMax + 2);
  assert.deepEqual(
    lines.slice(1, -1).map((line) => Number(/line (\d+)/.exec(line)?.[1])),
    Array.from({ length: opsLimits.importFaultsMax }, (_, n) => n * 3 + 1),
  );
  assert.equal(lines.at(-1), "There may be more. The check stopped here.");
});

Deno.test("[IM4] a duplicate document is reported with both lines, however far apart", async () => {
  await using world = new ImportWorld(tables());
  await world.insert("notes", { text: "first" });
  const [doc] = await world.rows("notes");
  const between = Array.from({ length: 600 }, (_, n) => ({ text: String(n) }));
  const file = source("notes", jsonl([doc, ...between, doc]));
  assert.match(await world.refusal(file, "replace"), /line 602: .* first used in line 1$/);
  await world.import(source("notes", ""), "replace");
  assert.match(await world.refusal(file, "insert"), /line 602: .* first used in line 1$/);
  assert.deepEqual(await world.rows("notes"), []);
  const near = source("notes", jsonl([doc, doc]));
  assert.match(await world.refusal(near, "insert"), /line 2: .*(already)/);
  await world.import(near, "upsert");
  assert.deepEqual(await world.rows("notes"), [doc]);
});

Deno.test("[IM4] a file that is not UTF-8 or has an endless line is rejected with the line", async () => {
  await using world = new ImportWorld(tables());
  const latin1 = new Uint8Array([...new TextEncoder().encode('{"text":"a"}\n{"text":"'), 0xe9, 0x22, 0x7d]);
  assert.match(await world.refusal(source("notes", latin1)), /line 2: not UTF-8/);
  const endless = new TextEncoder().encode(
    `{"text":"a"}\n{"text":"${"x".repeat(opsLimits.importLineBytesMax)}`,
  );
  assert.match(await world.refusal(source("notes", endless)), /line 2: the line is longer than/);
  assert.deepEqual(await world.rows("notes"), []);
});

Deno.test("[IM5] other work runs while blank lines are skipped", async () => {
  await using world = new ImportWorld(tables());
  let turns = 0;
  let counting = true;
  const count = () => {
    turns++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  const text = `${"\n".repeat(1_000_000)}{"text":"a"}\n`;
  await world.import(source("notes", text, { pieceBytes: text.length }));
  counting = false;
  assert.ok(turns > 200, String(turns));
  await new Promise((resolve) => setImmediate(resolve));
});

Deno.test("[IM5] JSONL may have a byte order mark, CRLF, blank lines and any chunk boundaries", async () => {
  for (const pieceBytes of [1, 7, 1 << 16]) {
    await using world = new ImportWorld(tables());
    await world.import(source("notes", '\ufeff{"text":"ä"}\r\n\r\n  \n{"text":"€𝄞"}', { pieceBytes }));
    assert.deepEqual(await world.fields("notes"), [{ text: "ä" }, { text: "€𝄞" }]);
  }
});

Deno.test("[IM6] unknown and system tables are rejected", async () => {
  await using world = new ImportWorld(tables());
  for (const text of ["", jsonl([{ text: "x" }])]) {
    assert.match(await world.refusal(source("nothing", text)), /There is no table "nothing".*users, notes/);
    assert.match(await world.refusal(source("_users", text)), /Cannot import into table "_users"/);
  }
  await assert.rejects(
    world.import(source("nothing", "")),
    (error) => error instanceof ImportError && error.kind === "unknown_table",
  );
});

Deno.test("[IM7] rows are written in bounded commits, and progress is reported", async () => {
  await using world = new ImportWorld({ ...tables(), people: defineTable({ name: z.string() }) });
  const sizes: number[] = [];
  world.host.onCommits((entries) => sizes.push(...entries.map(({ changes }) => changes.length)));
  const rows = Array.from({ length: 600 }, (_, n) => ({ text: String(n) }));
  const reported: string[] = [];
  await world.import(
    source("notes", jsonl(rows)),
    "insert",
    ({ step, rows }) => reported.push(`${step} ${rows}`),
  );
  assert.deepEqual(sizes, [256, 256, 88]);
  assert.deepEqual(reported, [
    "checked 256",
    "checked 512",
    "checked 600",
    "written 256",
    "written 512",
    "written 600",
  ]);
  assert.deepEqual((await world.fields("notes")).map(({ text }) => Number(text)), rows.map((_, n) => n));
  const long = Array.from({ length: 4 }, () => ({ name: "x".repeat(300_000) }));
  sizes.length = 0;
  await world.import(source("people", jsonl(long)));
  assert.deepEqual(sizes, [1, 1, 1, 1]);
});

Deno.test("[IM7] with 20,000 rows at most one batch is read ahead, in both passes", async () => {
  await using world = new ImportWorld(tables());
  const rowBytes = 200;
  const row = new TextEncoder().encode(`${JSON.stringify({ text: "x".repeat(rowBytes - 12) })}\n`);
  assert.equal(row.length, rowBytes);
  let given = 0;
  let ahead = 0;
  let passes = 0;
  const file: ImportSource = {
    ...source("notes", ""),
    async *open() {
      passes++;
      for (given = 0; given < 20_000; given++) yield row;
    },
  };
  const { imported } = await world.import(file, "insert", ({ rows }) => {
    ahead = Math.max(ahead, given - rows);
  });
  assert.deepEqual([imported, passes, (await world.rows("notes")).length], [20_000, 2, 20_000]);
  assert.ok(ahead <= 1, `${ahead} rows were read ahead of those that the writer had`);
});

Deno.test("[IM8] an import stopped while writing reports its progress", async () => {
  await using world = new ImportWorld(tables());
  const victim = await world.insert("notes", { text: "was here" });
  const rows = [...Array.from({ length: 300 }, (_, n) => ({ text: String(n) })), {
    _id: victim,
    text: "late",
  }];
  let raced = false;
  const file = source("notes", jsonl(rows));
  const importing = world.import(file, "replace", ({ step, rows }) => {
    // The document is inserted again after the first batch.
    if (step !== "written" || rows !== 256 || raced) return;
    raced = true;
    const batch = { format: "jsonl", lines: [JSON.stringify({ _id: victim, text: "raced" })] };
    world.host.mutate({
      udfPath: "_system/import:write",
      args: { table: "notes", mode: "insert", batch },
      identity: anonymous,
      origin: "system",
    });
  });
  await assert.rejects(importing, (error) => {
    assert.ok(error instanceof ImportError);
    assert.equal(error.kind, "stopped");
    assert.match(error.message, /^notes\.jsonl, line 301: .*has it already\n/);
    assert.match(error.message, /1 document deleted before, 256 rows written and kept\./);
    return true;
  });
  assert.equal((await world.rows("notes")).length, 257);
});

Deno.test("[IM11] neither clients nor app code can call the import functions", async () => {
  const args = {
    table: "notes",
    mode: "insert" as const,
    batch: { format: "jsonl" as const, lines: [JSON.stringify({ text: "smuggled" })] },
  };
  await using world = new ImportWorld(tables(), {
    inCtx: query((ctx) => "importer" in ctx),
    inMutation: mutation(async (ctx) => ["importer" in ctx, await ctx.runMutation("look:nested", {})]),
    nested: mutation((ctx) => "importer" in ctx),
    fromMutation: mutation((ctx) => ctx.runMutation("_system/import:write", args)),
    fromAction: action((ctx) => ctx.runMutation("_system/import:write", args)),
  });
  assert.equal(await world.call("inCtx"), false);
  assert.deepEqual(await world.call("inMutation"), [false, false]);
  const unknown = /There is no function "_system\/import:write"/;
  await assert.rejects(world.call("fromMutation"), unknown);
  await assert.rejects(world.call("fromAction"), unknown);
  for (const origin of ["client", "server"] as const) {
    for (const name of ["check", "write", "empty"]) {
      const udfPath = `_system/import:${name}`;
      const { outcome } = await world.host.mutate({ udfPath, args, identity: anonymous, origin });
      assert.ok(!outcome.ok && outcome.error.kind === "unknown_function");
    }
  }
  assert.deepEqual(await world.rows("notes"), []);
  await world.import(source("notes", jsonl([{ text: "allowed" }])));
  assert.deepEqual(await world.fields("notes"), [{ text: "allowed" }]);
});
