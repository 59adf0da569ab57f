/** Reading: results of queries, filters and pages. */
import assert from "node:assert/strict";
import { behaviours, type Ctx, names, people } from "./support.ts";

const abc = (ctx: Ctx) => people(ctx, "a", "b", "c", "d", "e");

behaviours("results", {
  "get gives the document with its id and creation time": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a" });
      const doc = await db.get(row);
      assert.deepEqual(Object.keys(doc ?? {}).sort(), ["_creationTime", "_id", "name"]);
    });
  },
  "get of a deleted document gives null": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a" });
      await db.delete(row);
      assert.equal(await db.get(row), null);
    });
  },
  "get of a text that is no id gives null": async (t) => {
    assert.equal(await t.run(({ db }) => db.get("nonsense" as never)), null);
  },
  "get with a table checks the id against it": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a" });
      assert.equal((await db.get("people", row))?.name, "a");
      await assert.rejects(db.get("things", row as never), /given an id of table "people"/);
    });
  },
  "documents are fresh objects": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a", tags: ["x"] });
      (await db.get(row))?.tags?.push("y");
      assert.deepEqual((await db.get(row))?.tags, ["x"]);
    });
  },
  "take gives at most so many": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      assert.equal(names(await ctx.db.query("people").take(2)), "a b");
      assert.equal((await ctx.db.query("people").take(99)).length, 5);
      assert.deepEqual(await ctx.db.query("people").take(0), []);
    });
  },
  "first gives one or null": async (t) => {
    await t.run(async (ctx) => {
      assert.equal(await ctx.db.query("people").first(), null);
      await abc(ctx);
      assert.equal((await ctx.db.query("people").order("desc").first())?.name, "e");
    });
  },
  "unique gives the only one, or null": async (t) => {
    await t.run(async (ctx) => {
      const by = (name: string) => ctx.db.query("people").withIndex("by_name", (q) => q.eq("name", name));
      assert.equal(await by("a").unique(), null);
      await abc(ctx);
      assert.equal((await by("a").unique())?.name, "a");
    });
  },
  "unique fails when there are two, and names them": async (t) => {
    await t.run(async (ctx) => {
      await people(ctx, "a", "a");
      await assert.rejects(
        ctx.db.query("people").unique(),
        /unique\(\) found more than one document in table "people"/,
      );
    });
  },
  "a query can be walked with for await, and left in between": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const seen = [];
      for await (const { name } of ctx.db.query("people")) {
        seen.push(name);
        if (name === "c") break;
      }
      assert.deepEqual(seen, ["a", "b", "c"]);
    });
  },
  "a query under construction can be run several times": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const query = ctx.db.query("people").withIndex("by_name");
      assert.equal(names(await query.take(1)), "a");
      assert.equal(names(await query.order("desc").take(1)), "e");
      assert.equal(names(await query.take(1)), "a");
    });
  },
  "several reads may be awaited together": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const [all, first] = await Promise.all([
        ctx.db.query("people").collect(),
        ctx.db.query("people").first(),
      ]);
      assert.deepEqual([all.length, first?.name], [5, "a"]);
    });
  },
  "normalizeId accepts ids of a table and nothing else": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a" });
      assert.equal(db.normalizeId("people", row), row);
      assert.equal(db.normalizeId("things", row), null);
      assert.equal(db.normalizeId("people", "nonsense"), null);
    });
  },
  "_users can be read, with its types": async (t) => {
    const ada = await t.asUser({ email: "ada@example.com", name: "Ada" });
    const found = await t.run(async ({ db }) => {
      const user = await db.query("_users").withIndex("by_email", (q) => q.eq("email", "ada@example.com"))
        .unique();
      return [user?._id, user?.name];
    });
    assert.deepEqual(found, [ada.userId, "Ada"]);
  },
});

