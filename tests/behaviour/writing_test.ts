/** Writing, transactions, functions that call functions, and the limits of one call. */
import assert from "node:assert/strict";
import { UserError } from "syncline/server";
import { z } from "zod";
import { documentLimits, functionLimits } from "../../mod/limits.ts";
import {
  action,
  behaviours,
  internalMutation,
  mutation,
  names,
  people,
  query,
  withFunctions,
} from "./support.ts";

behaviours("writing", {
  "insert gives the id of the new document": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a" });
      assert.match(row, /^[0-9a-z]{20,}$/);
      assert.equal((await db.get(row))?._id, row);
    });
  },
  "patch changes the named fields and keeps the others": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a", age: 1 });
      await db.patch(row, { age: 2 });
      const { name, age } = await db.get(row) ?? {};
      assert.deepEqual([name, age], ["a", 2]);
    });
  },
  "patch with undefined removes a field": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a", age: 1 });
      await db.patch(row, { age: undefined });
      assert(!("age" in (await db.get(row) ?? {})));
    });
  },
  "patch replaces an object as a whole": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a", address: { city: "Turin", zip: "1" } });
      await db.patch(row, { address: { city: "Oslo" } });
      assert.deepEqual((await db.get(row))?.address, { city: "Oslo" });
    });
  },
  "replace takes away what is not named": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a", age: 1 });
      const before = await db.get(row);
      await db.replace(row, { name: "b" });
      const { _id, _creationTime, ...fields } = await db.get(row) ?? assert.fail();
      assert.deepEqual([fields, _id, _creationTime], [{ name: "b" }, row, before?._creationTime]);
    });
  },
  "a document that was read can be written back whole": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a" });
      await db.replace(row, { ...await db.get(row) ?? assert.fail(), age: 3 });
      assert.equal((await db.get(row))?.age, 3);
    });
  },
  "the table may be named before the id": async (t) => {
    await t.run(async ({ db }) => {
      const row = await db.insert("people", { name: "a" });
      await db.patch("people", row, { age: 1 });
      await db.replace("people", row, { name: "b" });
      await db.delete("people", row);
      assert.equal(await db.get(row), null);
    });
  },
  "reads see the writes before them": async (t) => {
    await t.run(async (ctx) => {
      await people(ctx, "b", "a");
      assert.equal(names(await ctx.db.query("people").withIndex("by_name").collect()), "a b");
    });
  },
  "rows can be changed while they are walked": async (t) => {
    await t.run(async (ctx) => {
      await people(ctx, "a", "b", "c");
      for await (const { _id, name } of ctx.db.query("people").withIndex("by_name")) {
        await ctx.db.patch(_id, { name: `${name}${name}` });
      }
      assert.equal(names(await ctx.db.query("people").collect()), "aa bb cc");
    });
  },
  "rows can be deleted while they are walked": async (t) => {
    await t.run(async (ctx) => {
      await people(ctx, "a", "b", "c");
      for await (const { _id } of ctx.db.query("people")) await ctx.db.delete(_id);
      assert.deepEqual(await ctx.db.query("people").collect(), []);
    });
  },
  "a mutation that throws leaves nothing behind": async (t) => {
    await assert.rejects(
      t.run(async (ctx) => {
        await people(ctx, "a");
        throw new Error("stop");
      }),
      { message: "stop" },
    );
    assert.deepEqual(await t.run(({ db }) => db.query("people").collect()), []);
  },
  "the error of one write can be caught, and the rest is kept": async (t) => {
    await t.run(async (ctx) => {
      await people(ctx, "a");
      await ctx.db.insert("people", { name: 1 as never }).catch(() => {});
      await people(ctx, "b");
    });
    assert.equal(names(await t.run(({ db }) => db.query("people").collect())), "a b");
  },
  "writes need not be awaited one by one": async (t) => {
    await t.run(async ({ db }) => {
      await Promise.all(["a", "b", "c"].map((name) => db.insert("people", { name })));
    });
    assert.equal((await t.run(({ db }) => db.query("people").collect())).length, 3);
  },
  "texts of every kind come back as they were": async (t) => {
    const values = ["", "\u0000", "\ud800", "😀", '"\\', "\u2028", "x".repeat(100_000)];
    const back = await t.run(async ({ db }) => {
      const found = [];
      for (const value of values) {
        found.push((await db.get(await db.insert("blobs", { value: [value] })))?.value[0]);
      }
      return found;
    });
    assert.deepEqual(back, values);
  },
  "numbers of every kind come back as they were": async (t) => {
    const values = [0, 1e308, 5e-324, -1.5, 2 ** 53, 0.1 + 0.2];
    const back = await t.run(async ({ db }) => {
      const found = [];
      for (const value of values) found.push((await db.get(await db.insert("things", { value })))?.value);
      return found;
    });
    assert.deepEqual(back, values);
  },
  "keys such as __proto__ inside a value are plain data": async (t) => {
    const value = JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}');
    const text = await t.run(async ({ db }) => {
      return JSON.stringify((await db.get(await db.insert("things", { value })))?.value);
    });
    assert.equal(text, JSON.stringify(value));
  },
});

