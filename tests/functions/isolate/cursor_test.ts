/** Cursors of `paginate`: each belongs to one query, and invalid ones do no harm. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import { UserError } from "../../../mod/errors.ts";
import { type DataModelOf, defineSchema, defineTable } from "../../../mod/functions/api/mod.ts";
import type { Unchecked } from "../../../mod/functions/api/values.ts";
import { TestDatabase } from "./database_support.ts";

const row = { x: z.any().optional(), y: z.number(), text: z.string() };
const items = () => defineTable(row);
const schema = defineSchema({
  items: items().index("by_x", ["x", "y"])
    .searchIndex("by_text", { searchField: "text", filterFields: ["x"] }),
});

type Query = (db: Unchecked) => {
  paginate(options: { cursor: unknown; numItems: number; endCursor?: unknown }): Promise<{
    page: { x?: unknown; y: number; _id: string }[];
    isDone: boolean;
    continueCursor: string;
  }>;
};

/** A database with three rows for each of some values of `x`. */
async function filled(of = schema) {
  const database = new TestDatabase<DataModelOf<typeof schema>>(of);
  await database.write(async (db) => {
    for (const x of [undefined, null, 0, 1, "a", [], {}]) {
      for (const y of [1, 2, 3]) await db.insert("items", { x, y, text: `word w${y}` });
    }
  });
  return database;
}

const byX = (range: (q: Unchecked) => Unchecked): Query => (db) =>
  db.query("items").withIndex("by_x", range as never);
const search = (filter: (q: Unchecked) => Unchecked): Query => (db) =>
  db.query("items").withSearchIndex("by_text", filter as never);

const cursorOf = (database: TestDatabase<DataModelOf<typeof schema>>, query: Query) =>
  database.read(async (db) =>
    (await query(db as Unchecked).paginate({ cursor: null, numItems: 1 })).continueCursor
  );
const pageAt = (database: TestDatabase<DataModelOf<typeof schema>>, query: Query, cursor: unknown) =>
  database.read((db) => query(db as Unchecked).paginate({ cursor, numItems: 2 }));

Deno.test("a cursor is refused by a query with another index range", async () => {
  using database = await filled();
  const queries: readonly Query[] = [
    (db) => db.query("items"),
    (db) => db.query("items").order("desc"),
    byX((q) => q),
    (db) => db.query("items").withIndex("by_x").order("desc"),
    ...[undefined, null, 0, 1, Infinity, -Infinity, "", "a", false, [], [null], {}, { a: 1 }].flatMap((
      value,
    ) => [
      byX((q) => q.eq("x", value)),
      byX((q) => q.gt("x", value)),
      byX((q) => q.gte("x", value)),
      byX((q) => q.lt("x", value)),
      byX((q) => q.lte("x", value)),
      search((q) => q.search("text", "word").eq("x", value)),
    ]),
    byX((q) => q.eq("x", undefined).eq("y", undefined)),
    search((q) => q.search("text", "word")),
    search((q) => q.search("text", "wor")),
  ];
  const cursors = [];
  for (const query of queries) cursors.push(await cursorOf(database, query));
  const marks = new Set(cursors.map((cursor) => cursor.slice(0, 7)));
  assert.equal(marks.size, queries.length);
  const [ofUndefined, ofNull] = [byX((q) => q.eq("x", undefined)), byX((q) => q.eq("x", null))];
  await assert.rejects(
    pageAt(database, ofUndefined, await cursorOf(database, ofNull)),
    { code: "invalid_cursor" },
  );
  assert.equal((await pageAt(database, ofUndefined, await cursorOf(database, ofUndefined))).page.length, 2);
});

Deno.test("a cursor fits its query however equal values are written", async () => {
  using database = await filled();
  for (
    const [one, other] of [
      [byX((q) => q.eq("x", 0)), byX((q) => q.eq("x", -0))],
      [byX((q) => q.gt("x", { a: 1, b: 2 })), byX((q) => q.gt("x", { b: 2, c: undefined, a: 1 }))],
      [(db) => db.query("items"), (db) => db.query("items").withIndex("by_creation_time")],
    ] satisfies [Query, Query][]
  ) {
    await pageAt(database, other, await cursorOf(database, one));
  }
});

Deno.test("a cursor is invalid for an index that a new version of the app redefines", async () => {
  const changed = [
    [byX((q) => q), items().index("by_x", ["y"])],
    [byX((q) => q), items().index("by_x", ["y", "x"])],
    [
      search((q) => q.search("text", "word")),
      items().searchIndex("by_text", { searchField: "text", filterFields: [] }),
    ],
  ] as const;
  using before = await filled();
  for (const [query, table] of changed) {
    using after = await filled(defineSchema({ items: table }) as never);
    await assert.rejects(pageAt(after, query, await cursorOf(before, query)), { code: "invalid_cursor" });
  }
});

