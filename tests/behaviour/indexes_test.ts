/** Indexes, ranges and order. */
import assert from "node:assert/strict";
import { behaviours, type Ctx, names, people, type Server } from "./support.ts";

/** People with names and ages, in an order that no index has. */
const aged = [["eve", 30], ["bob", 25], ["ann", 30], ["dan", 41], ["cid", 25]] as const;

async function withAges(server: Server): Promise<void> {
  await server.run(async (ctx) => {
    for (const [name, age] of aged) await ctx.db.insert("people", { name, age });
  });
}

/** The names that a query finds. */
function found(
  server: Server,
  query: (ctx: Ctx) => { collect(): Promise<{ name: string }[]> },
): Promise<string> {
  return server.run(async (ctx) => names(await query(ctx).collect()));
}

/** Values in the order of an index on any value. */
async function ordered(server: Server, values: readonly unknown[]): Promise<unknown[]> {
  return await server.run(async (ctx) => {
    for (const value of values) await ctx.db.insert("things", value === undefined ? {} : { value });
    const rows = await ctx.db.query("things").withIndex("by_value").collect();
    return rows.map((row) => "value" in row ? row.value : "(missing)");
  });
}

behaviours("indexes", {
  "a table without an index choice comes in the order of creation": async (t) => {
    await withAges(t);
    assert.equal(await found(t, ({ db }) => db.query("people")), "eve bob ann dan cid");
  },
  "the whole of an index comes in its order": async (t) => {
    await withAges(t);
    assert.equal(await found(t, ({ db }) => db.query("people").withIndex("by_name")), "ann bob cid dan eve");
  },
  "desc turns the order around": async (t) => {
    await withAges(t);
    const query = ({ db }: Ctx) => db.query("people").withIndex("by_name").order("desc");
    assert.equal(await found(t, query), "eve dan cid bob ann");
  },
  "desc without an index begins with the newest": async (t) => {
    await withAges(t);
    assert.equal(await found(t, ({ db }) => db.query("people").order("desc")), "cid dan ann bob eve");
  },
  "a compound index sorts by its first field, then by the second": async (t) => {
    await withAges(t);
    const query = ({ db }: Ctx) => db.query("people").withIndex("by_age_name");
    assert.equal(await found(t, query), "bob cid ann eve dan");
  },
  "eq on the first field keeps the order of the second": async (t) => {
    await withAges(t);
    const query = ({ db }: Ctx) => db.query("people").withIndex("by_age_name", (q) => q.eq("age", 30));
    assert.equal(await found(t, query), "ann eve");
  },
  "eq on all fields finds the one": async (t) => {
    await withAges(t);
    const query = ({ db }: Ctx) =>
      db.query("people").withIndex("by_age_name", (q) => q.eq("age", 25).eq("name", "cid"));
    assert.equal(await found(t, query), "cid");
  },
  "eq then a range on the next field": async (t) => {
    await withAges(t);
    const query = ({ db }: Ctx) =>
      db.query("people").withIndex("by_age_name", (q) => q.eq("age", 30).gt("name", "ann"));
    assert.equal(await found(t, query), "eve");
  },
  "gt leaves the bound out": async (t) => {
    await withAges(t);
    const query = ({ db }: Ctx) => db.query("people").withIndex("by_age_name", (q) => q.gt("age", 30));
    assert.equal(await found(t, query), "dan");
  },
  "gte takes the bound in": async (t) => {
    await withAges(t);
    const query = ({ db }: Ctx) => db.query("people").withIndex("by_age_name", (q) => q.gte("age", 30));
    assert.equal(await found(t, query), "ann eve dan");
  },
  "lt leaves the bound out": async (t) => {
    await withAges(t);
    const query = ({ db }: Ctx) => db.query("people").withIndex("by_age_name", (q) => q.lt("age", 30));
    assert.equal(await found(t, query), "bob cid");
  },
  "lte takes the bound in": async (t) => {
    await withAges(t);
    const query = ({ db }: Ctx) => db.query("people").withIndex("by_age_name", (q) => q.lte("age", 30));
    assert.equal(await found(t, query), "bob cid ann eve");
  },
  "both bounds, in either order": async (t) => {
    await withAges(t);
    const one = ({ db }: Ctx) =>
      db.query("people").withIndex("by_name", (q) => q.gte("name", "bob").lt("name", "dan"));
    const other = ({ db }: Ctx) =>
      db.query("people").withIndex("by_name", (q) => q.lt("name", "dan").gte("name", "bob"));
    assert.deepEqual([await found(t, one), await found(t, other)], ["bob cid", "bob cid"]);
  },
  "bounds that cross find nothing": async (t) => {
    await withAges(t);
    const query = ({ db }: Ctx) =>
      db.query("people").withIndex("by_name", (q) => q.gt("name", "d").lt("name", "b"));
    assert.equal(await found(t, query), "");
  },
  "a range that is turned around": async (t) => {
    await withAges(t);
    const query = ({ db }: Ctx) =>
      db.query("people").withIndex("by_name", (q) => q.gte("name", "bob")).order("desc");
    assert.equal(await found(t, query), "eve dan cid bob");
  },
  "a field inside an object can be indexed": async (t) => {
    await t.run(async ({ db }) => {
      await db.insert("people", { name: "a", address: { city: "Turin" } });
      await db.insert("people", { name: "b", address: { city: "Oslo" } });
    });
    const query = ({ db }: Ctx) =>
      db.query("people").withIndex("by_city", (q) => q.eq("address.city", "Oslo"));
    assert.equal(await found(t, query), "b");
  },
  "eq undefined finds the rows without the field": async (t) => {
    await t.run(async ({ db }) => {
      await db.insert("people", { name: "with", age: 1 });
      await db.insert("people", { name: "without" });
    });
    const query = ({ db }: Ctx) => db.query("people").withIndex("by_age_name", (q) => q.eq("age", undefined));
    assert.equal(await found(t, query), "without");
  },
  "an index on an id finds what points to it": async (t) => {
    await t.run(async ({ db }) => {
      const boss = await db.insert("people", { name: "boss" });
      await db.insert("people", { name: "worker", boss });
      const workers = await db.query("people").withIndex("by_boss", (q) => q.eq("boss", boss)).collect();
      assert.equal(names(workers), "worker");
    });
  },
  "by_creation_time takes ranges": async (t) => {
    await t.run((ctx) => people(ctx, "old"));
    await t.advance(1000);
    const since = t.now();
    await t.run((ctx) => people(ctx, "new"));
    const query = ({ db }: Ctx) =>
      db.query("people").withIndex("by_creation_time", (q) => q.gte("_creationTime", since));
    assert.equal(await found(t, query), "new");
  },
  "a range on creation time follows the fields of an index": async (t) => {
    await t.run((ctx) => people(ctx, "x", "y"));
    await t.advance(1000);
    const since = t.now();
    await t.run((ctx) => people(ctx, "x"));
    const count = await t.run(async ({ db }) => {
      const rows = await db.query("people").withIndex(
        "by_name",
        (q) =>
          (q.eq("name", "x") as unknown as { gte(field: string, value: number): never })
            .gte("_creationTime", since),
      ).collect();
      return rows.length;
    });
    assert.equal(count, 1);
  },
  "by_id is in the order of ids": async (t) => {
    await t.run(async (ctx) => {
      await people(ctx, "a", "b", "c", "d");
      const ids = (await ctx.db.query("people").withIndex("by_id").collect()).map(({ _id }) => _id);
      assert.deepEqual(ids, [...ids].sort());
    });
  },
  "equal values come in the order of creation": async (t) => {
    const order = await t.run(async (ctx) => {
      const ids = [];
      for (let n = 0; n < 5; n++) ids.push(await ctx.db.insert("people", { name: "same" }));
      const rows = await ctx.db.query("people").withIndex("by_name", (q) => q.eq("name", "same")).collect();
      return [ids, rows.map(({ _id }) => _id)];
    });
    assert.deepEqual(order[0], order[1]);
  },
  "creation times grow, even within one mutation": async (t) => {
    const times = await t.run(async (ctx) => {
      await people(ctx, "a", "b", "c");
      return (await ctx.db.query("people").collect()).map(({ _creationTime }) => _creationTime);
    });
    assert.deepEqual(times, [...new Set(times)].sort((a, b) => a - b));
    assert(times.every((time) => Math.floor(time) === t.now()));
  },
  "values of all types have one order: missing, null, numbers, booleans, texts, arrays, objects": async (
    t,
  ) => {
    const values = [{ a: 1 }, [1], "a", true, false, 2, -1, null, undefined];
    assert.deepEqual(await ordered(t, values), ["(missing)", null, -1, 2, false, true, "a", [1], { a: 1 }]);
  },
  "numbers are in numeric order, negative and fractional ones too": async (t) => {
    assert.deepEqual(await ordered(t, [10, 9, -1, 0.5, -1000, 1e300, 1e-300]), [
      ...[-1000, -1, 1e-300, 0.5, 9, 10, 1e300],
    ]);
  },
  "texts are ordered as JavaScript compares them": async (t) => {
    const texts = ["b", "a", "B", "", "aa", "é", "😀", "\u0000", "a\u0000"];
    assert.deepEqual(await ordered(t, texts), [...texts].sort());
  },
  "arrays are ordered element by element": async (t) => {
    assert.deepEqual(await ordered(t, [[2], [1, 2], [1], []]), [[], [1], [1, 2], [2]]);
  },
  "-0 and 0 are the same value": async (t) => {
    const count = await t.run(async ({ db }) => {
      await db.insert("things", { value: -0 });
      return (await db.query("things").withIndex("by_value", (q) => q.eq("value", 0)).collect()).length;
    });
    assert.equal(count, 1);
  },
  "a patch moves the row in its indexes, in the same mutation": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "before" });
      await db.patch(row, { name: "after" });
      const by = (name: string) => db.query("people").withIndex("by_name", (q) => q.eq("name", name)).first();
      assert.equal(await by("before"), null);
      assert.equal((await by("after"))?._id, row);
    });
  },
  "a deleted row is gone from its indexes": async (t) => {
    await t.run(async ({ db }) => {
      await db.delete(await db.insert("people", { name: "gone" }));
      assert.deepEqual(await db.query("people").withIndex("by_name").collect(), []);
    });
  },
  "a long text can be indexed up to the limit, and no further": async (t) => {
    await t.run((ctx) => people(ctx, "x".repeat(10_000)));
    await assert.rejects(t.run((ctx) => people(ctx, "x".repeat(20_000))), /index.*by_name|by_name.*index/);
  },
});