behaviours("filters", {
  "an expression keeps the rows for which it holds": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const kept = await ctx.db.query("people").filter((q) => q.gt(q.field("name"), "b")).collect();
      assert.equal(names(kept), "c d e");
    });
  },
  "a predicate on the document keeps the rows for which it holds": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      assert.equal(names(await ctx.db.query("people").filter((row) => row.name < "c").collect()), "a b");
    });
  },
  "filters add up": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const kept = await ctx.db.query("people").filter((row) => row.name > "a")
        .filter((q) => q.neq(q.field("name"), "c")).collect();
      assert.equal(names(kept), "b d e");
    });
  },
  "take counts what passes": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      assert.equal(names(await ctx.db.query("people").filter((row) => row.name > "b").take(2)), "c d");
    });
  },
  "first and unique look behind the filter": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const query = () => ctx.db.query("people").filter((q) => q.eq(q.field("name"), "d"));
      assert.deepEqual([(await query().first())?.name, (await query().unique())?.name], ["d", "d"]);
    });
  },
  "and, or and not combine": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const kept = await ctx.db.query("people").filter((q) =>
        q.and(
          q.or(q.eq(q.field("name"), "a"), q.gte(q.field("name"), "d")),
          q.not(q.eq(q.field("name"), "e")),
        )
      ).collect();
      assert.equal(names(kept), "a d");
      assert.equal(names(await ctx.db.query("people").filter((q) => q.or()).collect()), "");
      assert.equal(names(await ctx.db.query("people").filter((q) => q.and()).take(2)), "a b");
    });
  },
  "calculations work on number fields": async (t) => {
    await t.run(async ({ db }) => {
      for (const age of [1, 2, 3, 4]) await db.insert("people", { name: `p${age}`, age });
      const even = await db.query("people").filter((q) => q.eq(q.mod(q.field("age") as never, 2), 0))
        .collect();
      assert.equal(names(even), "p2 p4");
    });
  },
  "a field inside an object can be filtered by its path": async (t) => {
    await t.run(async ({ db }) => {
      await db.insert("people", { name: "a", address: { city: "Turin" } });
      await db.insert("people", { name: "b" });
      const kept = await db.query("people").filter((q) => q.eq(q.field("address.city"), "Turin")).collect();
      assert.equal(names(kept), "a");
    });
  },
  "a missing field is undefined": async (t) => {
    await t.run(async ({ db }) => {
      await db.insert("people", { name: "old", age: 99 });
      await db.insert("people", { name: "ageless" });
      const kept = await db.query("people").filter((q) => q.eq(q.field("age"), undefined)).collect();
      assert.equal(names(kept), "ageless");
    });
  },
  "calculating with a text is an error": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const query = ctx.db.query("people").filter((q) => q.gt(q.add(q.field("name") as never, 1), 1));
      await assert.rejects(query.collect(), /calculate with numbers/);
    });
  },
});

