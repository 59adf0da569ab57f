/** `ctx.db`: reading, ranges, order, filters, pages, writing, and the message for each misuse. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import { readSetTouches } from "../../../mod/engine/mod.ts";
import { type DataModelOf, defineSchema, defineTable, type Id, id } from "../../../mod/functions/api/mod.ts";
import type { Unchecked } from "../../../mod/functions/api/values.ts";
import { TestDatabase } from "./database_support.ts";

const schema = defineSchema({
  users: defineTable({ name: z.string() }),
  items: defineTable({
    kind: z.string(),
    rank: z.number().nullable().optional(),
    owner: id("users").optional(),
    tags: z.array(z.string()).optional(),
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

/** A database with items a1, a2, a3 (ranks 1 to 3), and b1. */
async function filled() {
  const database = open();
  const ids = await database.write(async (db) => {
    const ids: Id<"items">[] = [];
    for (const [kind, rank] of [["a", 1], ["a", 2], ["a", 3], ["b", 1]] as const) {
      ids.push(await db.insert("items", { kind, rank }));
    }
    return ids;
  });
  return { database, ids };
}

const ranks = (rows: readonly { kind: string; rank?: number | null | undefined }[]) =>
  rows.map(({ kind, rank }) => `${kind}${rank}`);

Deno.test("ranges of an index: equal fields, then bounds, in both orders", async () => {
  const { database } = await filled();
  using _database = database;
  await database.read(async (db) => {
    const items = () => db.query("items");
    assert.deepEqual(ranks(await items().collect()), ["a1", "a2", "a3", "b1"]);
    assert.deepEqual(ranks(await items().order("desc").take(2)), ["b1", "a3"]);
    assert.deepEqual(
      ranks(await items().withIndex("by_kind_rank", (q) => q.eq("kind", "a")).order("desc").collect()),
      [
        "a3",
        "a2",
        "a1",
      ],
    );
    assert.deepEqual(
      ranks(
        await items().withIndex("by_kind_rank", (q) => q.eq("kind", "a").gt("rank", 1).lte("rank", 3))
          .collect(),
      ),
      ["a2", "a3"],
    );
    assert.deepEqual(
      ranks(
        await items().withIndex("by_kind_rank", (q) => q.eq("kind", "a").lt("rank", 3).gte("rank", 2))
          .collect(),
      ),
      ["a2"],
    );
    assert.deepEqual(ranks(await items().withIndex("by_kind_rank", (q) => q.gt("kind", "a")).collect()), [
      "b1",
    ]);
    assert.deepEqual(await items().withIndex("by_city", (q) => q.eq("place.city", "Turin")).collect(), []);
    assert.equal(
      (await items().withIndex("by_city", (q) => q.eq("place.city", undefined)).collect()).length,
      4,
    );
    const [first] = await items().collect();
    assert.deepEqual(
      ranks(
        await items().withIndex("by_creation_time", (q) => q.gt("_creationTime", first?._creationTime ?? 0))
          .collect(),
      ),
      ["a2", "a3", "b1"],
    );
    assert.equal(
      (await items().withIndex("by_id", (q) => q.eq("_id", first?._id ?? assert.fail())).unique())?.kind,
      "a",
    );
  });
});

Deno.test("first, unique, take and iteration", async () => {
  const { database, ids } = await filled();
  using _database = database;
  await database.read(async (db) => {
    const kind = (name: string) => db.query("items").withIndex("by_kind_rank", (q) => q.eq("kind", name));
    assert.equal((await kind("a").first())?._id, ids[0]);
    assert.equal(await kind("c").first(), null);
    assert.equal((await kind("b").unique())?._id, ids[3]);
    assert.equal(await kind("c").unique(), null);
    await assert.rejects(kind("a").unique(), /unique\(\) found more than one document in table "items"/);
    assert.deepEqual(await kind("a").take(0), []);
    const seen: string[] = [];
    for await (const row of kind("a")) {
      seen.push(row._id);
      if (seen.length === 2) break;
    }
    assert.deepEqual(seen, ids.slice(0, 2));
  });
});