const add = mutation({
  args: { name: z.string(), fail: z.boolean().default(false) },
  handler: async (ctx, { name, fail }) => {
    await ctx.db.insert("people", { name });
    if (fail) throw new UserError("failed", "No", { name });
    return name;
  },
});
const all = query({
  handler: async (ctx) => names(await ctx.db.query("people").collect()),
});

behaviours("nesting", {
  "a mutation calls a mutation in its own transaction": withFunctions({
    add,
    all,
    two: mutation({
      handler: async (ctx) => {
        await ctx.runMutation("app:add", { name: "a" });
        await ctx.runMutation("app:add", { name: "b" });
        return await ctx.runQuery("app:all");
      },
    }),
  }, async (t) => {
    using seen = t.subscribe("app:all");
    await seen.next();
    assert.equal(await t.mutation("app:two"), "a b");
    assert.deepEqual(seen.results, ["", "a b"]);
  }),
  "a nested mutation that throws is undone alone when its error is caught": withFunctions({
    add,
    all,
    both: mutation({
      handler: async (ctx) => {
        await ctx.runMutation("app:add", { name: "a" });
        const error: unknown = await ctx.runMutation("app:add", { name: "b", fail: true }).catch((error) =>
          error
        );
        return error instanceof UserError ? [error.code, error.data] : null;
      },
    }),
  }, async (t) => {
    assert.deepEqual(await t.mutation("app:both"), ["failed", { name: "b" }]);
    assert.equal(await t.query("app:all"), "a");
  }),
  "an error that is not caught undoes the whole": withFunctions({
    add,
    all,
    both: mutation({
      handler: async (ctx) => {
        await ctx.runMutation("app:add", { name: "a" });
        await ctx.runMutation("app:add", { name: "b", fail: true });
      },
    }),
  }, async (t) => {
    await assert.rejects(t.mutation("app:both"), { code: "failed", data: { name: "b" } });
    assert.equal(await t.query("app:all"), "");
  }),
  "nested mutations that are not awaited one by one take turns": withFunctions({
    add,
    all,
    many: mutation({
      handler: async (ctx) => {
        await Promise.all(["a", "b", "c"].map((name) => ctx.runMutation("app:add", { name })));
      },
    }),
  }, async (t) => {
    await t.mutation("app:many");
    assert.equal(await t.query("app:all"), "a b c");
  }),
  "a query calls a query at its own snapshot": withFunctions({
    all,
    twice: query({ handler: async (ctx) => [await ctx.runQuery("app:all"), await ctx.runQuery("app:all")] }),
  }, async (t) => {
    await t.run((ctx) => people(ctx, "a"));
    assert.deepEqual(await t.query("app:twice"), ["a", "a"]);
  }),
  "a query cannot call a mutation": withFunctions(
    {
      add,
      sneak: query({
        handler: (ctx) =>
          (ctx as never as { runMutation(name: string): Promise<null> }).runMutation("app:add"),
      }),
    },
    (t) =>
      assert.rejects(
        t.query("app:sneak"),
        /ctx\.runMutation is not available in queries: make the function a mutation/,
      ),
  ),
  "arguments of nested calls are checked, and the callee is named": withFunctions({
    add,
    wrong: mutation({ handler: (ctx) => ctx.runMutation("app:add", { name: 1 }) }),
  }, (t) => assert.rejects(t.mutation("app:wrong"), /app:add: args\.name/)),
  "internal functions are reached from functions only": withFunctions({
    secret: internalMutation({ handler: () => "done" }),
    open: mutation({ handler: (ctx) => ctx.runMutation("app:secret") }),
  }, async (t) => {
    assert.equal(await t.mutation("app:open"), "done");
    await assert.rejects(t.mutation("app:secret"), /no function/);
  }),
  "a mutation that calls itself without end is stopped": withFunctions(
    {
      loop: mutation({ handler: (ctx) => ctx.runMutation("app:loop") as Promise<null> }),
    },
    (t) =>
      assert.rejects(t.mutation("app:loop"), /nested more than 16 deep: does one call itself without end/),
  ),
  "each call of an action is a transaction of its own": withFunctions({
    add,
    all,
    steps: action({
      handler: async (ctx) => {
        await ctx.runMutation("app:add", { name: "a" });
        await ctx.runMutation("app:add", { name: "b", fail: true }).catch(() => {});
        return await ctx.runQuery("app:all");
      },
    }),
  }, async (t) => assert.equal(await t.action("app:steps"), "a")),
  "an action passes on the user error of what it calls": withFunctions({
    add,
    pass: action({ handler: (ctx) => ctx.runMutation("app:add", { name: "b", fail: true }) }),
  }, (t) => assert.rejects(t.action("app:pass"), { code: "failed", data: { name: "b" } })),
  "an action calls actions, as the same caller": withFunctions({
    who: action({ handler: (ctx) => ctx.auth.userId() }),
    ask: action({ handler: (ctx) => ctx.runAction("app:who") }),
  }, async (t) => {
    const ada = await t.asUser("Ada");
    assert.equal(await ada.action("app:ask"), ada.userId);
  }),
  "log lines of nested functions are the caller's": withFunctions({
    note: mutation({
      handler: (ctx) => {
        ctx.log.info("noted", { by: "inner" });
        throw new UserError("stop", "Stop");
      },
    }),
    outer: mutation({ handler: (ctx) => ctx.runMutation("app:note") }),
  }, (t) => assert.rejects(t.mutation("app:outer"), { logLines: ["[INFO] noted by=inner"] })),
});