behaviours("pagination", {
  "pages follow one another to the end": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const pages = [];
      for (let cursor: string | null = null, isDone = false; !isDone;) {
        const result: { page: { name: string }[]; isDone: boolean; continueCursor: string } = await ctx.db
          .query("people").paginate({ cursor, numItems: 2 });
        pages.push(names(result.page));
        ({ isDone, continueCursor: cursor } = result);
      }
      assert.deepEqual(pages, ["a b", "c d", "e"]);
    });
  },
  "pages of an index in reverse order": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const query = () => ctx.db.query("people").withIndex("by_name").order("desc");
      const one = await query().paginate({ cursor: null, numItems: 3 });
      const two = await query().paginate({ cursor: one.continueCursor, numItems: 3 });
      assert.deepEqual([names(one.page), names(two.page), two.isDone], ["e d c", "b a", true]);
    });
  },
  "an empty table is one empty last page": async (t) => {
    const { page, isDone } = await t.run(({ db }) =>
      db.query("people").paginate({ cursor: null, numItems: 5 })
    );
    assert.deepEqual([page, isDone], [[], true]);
  },
  "a cursor continues after its position when rows before it are deleted": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const one = await ctx.db.query("people").paginate({ cursor: null, numItems: 2 });
      for (const { _id } of one.page) await ctx.db.delete(_id);
      const two = await ctx.db.query("people").paginate({ cursor: one.continueCursor, numItems: 2 });
      assert.equal(names(two.page), "c d");
    });
  },
  "rows inserted before the cursor do not shift the next page": async (t) => {
    await t.run(async (ctx) => {
      await people(ctx, "b", "d", "f");
      const query = () => ctx.db.query("people").withIndex("by_name");
      const one = await query().paginate({ cursor: null, numItems: 1 });
      await people(ctx, "a", "c");
      assert.equal(names((await query().paginate({ cursor: one.continueCursor, numItems: 2 })).page), "c d");
    });
  },
  "a pinned page grows and shrinks with its range": async (t) => {
    await t.run(async (ctx) => {
      await people(ctx, "b", "d", "f", "h");
      const query = () => ctx.db.query("people").withIndex("by_name");
      const one = await query().paginate({ cursor: null, numItems: 2 });
      await people(ctx, "a", "c", "e");
      const pinned = await query().paginate({ cursor: null, numItems: 2, endCursor: one.continueCursor });
      const next = await query().paginate({ cursor: one.continueCursor, numItems: 9 });
      assert.deepEqual([names(pinned.page), names(next.page)], ["a b c d", "e f h"]);
    });
  },
  "a pinned page that has grown beyond twice its size says where to cut it": async (t) => {
    await t.run(async (ctx) => {
      await people(ctx, "a", "z");
      const query = () => ctx.db.query("people").withIndex("by_name");
      const { continueCursor: endCursor } = await query().paginate({ cursor: null, numItems: 1 });
      await people(ctx, "Q", "R");
      const { page, splitCursor } = await query().paginate({ cursor: null, numItems: 1, endCursor });
      assert(splitCursor !== undefined);
      const parts = [
        await query().paginate({ cursor: null, numItems: 1, endCursor: splitCursor }),
        await query().paginate({ cursor: splitCursor, numItems: 1, endCursor }),
      ];
      assert.deepEqual([page, ...parts.map((part) => part.page)].map(names), ["Q R a", "Q", "R a"]);
    });
  },
  "a page that ends before it begins is empty": async (t) => {
    await t.run(async (ctx) => {
      await people(ctx, "a", "b", "c", "d");
      for (const order of ["asc", "desc"] as const) {
        const query = () => ctx.db.query("people").withIndex("by_name").order(order);
        const [one, two] = [
          await query().paginate({ cursor: null, numItems: 1 }),
          await query().paginate({ cursor: null, numItems: 3 }),
        ];
        const { page } = await query().paginate({
          cursor: two.continueCursor,
          numItems: 9,
          endCursor: one.continueCursor,
        });
        assert.deepEqual(page, []);
      }
    });
  },
  "a page may end exactly at the last row": async (t) => {
    await t.run(async (ctx) => {
      await people(ctx, "a", "b");
      const one = await ctx.db.query("people").paginate({ cursor: null, numItems: 2 });
      const rest = one.isDone ? [] : (await ctx.db.query("people").paginate({
        cursor: one.continueCursor,
        numItems: 2,
      })).page;
      assert.deepEqual([names(one.page), rest], ["a b", []]);
    });
  },
  "a filtered page is filled from further rows": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const one = await ctx.db.query("people").filter((row) => row.name !== "b")
        .paginate({ cursor: null, numItems: 2 });
      assert.equal(names(one.page), "a c");
    });
  },
  "maximumRowsRead ends a page that a filter leaves empty": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const one = await ctx.db.query("people").filter(() => false)
        .paginate({ cursor: null, numItems: 2, maximumRowsRead: 3 });
      assert.deepEqual([one.page, one.isDone], [[], false]);
    });
  },
  "a search can be paginated": async (t) => {
    await t.run(async ({ db }) => {
      for (let n = 0; n < 5; n++) await db.insert("texts", { body: `red apple ${n}` });
      const query = () => db.query("texts").withSearchIndex("by_body", (q) => q.search("body", "apple"));
      const one = await query().paginate({ cursor: null, numItems: 3 });
      const two = await query().paginate({ cursor: one.continueCursor, numItems: 3 });
      const bodies = [...one.page, ...two.page].map(({ body }) => body);
      assert.deepEqual([new Set(bodies).size, two.isDone], [5, true]);
    });
  },
  "a cursor of another query is refused": async (t) => {
    await t.run(async (ctx) => {
      await abc(ctx);
      const { continueCursor: cursor } = await ctx.db.query("people").paginate({ cursor: null, numItems: 2 });
      const other = ctx.db.query("people").withIndex("by_name").paginate({ cursor, numItems: 2 });
      await assert.rejects(other, /cursor does not belong to this query/);
    });
  },
  "nonsense for a cursor is refused": async (t) => {
    await assert.rejects(
      t.run(({ db }) => db.query("people").paginate({ cursor: "nonsense", numItems: 2 })),
      /cursor/,
    );
  },
  "numItems is a whole number from 1 on": async (t) => {
    for (const numItems of [0, -1, 1.5, NaN, "2" as never]) {
      await assert.rejects(
        t.run(({ db }) => db.query("people").paginate({ cursor: null, numItems })),
        /numItems, a whole number from 1 on/,
      );
    }
  },
});