Deno.test("filters: expressions and plain predicates agree", async () => {
  using database = open();
  await database.write(async (db) => {
    await db.insert("items", { kind: "a", rank: 1, tags: ["x"], place: { city: "Turin" } });
    await db.insert("items", { kind: "b", rank: null });
    await db.insert("items", { kind: "c" });
  });
  await database.read(async (db) => {
    const kinds = async (condition: Parameters<ReturnType<typeof db.query<"items">>["filter"]>[0]) =>
      (await db.query("items").filter(condition).collect()).map(({ kind }) => kind).join("");
    assert.equal(await kinds((q) => q.eq(q.field("kind"), "a")), "a");
    assert.equal(await kinds((q) => q.eq(q.field("rank"), null)), "b");
    assert.equal(await kinds((q) => q.eq(q.field("rank"), undefined)), "c");
    assert.equal(await kinds((q) => q.lt(q.field("rank"), 1)), "bc");
    assert.equal(await kinds((q) => q.eq(q.field("place.city"), "Turin")), "a");
    assert.equal(await kinds((q) => q.eq(q.field("tags"), ["x"])), "a");
    assert.equal(
      await kinds((q) => q.and(q.gte(q.field("kind"), "b"), q.not(q.eq(q.field("kind"), "c")))),
      "b",
    );
    assert.equal(await kinds((q) => q.or(q.eq(q.field("kind"), "a"), q.eq(q.field("kind"), "c"))), "ac");
    assert.equal(await kinds((q) => q.or()), "");
    assert.equal(await kinds((q) => q.and()), "abc");
    assert.equal(await kinds((row) => row.kind !== "b"), "ac");
    assert.equal(await kinds((row) => row.tags?.includes("x") ?? false), "a");
    assert.equal(
      await kinds((row) => row.place!.city === "Turin").catch((error) => error.constructor),
      TypeError,
    );
    const added = db.query("items").filter((q) => q.eq(q.add(1, 1), q.sub(3, 1))).take(1);
    assert.equal((await added).length, 1);
    await assert.rejects(
      db.query("items").filter((q) => q.eq(q.add(q.field("kind") as never, 1), 1)).collect(),
      /calculate with numbers/,
    );
  });
});

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
        // As a client shows them: the first pages are loaded, rows change, then all pages are run again, pinned.
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

Deno.test("cursors are validated: garbage and cursors of other queries are refused, and none leads out of the range", async () => {
  const { database } = await filled();
  using _database = database;
  await database.read(async (db) => {
    const pages = (kind: string, cursor: string | null) =>
      db.query("items").withIndex("by_kind_rank", (q) => q.eq("kind", kind)).paginate({
        cursor,
        numItems: 2,
      });
    const { continueCursor, isDone, page } = await pages("a", null);
    assert.deepEqual([ranks(page), isDone], [["a1", "a2"], false]);
    const last = await pages("a", continueCursor);
    assert.deepEqual([ranks(last.page), last.isDone], [["a3"], true]);
    assert.deepEqual(await pages("a", last.continueCursor), {
      page: [],
      isDone: true,
      continueCursor: last.continueCursor,
    });
    for (
      const cursor of ["", "garbage", continueCursor.slice(0, 4), continueCursor.slice(0, 7), 3 as never]
    ) {
      await assert.rejects(pages("a", cursor), /cursor/);
    }
    await assert.rejects(pages("b", continueCursor), { code: "invalid_cursor" });
    // Forged: the mark of the query with another place never shows rows outside its bounds.
    const mark = continueCursor.slice(0, 7);
    for (const key of [" ", "~", "zzzz", "6a 1", continueCursor.slice(8) + "~"]) {
      for (const row of (await pages("a", `${mark}k${key}`)).page) assert.equal(row.kind, "a");
    }
    await assert.rejects(pages("a", `${mark}k\u0000`), /cursor/);
    await assert.rejects(
      db.query("items").paginate({ cursor: null, numItems: 0 }),
      /numItems, a whole number from 1/,
    );
  });
});

Deno.test("a page with a filter stops at maximumRowsRead", async () => {
  const { database } = await filled();
  using _database = database;
  await database.read(async (db) => {
    const query = () => db.query("items").filter((row) => row.kind === "b");
    const first = await query().paginate({ cursor: null, numItems: 1, maximumRowsRead: 3 });
    assert.deepEqual([first.page, first.isDone], [[], false]);
    const next = await query().paginate({ cursor: first.continueCursor, numItems: 1, maximumRowsRead: 3 });
    assert.deepEqual(ranks(next.page), ["b1"]);
  });
});

Deno.test("a query is touched by changes in its range only", async () => {
  const { database } = await filled();
  using _database = database;
  const { readSet } = await database.readWithSet((db) =>
    db.query("items").withIndex("by_kind_rank", (q) => q.eq("kind", "a").lt("rank", 3)).collect()
  );
  const [space] = Object.keys(readSet);
  assert.ok(space?.startsWith("i"));
  const { readSet: other } = await database.readWithSet((db) =>
    db.query("items").withIndex("by_kind_rank", (q) => q.eq("kind", "b")).collect()
  );
  const entry = { ts: 1, at: 0, changes: [] };
  assert.equal(readSetTouches(readSet, entry), false);
  assert.notDeepEqual(readSet, other);
});

