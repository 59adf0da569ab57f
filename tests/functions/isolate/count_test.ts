/** `count()` of queries: results, dependencies, cost, and errors. */
import assert from "node:assert/strict";
import { z } from "zod";
import { UsageMeter } from "../../../mod/engine/usage.ts";
import { type DataModelOf, defineSchema, defineTable, type Id } from "../../../mod/functions/api/mod.ts";
import { functionLimits } from "../../../mod/limits.ts";
import { TestDatabase } from "./database_support.ts";

const schema = defineSchema({
  items: defineTable({ kind: z.string(), rank: z.number(), text: z.string().default("") })
    .index("by_kind_rank", ["kind", "rank"])
    .searchIndex("by_text", { searchField: "text" }),
});

/** A database with items a1, a2, a3, and b1. */
async function filled() {
  const database = new TestDatabase<DataModelOf<typeof schema>>(schema);
  const ids = await database.write(async (db) => {
    const ids: Id<"items">[] = [];
    for (const [kind, rank] of [["a", 1], ["a", 2], ["a", 3], ["b", 1]] as const) {
      ids.push(await db.insert("items", { kind, rank }));
    }
    return ids;
  });
  return { database, ids };
}

Deno.test("CN1: count counts the rows of tables, ranges and built-in indexes, in any order", async () => {
  const { database, ids } = await filled();
  using _database = database;
  await database.read(async (db) => {
    const items = () => db.query("items");
    const ranks = () =>
      items().withIndex("by_kind_rank", (q) => q.eq("kind", "a").gt("rank", 1).lte("rank", 3));
    assert.equal(await items().count(), 4);
    assert.equal(await items().withIndex("by_kind_rank").count(), 4);
    assert.equal(await items().withIndex("by_kind_rank", (q) => q.eq("kind", "c")).count(), 0);
    assert.equal(await ranks().count(), 2);
    const descending = ranks().order("desc") as ReturnType<typeof ranks>;
    assert.equal(await descending.count(), 2);
    assert.equal(await items().withIndex("by_id", (q) => q.eq("_id", ids[0] ?? assert.fail())).count(), 1);
    assert.equal(await items().withIndex("by_id").count(), 4);
    const empty = items().withIndex("by_kind_rank", (q) => q.eq("kind", "a").gt("rank", 3).lt("rank", 2));
    assert.equal(await empty.count(), 0);
  });
});

Deno.test("a mutation counts its own writes, and a failed one leaves none behind", async () => {
  const { database, ids } = await filled();
  using _database = database;
  const ofA = () =>
    database.read((db) => db.query("items").withIndex("by_kind_rank", (q) => q.eq("kind", "a")).count());
  await assert.rejects(
    database.write(async (db) => {
      const counted = () => db.query("items").withIndex("by_kind_rank", (q) => q.eq("kind", "a")).count();
      await db.insert("items", { kind: "a", rank: 9 });
      assert.equal(await counted(), 4);
      await db.delete(ids[0] ?? assert.fail());
      await db.patch(ids[1] ?? assert.fail(), { kind: "b" });
      assert.equal(await counted(), 2);
      throw new Error("undo");
    }),
    /undo/,
  );
  assert.equal(await ofA(), 3);
});

Deno.test("CN2: a count depends on the same range as a scan to its end", async () => {
  const { database } = await filled();
  using _database = database;
  const rows = (db: Parameters<Parameters<typeof database.read>[0]>[0]) =>
    db.query("items").withIndex("by_kind_rank", (q) => q.eq("kind", "a").gte("rank", 2));
  const counted = await database.readWithSet((db) => rows(db).count());
  const scanned = await database.readWithSet((db) => rows(db).collect());
  assert.deepEqual([counted.result, counted.readSet], [scanned.result.length, scanned.readSet]);
});

Deno.test("long ranges are counted exactly, wherever they begin and end", async () => {
  using database = new TestDatabase<DataModelOf<typeof schema>>(schema);
  await database.write(async (db) => {
    for (let rank = 0; rank < 4_000; rank++) await db.insert("items", { kind: "a", rank });
    await db.insert("items", { kind: "b", rank: 0 });
  });
  await database.read(async (db) => {
    const edges = [0, 1, 127, 128, 129, 383, 384, 385, 1_920, 4_000];
    for (const from of edges) {
      for (const to of edges) {
        const range = db.query("items")
          .withIndex("by_kind_rank", (q) => q.eq("kind", "a").gte("rank", from).lt("rank", to));
        assert.equal(await range.count(), Math.max(0, to - from), `from ${from} to ${to}`);
      }
    }
    assert.equal(await db.query("items").withIndex("by_id").count(), 4_001);
  });
});

Deno.test("counted entries have a separate limit", () => {
  const usage = new UsageMeter();
  usage.counted(functionLimits.entriesCountedMax);
  assert.deepEqual([usage.documentsRead, usage.entriesLeft], [0, 0]);
  assert.throws(() => usage.counted(1), {
    code: "limit",
    message:
      /^Too many index entries counted by one call: the limit is 10000000 .* count a narrower range, or declare an aggregate/,
  });
});

Deno.test("count refuses filters and searches", async () => {
  const { database } = await filled();
  using _database = database;
  await database.read(async (db) => {
    const filtered = db.query("items").filter((row) => row.rank > 1);
    await assert.rejects(
      filtered.count(),
      /cannot apply filter\(\): use an index .* or count the rows of collect\(\)/,
    );
    await assert.rejects(
      db.query("items").filter((q) => q.eq(q.field("rank"), 1)).count(),
      /cannot apply filter/,
    );
    const search = db.query("items").withSearchIndex("by_text", (q) => q.search("text", "a"));
    await assert.rejects(
      (search as typeof filtered).count(),
      /cannot count the results of a search: count the rows of collect\(\)/,
    );
  });
});
