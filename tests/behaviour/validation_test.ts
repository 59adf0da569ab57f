/** Values that the schema accepts on writing, and the messages for all others. */
import assert from "node:assert/strict";
import { z } from "zod";
import { id } from "syncline/server";
import { behaviours, mutation, query, withFunctions } from "./support.ts";

/** Values like those of untyped code. */
const untyped = (value: unknown) => value as never;

behaviours("validation", {
  "a field of the wrong type is refused with its path": async (t) => {
    await assert.rejects(
      t.run(({ db }) => db.insert("people", untyped({ name: 3 }))),
      /name: .*expected string/,
    );
  },
  "what does not fit names the table it was meant for, on insert, patch and replace": async (t) => {
    const message = /^Cannot store this document in table "people": name: .*expected string/;
    const wrong = untyped({ name: 3 });
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a" });
      for (const write of [db.insert("people", wrong), db.patch(row, wrong), db.replace(row, wrong)]) {
        await assert.rejects(write, ({ message: text }: Error) => message.test(text));
      }
    });
  },
  "a missing field is refused with its name": async (t) => {
    await assert.rejects(t.run(({ db }) => db.insert("people", untyped({}))), /name: .*expected string/);
  },
  "a wrong value deep inside is refused with its whole path": async (t) => {
    const fields = untyped({ name: "a", address: { city: 1 } });
    await assert.rejects(t.run(({ db }) => db.insert("people", fields)), /address\.city: /);
  },
  "a wrong element of an array is refused with its index": async (t) => {
    const fields = untyped({ name: "a", tags: ["x", 2] });
    await assert.rejects(t.run(({ db }) => db.insert("people", fields)), /tags\[1\]: /);
  },
  "an unknown field is refused by its name": async (t) => {
    const fields = untyped({ name: "a", nmae: "b" });
    await assert.rejects(t.run(({ db }) => db.insert("people", fields)), /nmae/);
  },
  "an optional field may be left out or undefined": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a", age: undefined });
      assert(!("age" in (await db.get(row) ?? {})));
    });
  },
  "null is not the same as missing": async (t) => {
    await assert.rejects(t.run(({ db }) => db.insert("people", untyped({ name: "a", age: null }))), /age: /);
  },
  "nullable fields take null": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("settings", { level: "low", flag: null });
      assert.equal((await db.get(row))?.flag, null);
    });
  },
  "defaults are stored": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("settings", { level: "low", flag: true });
      assert.equal((await db.get(row))?.count, 0);
    });
  },
  "an enum takes its members only": async (t) => {
    const fields = untyped({ level: "middle", flag: true });
    await assert.rejects(t.run(({ db }) => db.insert("settings", fields)), /level: .*"low"\|"high"/);
  },
  "bounds of numbers hold": async (t) => {
    const fields = untyped({ level: "low", flag: true, count: -1 });
    await assert.rejects(t.run(({ db }) => db.insert("settings", fields)), /count: /);
  },
  "records take any key of theirs": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("settings", { level: "low", flag: true, labels: { "odd key.": 1 } });
      assert.deepEqual((await db.get(row))?.labels, { "odd key.": 1 });
    });
  },
  "members of a union are distinguished": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("shapes", { kind: "circle", radius: 1 });
      await db.replace(row, { kind: "square", side: 2 });
      const doc = await db.get(row);
      assert.deepEqual([doc?.kind, doc && "radius" in doc], ["square", false]);
    });
  },
  "a mix of a union's members is refused": async (t) => {
    const fields = untyped({ kind: "circle", side: 1 });
    await assert.rejects(t.run(({ db }) => db.insert("shapes", fields)), /radius|side/);
  },
  "an id of another table is refused with both names": async (t) => {
    await assert.rejects(
      t.run(async ({ db }) => {
        const thing = await db.insert("things", {});
        await db.insert("people", { name: "a", boss: untyped(thing) });
      }),
      /boss: Expected an id of table "people", received one of table "things"/,
    );
  },
  "a text that is no id is refused": async (t) => {
    const fields = { name: "a", boss: untyped("nobody") };
    await assert.rejects(
      t.run(({ db }) => db.insert("people", fields)),
      /boss: Expected an id of table "people"/,
    );
  },
  "ids of users are checked like any others": async (t) => {
    const ada = await t.asUser("Ada");
    await t.run(({ db }) => db.insert("people", { name: "a", user: untyped(ada.userId) }));
    await assert.rejects(
      t.run(({ db }) => db.insert("people", { name: "a", user: untyped("someone") })),
      /user: Expected an id of table "_users"/,
    );
    await assert.rejects(
      t.run(({ db }) => db.insert("people", { name: "a", user: untyped(null) })),
      /user: Expected an id of table "_users", received null: is the caller signed in\?/,
    );
  },
  "patch is checked as a whole document": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a" });
      await assert.rejects(db.patch(row, untyped({ age: "old" })), /age: /);
      await assert.rejects(db.patch(row, { name: undefined }), /name: /);
    });
  },
  "replace is checked": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a" });
      await assert.rejects(db.replace(row, untyped({})), /name: /);
    });
  },
  "what was refused leaves nothing behind": async (t) => {
    await t.run(async ({ db }) => {
      await db.insert("people", untyped({ name: 1 })).catch(() => {});
      assert.deepEqual(await db.query("people").collect(), []);
    });
  },
  "arguments that do not fit are refused with their path": withFunctions({
    add: mutation({ args: { item: z.object({ text: z.string() }) }, handler: () => null }),
  }, async (t) => {
    await assert.rejects(t.mutation("app:add", { item: { text: 1 } }), /args\.item\.text: /);
    await assert.rejects(t.mutation("app:add", {}), /args\.item: /);
  }),
  "arguments in an array are refused with their index, and those of a union with each alternative":
    withFunctions({
      add: mutation({
        args: {
          items: z.array(z.object({ n: z.number() })),
          kind: z.union([z.literal("a"), z.literal("b")]).optional(),
        },
        handler: () => null,
      }),
    }, async (t) => {
      await assert.rejects(
        t.mutation("app:add", { items: [{ n: 1 }, { n: "x" }] }),
        /args\.items\[1\]\.n: Invalid input: expected number, received string/,
      );
      await assert.rejects(
        t.mutation("app:add", { items: [], kind: "c" }),
        /args\.kind: Invalid input: expected "a", or: Invalid input: expected "b"/,
      );
    }),
  "arguments that are not named are refused": withFunctions({
    add: mutation({ args: { text: z.string() }, handler: () => null }),
  }, async (t) => {
    await assert.rejects(t.mutation("app:add", { text: "a", more: 1 }), /more/);
  }),
  "defaults and transformations of arguments reach the handler": withFunctions({
    shout: query({
      args: { text: z.string().trim().toUpperCase(), times: z.number().default(2) },
      handler: (_ctx, { text, times }) => text.repeat(times),
    }),
  }, async (t) => assert.equal(await t.query("app:shout", { text: " a " }), "AA")),
  "an argument that is an id is checked against its table": withFunctions({
    show: query({ args: { person: id("people") }, handler: (ctx, { person }) => ctx.db.get(person) }),
  }, async (t) => {
    const thing = await t.run(({ db }) => db.insert("things", {}));
    await assert.rejects(
      t.query("app:show", { person: thing }),
      /args\.person: Expected an id of table "people", received one of table "things"/,
    );
  }),
  "a result that does not fit `returns` is refused": withFunctions({
    count: query({ returns: z.number(), handler: () => "three" as never }),
  }, (t) => assert.rejects(t.query("app:count"), /The result of "app:count" does not fit: returns/)),
});