Deno.test("writing: read your own writes, patch and replace, undefined removes", async () => {
  using database = open();
  await database.write(async (db) => {
    const created = await db.insert("items", { kind: "a", rank: 1, tags: undefined });
    assert.equal((await db.get(created))?.rank, 1);
    await db.patch(created, { rank: 2 });
    await db.patch("items", created, { place: { city: "Turin" } });
    assert.equal(
      (await db.query("items").withIndex("by_city", (q) => q.eq("place.city", "Turin")).unique())?.rank,
      2,
    );
    await db.patch(created, { rank: undefined });
    const row = await db.get("items", created);
    assert.ok(row !== null && !("rank" in row) && !("tags" in row));
    await db.replace(created, { ...row, kind: "z" });
    assert.equal((await db.get(created))?.kind, "z");
    await db.replace(created, { kind: "y" });
    assert.equal((await db.get(created))?.place, undefined);
    await db.delete(created);
    assert.equal(await db.get(created), null);
    const fresh = await db.insert("users", { name: "x" });
    const user = await db.get(fresh);
    (user as { name: string }).name = "changed";
    assert.equal((await db.get(fresh))?.name, "x");
  });
});

Deno.test("rows may be written while they are walked", async () => {
  const { database } = await filled();
  using _database = database;
  await database.write(async (db) => {
    for await (const row of db.query("items").withIndex("by_kind_rank", (q) => q.eq("kind", "a"))) {
      await db.patch(row._id, { rank: (row.rank ?? 0) + 10 });
      await db.insert("items", { kind: "a", rank: 100 });
    }
    assert.deepEqual(
      ranks(await db.query("items").withIndex("by_kind_rank", (q) => q.eq("kind", "a")).collect()),
      ["a11", "a12", "a13", "a100", "a100", "a100"],
    );
  });
});

Deno.test("search and vector search work through ctx.db, with their filters", async () => {
  using database = open();
  await database.write(async (db) => {
    await db.insert("items", { kind: "red apple", rank: 1, vector: [1, 0] });
    await db.insert("items", { kind: "green apple", rank: 2, vector: [0, 1] });
    await db.insert("items", { kind: "red pear", rank: 1, vector: [0.9, 0.1] });
  });
  await database.read(async (db) => {
    const search = (text: string, rank?: number) =>
      db.query("items").withSearchIndex("by_search", (q) => {
        const found = q.search("kind", text);
        return rank === undefined ? found : found.eq("rank", rank);
      });
    assert.deepEqual((await search("app").collect()).map(({ kind }) => kind).sort(), [
      "green apple",
      "red apple",
    ]);
    assert.deepEqual((await search("apple", 2).collect()).map(({ kind }) => kind), ["green apple"]);
    const first = await search("red").paginate({ cursor: null, numItems: 1 });
    const second = await search("red").paginate({ cursor: first.continueCursor, numItems: 5 });
    assert.deepEqual([first.page.length, first.isDone, second.page.length, second.isDone], [
      1,
      false,
      1,
      true,
    ]);
    assert.notEqual(first.page[0]?._id, second.page[0]?._id);
    const near = await db.vectorSearch("items", "by_vector", { vector: [1, 0], limit: 2 });
    const kinds = await Promise.all(near.map(async ({ _id }) => (await db.get(_id))?.kind));
    assert.deepEqual(kinds, ["red apple", "red pear"]);
    assert.ok((near[0]?._score ?? 0) > (near[1]?._score ?? 1));
    const filtered = await db.vectorSearch("items", "by_vector", {
      vector: [1, 0],
      filter: (q) => q.or(q.eq("kind", "green apple"), q.eq("kind", "red pear")),
    });
    assert.equal(filtered.length, 2);
  });
});

Deno.test("normalizeId recognizes the ids of a table", async () => {
  const { database, ids } = await filled();
  using _database = database;
  await database.read((db) => {
    const [item] = ids;
    assert.equal(db.normalizeId("items", item ?? ""), item);
    assert.equal(db.normalizeId("users", item ?? ""), null);
    assert.equal(db.normalizeId("items", "nonsense"), null);
  });
});

