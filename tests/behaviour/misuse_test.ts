/** Mistakes of new users: each is refused with a message that explains what to do. */
import assert from "node:assert/strict";
import { createTestServer } from "syncline/test";
import { defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";
import { action, behaviours, type Ctx, internalQuery, mutation, query, withFunctions } from "./support.ts";
import { TempFolder } from "../support/temp_folder.ts";

const untyped = (value: unknown) => value as never;
/** `db` as code without types sees it. */
// deno-lint-ignore no-explicit-any -- the misuses are what types would refuse
const db = (ctx: Ctx): any => ctx.db;

/** Storing this value in a field of any type. */
const store = (value: unknown) => (ctx: Ctx) => ctx.db.insert("things", { value });

const cycle: Record<string, unknown> = {};
cycle["self"] = cycle;

behaviours("misuse of ctx.db", {
  "an unknown table": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).query("peple").collect()),
      /no table "peple" in schema\.ts; its tables are people/,
    );
  },
  "a table of the service": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).query("_passwords").collect()),
      /"_passwords" belongs to the service/,
    );
  },
  "writing to _users": async (t) => {
    await assert.rejects(t.run((ctx) => db(ctx).insert("_users", {})), /app code cannot write to it/);
  },
  "an unknown index": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).query("people").withIndex("by_nmae").collect()),
      /Table "people" has no index "by_nmae"; its indexes are .*by_name.*\.index\("by_nmae"/,
    );
  },
  "an index of the wrong kind": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).query("texts").withIndex("by_body").collect()),
      /no index "by_body"/,
    );
  },
  "fields of an index out of order": async (t) => {
    await assert.rejects(
      t.run((ctx) =>
        db(ctx).query("people").withIndex("by_age_name", (q: Ctx) => db({ db: q } as never).eq("name", "a"))
      ),
      /fields age, name, .*in this order: eq\("name"\) is given where a condition on "age" is expected/,
    );
  },
  "a field that is not in the index": async (t) => {
    await assert.rejects(
      t.run(({ db }) =>
        db.query("people").withIndex("by_name", (q) => q.eq(untyped("age"), untyped(3))).collect()
      ),
      /eq\("age"\) is given where a condition on "name" is expected/,
    );
  },
  "two lower bounds": async (t) => {
    await assert.rejects(
      t.run(({ db }) =>
        db.query("people").withIndex(
          "by_name",
          (q) => untyped((q.gt("name", "a") as unknown as typeof q).gte("name", "b")),
        )
          .collect()
      ),
      /"name" has two lower bounds/,
    );
  },
  "eq behind a range": async (t) => {
    await assert.rejects(
      t.run(({ db }) =>
        db.query("people").withIndex(
          "by_age_name",
          (q) => untyped((q.gt("age", 1) as unknown as typeof q).eq("age", 2)),
        )
          .collect()
      ),
      /age/,
    );
  },
  "a range function that returns nothing": async (t) => {
    await assert.rejects(
      t.run(({ db }) => db.query("people").withIndex("by_name", untyped(() => {})).collect()),
      /must return the q it was given/,
    );
  },
  "withIndex behind filter": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).query("people").filter(() => true).withIndex("by_name").collect()),
      /withIndex\(\) comes directly after query\(\)/,
    );
  },
  "two indexes": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).query("people").withIndex("by_name").withIndex("by_city").collect()),
      /only choice of an index/,
    );
  },
  "an order that is none": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).query("people").order("newest").collect()),
      /"asc" or "desc"/,
    );
  },
  "an order given twice": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).query("people").order("asc").order("desc").collect()),
      /already chosen/,
    );
  },
  "take of something else than a number": async (t) => {
    for (const count of [-1, 1.5, "3", undefined]) {
      await assert.rejects(
        t.run((ctx) => db(ctx).query("people").take(count)),
        /take\(\) needs a whole number/,
      );
    }
  },
  "a query that is returned without being run": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).query("people").withIndex("by_name")),
      /is a query that was not run: end it with \.collect\(\)/,
    );
  },
  "an id of another table for get": async (t) => {
    await assert.rejects(
      t.run(async (ctx) => db(ctx).get("people", await ctx.db.insert("things", {}))),
      /get\("people", \.\.\.\) was given an id of table "things"/,
    );
  },
  "get without an id": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).get(undefined)),
      /get\(\) needs the id of a document, not undefined/,
    );
  },
  "patch on a document that is gone": async (t) => {
    await assert.rejects(
      t.run(async ({ db }) => {
        const row = await db.insert("people", { name: "a" });
        await db.delete(row);
        await db.patch(row, { name: "b" });
      }),
      /Cannot patch ".*": table "people" has no such document, it may have been deleted/,
    );
  },
  "replace and delete on a document that is gone": async (t) => {
    const gone = await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a" });
      await db.delete(row);
      return row;
    });
    await assert.rejects(
      t.run(({ db }) => db.replace(gone, { name: "b" })),
      /Cannot replace .* no such document/,
    );
    await assert.rejects(t.run(({ db }) => db.delete(gone)), /Cannot delete .* no such document/);
  },
  "patch of a text that is no id": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).patch("a", {})),
      /patch\(\) needs the id of a document: "a" is not one/,
    );
  },
  "insert without fields": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).insert("people")),
      /insert\(\) needs an object with the fields/,
    );
  },
  "insert with an id of one's own": async (t) => {
    await assert.rejects(
      t.run((ctx) => db(ctx).insert("people", { _id: "a", name: "a" })),
      /cannot be given _id or _creationTime: the database makes them/,
    );
  },
  "changing the creation time": async (t) => {
    await assert.rejects(
      t.run(async (ctx) => db(ctx).patch(await ctx.db.insert("people", { name: "a" }), { _creationTime: 1 })),
      /cannot change _id or _creationTime/,
    );
  },
  "a key that begins with _": async (t) => {
    await assert.rejects(t.run((ctx) => db(ctx).insert("things", { _secret: 1 })), /_secret/);
  },
  "undefined in an array": async (t) => {
    await assert.rejects(
      t.run(store([1, undefined])),
      /value\[1\].*undefined.*use null, or leave the element out/,
    );
  },
  "NaN and infinity": async (t) => {
    await assert.rejects(t.run(store(NaN)), /value.*NaN is not a JSON number.*use null/);
    await assert.rejects(t.run(store(-Infinity)), /-Infinity is not a JSON number/);
  },
  "a BigInt": async (t) => {
    await assert.rejects(t.run(store(10n)), /value.*BigInt.*use a number, or a string/);
  },
  "a Date": async (t) => {
    await assert.rejects(t.run(store(new Date(0))), /value.*Date.*getTime\(\)/);
  },
  "a Map, a Set and a class": async (t) => {
    await assert.rejects(t.run(store(new Map())), /value.*Map/);
    await assert.rejects(t.run(store(new Set())), /value.*Set/);
    await assert.rejects(t.run(store(new (class Point {})())), /value.*Point/);
  },
  "a function and a symbol": async (t) => {
    await assert.rejects(t.run(store({ call: () => 1 })), /value\.call.*function/);
    await assert.rejects(t.run(store(Symbol("s"))), /value.*symbol/);
  },
  "a cycle": async (t) => {
    await assert.rejects(t.run(store(cycle)), /cycle|contains itself|deeper than/);
  },
  "a promise that was not awaited": async (t) => {
    await assert.rejects(t.run(store(Promise.resolve(1))), /value.*promise.*await/i);
  },
});