Deno.test("the first page's message on wrong conditions is the engine's", async () => {
  using database = await filled();
  await assert.rejects(
    cursorOf(database, byX((q) => q.eq("x", NaN))),
    /Cannot compare with NaN in index "by_x"/,
  );
});

Deno.test("a cursor outside of the query is invalid", async () => {
  using database = await filled();
  const ranged = byX((q) => q.eq("x", 1));
  const searched = search((q) => q.search("text", "word"));
  const [key, offset] = [await cursorOf(database, ranged), await cursorOf(database, searched)];
  const [mark, searchMark] = [key.slice(0, 7), offset.slice(0, 7)];
  const cases: readonly (readonly [query: Query, cursor: unknown])[] = [
    ...["k", "k\u0007", "k\x7f", "ké", "k\ud800", "k\n", "o1", "e ", "x", "", "K1"].map((rest) =>
      [ranged, mark + rest] as const
    ),
    [ranged, `${key}\u0007`],
    [ranged, `${key}\n`],
    [ranged, `${key}\0`],
    [ranged, ` ${key}`],
    ...["k1", "o", "o0", "o-1", "o1.5", "o1e3", "o01", "o32001", "o999999999", "o1 ", "o1\n", "e1"].map((
      rest,
    ) => [searched, searchMark + rest] as const),
    ...[0, 7, true, [], [key], {}, { at: "end" }].map((cursor) => [ranged, cursor] as const),
    [ranged, mark + "k" + "a".repeat(8 * 1024 * 1024)],
  ];
  for (const [query, cursor] of cases) {
    const name = JSON.stringify(cursor).slice(0, 60);
    await assert.rejects(pageAt(database, query, cursor), { code: "invalid_cursor" }, name);
    const pinned = database.read((db) =>
      query(db as Unchecked).paginate({ cursor: null, numItems: 2, endCursor: cursor })
    );
    await assert.rejects(pinned, { code: "invalid_cursor" }, name);
  }
});

/** A change to one position of a text. */
const mutation = fc.record({
  at: fc.nat(),
  remove: fc.integer({ min: 0, max: 4 }),
  put: fc.oneof(
    fc.string({
      unit: fc.integer({ min: 0x20, max: 0x7f }).map((code) => String.fromCharCode(code)),
      maxLength: 4,
    }),
    fc.string({ unit: "binary", maxLength: 3 }),
    fc.constantFrom("\0", "\x07", "\x7f", "\ud800", "k", "e", "o", "o9", "~", " ", "1", "2", "8"),
  ),
});

Deno.test("mutated cursors: invalid, or rows of the query's own range", async () => {
  using database = await filled();
  const queries = [
    [byX((q) => q.eq("x", 1)), ({ x }) => x === 1],
    [
      (db) => db.query("items").withIndex("by_x", ((q: Unchecked) => q.eq("x", null)) as never).order("desc"),
      ({ x }) => x === null,
    ],
    [byX((q) => q.eq("x", "a").gt("y", 1).lt("y", 3)), ({ x, y }) => x === "a" && y === 2],
    [search((q) => q.search("text", "word").eq("x", 0)), ({ x }) => x === 0],
  ] satisfies [Query, (row: { x?: unknown; y: number }) => boolean][];
  const counts = { refused: 0, pages: 0 };
  for (const [query, inside] of queries) {
    const cursor = await cursorOf(database, query);
    const mutated = fc.tuple(fc.boolean(), fc.array(mutation, { maxLength: 4 })).map(
      ([keepMark, changes]) => {
        let text = keepMark ? cursor.slice(7) : cursor;
        for (const { at, remove, put } of changes) {
          const from = at % (text.length + 1);
          text = text.slice(0, from) + put + text.slice(from + remove);
        }
        return keepMark ? cursor.slice(0, 7) + text : text;
      },
    );
    const part = fc.oneof({ arbitrary: mutated, weight: 4 }, { arbitrary: fc.constant(null), weight: 1 });
    await fc.assert(
      fc.asyncProperty(part, part, async (start, end) => {
        try {
          const { page } = await database.read((db) =>
            query(db as Unchecked).paginate({ cursor: start, numItems: 2, endCursor: end })
          );
          assert.ok(page.every(inside));
          counts.pages++;
        } catch (error) {
          assert.ok(error instanceof UserError, String(error));
          assert.equal(error.code, "invalid_cursor");
          counts.refused++;
        }
      }),
      { numRuns: 1500 },
    );
  }
  assert.ok(counts.refused > 500 && counts.pages > 500, JSON.stringify(counts));
});