Deno.test("each misuse has a message with advice", async (t) => {
  const { database, ids } = await filled();
  using _database = database;
  const [item = assert.fail()] = ids;
  const gone = await database.write(async (db) => {
    const created = await db.insert("items", { kind: "gone" });
    await db.delete(created);
    return created;
  });
  // These attempts do not compile.
  const misuses: readonly (readonly [name: string, run: (db: Unchecked) => unknown, message: RegExp])[] = [
    [
      "unknown table",
      (db) => db.query("itms"),
      /There is no table "itms" in schema\.ts; its tables are users, items/,
    ],
    ["table of the service", (db) => db.query("_sessions"), /no table "_sessions"|belongs to the service/],
    [
      "write to the service",
      (db) => db.insert("_users", {}),
      /belongs to the service: app code cannot write/,
    ],
    [
      "unknown index",
      (db) => db.query("items").withIndex("by_kin"),
      /no index "by_kin"; its indexes are .*by_kind_rank/,
    ],
    [
      "fields out of order",
      (db) => db.query("items").withIndex("by_kind_rank", (q: Unchecked) => q.eq("rank", 1)),
      /has the fields kind, rank, _creationTime, in this order: eq\("rank"\) is given where a condition on "kind"/,
    ],
    [
      "a range before an equal field",
      (db) => db.query("items").withIndex("by_kind_rank", (q: Unchecked) => q.gt("kind", "a").eq("rank", 1)),
      /eq\("rank"\) comes after a range/,
    ],
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
      "a range that is not returned",
      (db) => db.query("items").withIndex("by_city", () => {}),
      /must return the q/,
    ],
    [
      "two indexes",
      (db) => db.query("items").withIndex("by_city").withIndex("by_id"),
      /only choice of an index/,
    ],
    [
      "an index after order",
      (db) => db.query("items").order("asc").withIndex("by_id"),
      /directly after query\(\)/,
    ],
    ["order twice", (db) => db.query("items").order("asc").order("desc"), /already chosen/],
    ["an unknown order", (db) => db.query("items").order("up"), /"asc" or "desc"/],
    ["take of a fraction", (db) => db.query("items").take(1.5), /whole number of rows/],
    [
      "no search",
      (db) => db.query("items").withSearchIndex("by_search", (q: unknown) => q),
      /needs q\.search\("kind", text\)/,
    ],
    [
      "search elsewhere",
      (db) => db.query("items").withSearchIndex("by_search", (q: Unchecked) => q.search("rank", "x")),
      /searches in "kind"/,
    ],
    [
      "an unknown search index",
      (db) => db.query("items").withSearchIndex("by_x", () => {}),
      /no search index "by_x"; .* by_search/,
    ],
    [
      "an unknown vector index",
      (db) => db.vectorSearch("items", "by_x", { vector: [1, 2] }),
      /no vector index "by_x"; .* by_vector/,
    ],
    [
      "a vector filter on another field",
      (db) =>
        db.vectorSearch("items", "by_vector", { vector: [1, 2], filter: (q: Unchecked) => q.eq("rank", 1) }),
      /can filter by kind, not by "rank"/,
    ],
    ["get without id", (db) => db.get(undefined), /get\(\) needs the id of a document, not undefined/],
    ["an id of another table", (db) => db.get("users", item), /was given an id of table "items"/],
    [
      "patch on what is gone",
      (db) => db.patch(gone, { rank: 1 }),
      /has no such document, it may have been deleted/,
    ],
    ["patch on nonsense", (db) => db.patch("nonsense", { rank: 1 }), /"nonsense" is not one/],
    ["delete on nonsense", (db) => db.delete("nonsense"), /"nonsense" is not one/],
    ["insert without fields", (db) => db.insert("items"), /needs an object with the fields/],
    ["insert with an id", (db) => db.insert("items", { _id: item, kind: "a" }), /cannot be given _id/],
    ["a changed id", (db) => db.patch(item, { _id: gone }), /cannot change _id/],
    ["a name of the system", (db) => db.insert("items", { kind: "a", _secret: 1 }), /_secret/],
    ["an unknown field", (db) => db.insert("items", { kind: "a", knd: 1 }), /knd/],
    [
      "a wrong type",
      (db) => db.patch(item, { rank: "x" }),
      /rank: Invalid input: expected number, received string/,
    ],
    [
      "an id field of another table",
      (db) => db.patch(item, { owner: item }),
      /owner: Expected an id of table "users", received one of table "items"/,
    ],
    ["NaN", (db) => db.insert("items", { kind: "a", anything: NaN }), /"anything".*NaN is not a JSON number/],
    [
      "undefined in an array",
      (db) => db.insert("items", { kind: "a", anything: [undefined] }),
      /anything\[0\].*undefined/,
    ],
    ["a Date", (db) => db.insert("items", { kind: "a", anything: new Date() }), /anything.*Date/],
    ["a BigInt", (db) => db.insert("items", { kind: "a", anything: 1n }), /anything.*BigInt/],
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