const { documentsReadMax, documentsWrittenMax, charsReadMax, charsWrittenMax, resultCharsMax } =
  functionLimits;

behaviours("limits", {
  "a document over 1 MiB is refused with its size": async (t) => {
    await assert.rejects(
      t.run(({ db }) => db.insert("blobs", { value: ["x".repeat(documentLimits.documentCharsMax)] })),
      new RegExp(
        `limit is ${documentLimits.documentCharsMax}|longer than ${documentLimits.documentCharsMax}`,
      ),
    );
  },
  "too many documents written: the limit and the use are named, nothing is kept": async (t) => {
    await assert.rejects(
      t.run(async ({ db }) => {
        for (let n = 0; n <= documentsWrittenMax; n++) await db.insert("things", {});
      }),
      new RegExp(
        `Too many documents written by one call: the limit is ${documentsWrittenMax} and this one used`,
      ),
    );
    assert.equal(await t.run(async ({ db }) => (await db.query("things").take(1)).length), 0);
  },
  "too many documents read: the limit and the use are named": async (t) => {
    for (let batch = 0; batch < 3; batch++) {
      await t.run(async ({ db }) => {
        for (let n = 0; n < 11_000; n++) await db.insert("shapes", { kind: "circle", radius: n });
      });
    }
    await assert.rejects(
      t.run(async ({ db }) => (await db.query("shapes").collect()).length),
      new RegExp(
        `Too many documents read by one call: the limit is ${documentsReadMax} .* read a narrower range`,
      ),
    );
  },
  "too many characters written, and read": async (t) => {
    const value = ["x".repeat(1_000_000)];
    const fill = (count: number) =>
      t.run(async ({ db }) => {
        for (let n = 0; n < count; n++) await db.insert("blobs", { value });
      });
    await assert.rejects(
      fill(17),
      new RegExp(`characters written by one call: the limit is ${charsWrittenMax}`),
    );
    await fill(9);
    await fill(9);
    await assert.rejects(
      t.run(async ({ db }) => (await db.query("blobs").collect()).length),
      new RegExp(`characters read by one call: the limit is ${charsReadMax}`),
    );
  },
  "a result over 16 MiB is refused with its size": withFunctions({
    big: query({ handler: () => "x".repeat(resultCharsMax) }),
  }, (t) => assert.rejects(t.query("app:big"), new RegExp(`more than the limit of ${resultCharsMax}`))),
  "an array of too many elements is refused": async (t) => {
    const value = Array.from({ length: documentLimits.arrayElementsMax + 1 }, () => 0);
    await assert.rejects(
      t.run(({ db }) => db.insert("things", { value })),
      /value.*8193 elements and the limit is 8192/,
    );
  },
  "an object of too many fields is refused": async (t) => {
    const value = Object.fromEntries(
      Array.from({ length: documentLimits.objectFieldsMax + 1 }, (_, n) => [`f${n}`, 0]),
    );
    await assert.rejects(t.run(({ db }) => db.insert("things", { value })), /1025.*limit is 1024/);
  },
  "a value nested too deep is refused": async (t) => {
    let value: unknown = 1;
    for (let depth = 0; depth <= documentLimits.valueDepthMax; depth++) value = [value];
    await assert.rejects(t.run(({ db }) => db.insert("things", { value })), /64/);
  },
  "a handler that awaits what never happens fails, and the next call runs": withFunctions({
    all,
    hang: mutation({ handler: () => new Promise<null>(() => {}) }),
  }, async (t) => {
    await assert.rejects(t.mutation("app:hang"), /never happens|longer than its limit/);
    assert.equal(await t.query("app:all"), "");
  }, { callTimeoutMs: 1_000 }),
  "log lines are bounded, and the last says how many were left out": withFunctions({
    chat: mutation({
      handler: (ctx) => {
        for (let n = 0; n < 1000; n++) ctx.log.info(`line ${n}`);
        throw new UserError("done", "Done");
      },
    }),
  }, async (t) => {
    await assert.rejects(t.mutation("app:chat"), ({ logLines }) => {
      assert.equal(logLines.length, functionLimits.logLinesMax + 1);
      assert.match(logLines.at(-1), /744 more log lines were dropped/);
      return true;
    });
  }),
});