behaviours("misuse of functions", {
  "writing in a query": withFunctions(
    {
      // The types of a query's ctx have no insert.
      add: query({ handler: (ctx) => db(ctx as never).insert("people", { name: "a" }) }),
    },
    (t) =>
      assert.rejects(
        t.query("app:add"),
        /A query cannot write to the database: make the function a mutation/,
      ),
  ),
  "fetch in a mutation": withFunctions(
    {
      get: mutation({ handler: () => fetch("http://127.0.0.1:1/").then(() => null) }),
    },
    (t) =>
      assert.rejects(
        t.mutation("app:get"),
        /fetch is not available in queries and mutations: use it in an action/,
      ),
  ),
  "a timer in a query": withFunctions(
    {
      wait: query({ handler: () => new Promise<null>((resolve) => setTimeout(() => resolve(null), 1)) }),
    },
    (t) =>
      assert.rejects(
        t.query("app:wait"),
        /setTimeout is not available in queries and mutations: use it in an action/,
      ),
  ),
  "ctx.db in an action": withFunctions(
    {
      read: action({ handler: (ctx) => db(ctx as never).query("people") }),
    },
    (t) =>
      assert.rejects(
        t.action("app:read"),
        /ctx\.db is not available in actions: read with ctx\.runQuery and write with ctx\.runMutation/,
      ),
  ),
  "ctx used after the function has ended": withFunctions({
    leave: mutation({
      handler: (ctx) => {
        Promise.resolve().then(() => Promise.resolve()).then(() => ctx.db.insert("people", { name: "late" }))
          .catch(() => {});
        return null;
      },
    }),
  }, async (t) => {
    await t.mutation("app:leave");
    assert.deepEqual(await t.run(({ db }) => db.query("people").collect()), []);
  }),
  "an unknown function": (t) => assert.rejects(t.query("app:nothing"), /There is no function "app:nothing"$/),
  "a misspelled function": withFunctions({
    list: query({ handler: (ctx) => ctx.runQuery("app:secrt" as string) }),
    secret: internalQuery({ handler: () => 1 }),
  }, async (t) => {
    await assert.rejects(t.query("app:lst"), /There is no function "app:lst"\. Did you mean "app:list"\?$/);
    await assert.rejects(
      t.query("app:list"),
      /There is no function "app:secrt"\. Did you mean "app:secret"\?$/,
    );
    await assert.rejects(t.query("app:secrt"), /There is no function "app:secrt"$/, "hidden from clients");
  }),
  "a function of another kind": withFunctions({ add: mutation({ handler: () => null }) }, async (t) => {
    await assert.rejects(t.query("app:add"), /"app:add" is a mutation, not a query/);
    await assert.rejects(t.action("app:add"), /"app:add" is a mutation, not an action/);
  }),
  "an internal function called by a client": withFunctions(
    { secret: internalQuery({ handler: () => 1 }) },
    async (t) => {
      await assert.rejects(
        t.query("app:secret"),
        /There is no function "app:secret"\. It is internal: clients cannot call it$/,
      );
      assert.equal(await t.run((ctx) => ctx.runQuery("app:secret")), 1);
    },
  ),
  "a result with NaN, a Date or a BigInt": withFunctions({
    nan: query({ handler: () => ({ rate: 0 / 0 }) }),
    date: query({ handler: () => [new Date(0)] }),
    big: query({ handler: () => 1n }),
  }, async (t) => {
    await assert.rejects(
      t.query("app:nan"),
      /The result of "app:nan" at rate is NaN, which JSON cannot hold: use null/,
    );
    await assert.rejects(
      t.query("app:date"),
      /at \[0\] is a Date: use date\.getTime\(\) or date\.toISOString\(\)/,
    );
    await assert.rejects(t.query("app:big"), /is a BigInt/);
  }),
  "undefined in an array of the result": withFunctions(
    { list: query({ handler: () => [undefined] }) },
    (t) => assert.rejects(t.query("app:list"), /at \[0\] is undefined: use null, or leave it out/),
  ),
  "a result that contains itself": withFunctions(
    { loop: query({ handler: () => cycle }) },
    (t) => assert.rejects(t.query("app:loop"), /contains itself/),
  ),
  "throwing something that is no error": withFunctions({
    fail: query({
      handler: () => {
        throw "oops";
      },
    }),
  }, (t) => assert.rejects(t.query("app:fail"), /not an Error: "oops"/)),
  "arguments that are not JSON": withFunctions({ take: query({ handler: () => null }) }, async (t) => {
    await assert.rejects(t.query("app:take", { at: new Date(0) }), /Date/);
    await assert.rejects(t.query("app:take", { n: NaN }), /NaN/);
  }),
});

