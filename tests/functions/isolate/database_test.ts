/** `ctx.db`: properties of filters and pages, and the messages of rare misuses. See tests/behaviour for the rest. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import { type DataModelOf, defineSchema, defineTable } from "../../../mod/functions/api/mod.ts";
import type { Unchecked } from "../../../mod/functions/api/values.ts";
import { TestDatabase } from "./database_support.ts";

const schema = defineSchema({
  items: defineTable({
    kind: z.string(),
    rank: z.number().nullable().optional(),
    place: z.object({ city: z.string() }).optional(),
    anything: z.any().optional(),
    vector: z.array(z.number()).optional(),
  })
    .index("by_kind_rank", ["kind", "rank"])
    .index("by_city", ["place.city"])
    .index("by_anything", ["anything"])
    .searchIndex("by_search", { searchField: "kind", filterFields: ["rank"] })
    .vectorIndex("by_vector", { vectorField: "vector", dimensions: 2, filterFields: ["kind"] }),
});

const open = () => new TestDatabase<DataModelOf<typeof schema>>(schema);

Deno.test("filter comparisons order values as indexes do", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 6 }),
      fc.jsonValue({ maxDepth: 2 }),
      async (values, bound) => {
        using database = open();
        await database.write(async (db) => {
          for (const anything of values) await db.insert("items", { kind: "a", anything });
        });
        await database.read(async (db) => {
          const ids = (rows: readonly { _id: string }[]) => rows.map(({ _id }) => _id).sort();
          for (const comparison of ["lt", "lte", "gt", "gte", "eq"] as const) {
            const filtered = await db.query("items").filter((q) => q[comparison](q.field("anything"), bound))
              .collect();
            const ranged = await db.query("items").withIndex(
              "by_anything",
              (q) => q[comparison]("anything", bound),
            ).collect();
            assert.deepEqual(ids(filtered), ids(ranged));
          }
        });
      },
    ),
    { numRuns: 20 },
  );
});

Deno.test("pages follow one another without gap or repetition, despite writes between them", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(30), { maxLength: 25 }),
      fc.array(fc.record({ rank: fc.nat(30), remove: fc.boolean() }), { maxLength: 10 }),
      fc.integer({ min: 1, max: 6 }),
      fc.constantFrom("asc" as const, "desc" as const),
      async (start, changes, numItems, order) => {
        using database = open();
        await database.write(async (db) => {
          for (const rank of start) await db.insert("items", { kind: "a", rank });
        });
        const page = (cursor: string | null, endCursor: string | null) =>
          database.read((db) =>
            db.query("items").withIndex("by_kind_rank", (q) => q.eq("kind", "a")).order(order)
              .paginate({ cursor, numItems, endCursor })
          );
        // Like a client: loads the first pages, changes rows, then runs all pages again, pinned.
        const ends: string[] = [];
        for (let cursor: string | null = null;;) {
          const { continueCursor, isDone, page: rows } = await page(cursor, null);
          assert.ok(rows.length <= numItems);
          ends.push(continueCursor);
          if (isDone || ends.length > 40) break;
          cursor = continueCursor;
        }
        await database.write(async (db) => {
          for (const { rank, remove } of changes) {
            const row = await db.query("items").withIndex(
              "by_kind_rank",
              (q) => q.eq("kind", "a").gte("rank", rank),
            ).first();
            if (remove && row !== null) await db.delete(row._id);
            else await db.insert("items", { kind: "a", rank });
          }
        });
        const shown: string[] = [];
        for (const [index, end] of ends.entries()) {
          const start = index === 0 ? null : ends[index - 1] ?? null;
          const { page: rows, continueCursor, splitCursor } = await page(start, end);
          assert.equal(splitCursor !== undefined, rows.length > 2 * numItems);
          if (splitCursor !== undefined) {
            const halves = [await page(start, splitCursor), await page(splitCursor, end)];
            assert.equal(halves[0]?.page.length, numItems);
            assert.deepEqual(halves.flatMap((half) => half.page), rows);
          }
          assert.equal(continueCursor, end);
          shown.push(...rows.map(({ _id }) => _id));
        }
        const all = await database.read((db) =>
          db.query("items").withIndex("by_kind_rank", (q) => q.eq("kind", "a")).order(order).collect()
        );
        assert.deepEqual(shown, all.map(({ _id }) => _id));
      },
    ),
    { numRuns: 30 },
  );
});

Deno.test("each misuse has a message with advice", async (t) => {
  using database = open();
  await database.write((db) => db.insert("items", { kind: "a" }));
  // These attempts do not compile.
  const misuses: readonly (readonly [name: string, run: (db: Unchecked) => unknown, message: RegExp])[] = [
    [
      "too many conditions",
      (db) =>
        db.query("items").withIndex(
          "by_city",
          (q: Unchecked) => q.eq("place.city", "a").eq("_creationTime", 1).eq("kind", 1),
        ),
      /one condition too many/,
    ],
    [
      "no search",
      (db) => db.query("items").withSearchIndex("by_search", (q: unknown) => q),
      /needs q\.search\("kind", text\)/,
    ],
    [
      "an unknown search index",
      (db) => db.query("items").withSearchIndex("by_x", () => {}),
      /no search index "by_x"; .* by_search/,
    ],
    [
      "a vector filter on another field",
      (db) =>
        db.vectorSearch("items", "by_vector", { vector: [1, 2], filter: (q: Unchecked) => q.eq("rank", 1) }),
      /can filter by kind, not by "rank"/,
    ],
    ["delete on nonsense", (db) => db.delete("nonsense"), /"nonsense" is not one/],
    [
      "an asynchronous filter",
      (db) => db.query("items").filter(async () => await true).collect(),
      /cannot be asynchronous/,
    ],
    ["a filter that is none", (db) => db.query("items").filter({ kind: "a" }), /filter\(\) needs a function/],
  ];
  for (const [name, run, message] of misuses) {
    await t.step(name, async () => {
      await assert.rejects(database.write(async (db) => void await run(db)), (error: unknown) => {
        assert.ok(error instanceof Error);
        assert.match(error.message, message);
        return true;
      });
    });
  }
});

Deno.test("the error of an app without schema explains how to write one", async () => {
  using database = new TestDatabase({ tables: {} });
  await assert.rejects(database.read((db) => void db.query("notes")), /There is no table|add a schema\.ts/);
});