const schemaMistakes: Record<string, readonly [make: () => unknown, message: RegExp]> = {
  "a field whose name begins with _": [() => defineTable({ _mine: z.string() }), /Invalid field "_mine"/],
  "a field that is no zod schema": [
    () => defineTable(untyped({ a: "string" })),
    /Field "a" of the table is not a zod schema/,
  ],
  "a table's name with a dash": [
    () => defineSchema({ "a-b": defineTable({}) }),
    /Invalid table name "a-b"/,
  ],
  "a table that is not made by defineTable": [
    () => defineSchema(untyped({ a: {} })),
    /Table "a" must be created by defineTable/,
  ],
  "two indexes of one name": [
    () => defineTable({ a: z.string() }).index("by_a", ["a"]).index("by_a", ["a"]),
    /by_a/,
  ],
  "an index named like a built-in one": [() => defineTable({ a: z.string() }).index("by_id", ["a"]), /by_id/],
  "id() without a table": [() => id(untyped(undefined)), /id\(\) needs the name of a table/],
  "a query without a handler": [() => query(untyped({ args: {} })), /query\(\) needs a handler/],
  "args that are no zod schemas": [
    () => query(untyped({ args: { a: "string" }, handler: () => 1 })),
    /args\.a is not a zod schema/,
  ],
  "returns that is no zod schema": [
    () => query(untyped({ returns: "number", handler: () => 1 })),
    /returns must be a zod schema/,
  ],
};

for (const [name, [make, message]] of Object.entries(schemaMistakes)) {
  Deno.test(`misuse of the schema: ${name}`, () => assert.throws(make, message));
}

/** Files of an app, each loaded from a separate folder. */
const brokenApps: Record<string, readonly [files: Record<string, string>, message: RegExp]> = {
  "an import circle that uses what is not there yet": [{
    "a.ts": `import { b } from "./b.ts";\nexport const a = b + 1;\n`,
    "b.ts": `import { a } from "./a.ts";\nexport const b = a + 1;\n`,
  }, /modules that import each other in a circle .* move what both need into a third module/],
  "a schema that is not the default export": [
    { "schema.ts": "export const schema = 1;\n" },
    /schema\.ts must export the schema as its default: export default defineSchema/,
  ],
  "a syntax error": [{ "a.ts": "export const = 1;\n" }, /a\.ts:1:/],
  "an import that is not there": [{ "a.ts": `import "./missing.ts";\n` }, /missing\.ts/],
  "an error while loading": [{ "a.ts": `throw new Error("no luck");\n` }, /a\.ts:1:.*no luck/],
};

for (const [name, [files, message]] of Object.entries(brokenApps)) {
  Deno.test(`broken app: ${name}`, async () => {
    await using functionsDirFolder = new TempFolder();
    const functionsDir = functionsDirFolder.path;
    for (const [file, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${functionsDir}/${file}`, text);
    }
    await assert.rejects(createTestServer({ functionsDir }), message);
  });
}
