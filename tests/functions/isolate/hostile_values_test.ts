/** App code that throws, logs, returns and compares unusual values: each call gets its own clear error. */
import assert from "node:assert/strict";
import { call, Workspace } from "./support.ts";

const app = {
  "schema.ts": `
    import { defineSchema, defineTable } from "syncline/server";
    import { z } from "zod";
    export default defineSchema({
      notes: defineTable({ text: z.string(), n: z.any().optional() }).index("by_n", ["n"]),
    });
  `,
  "a.js": `
    import { untypedMutation, untypedQuery } from "syncline/server";
    export const add = untypedMutation((ctx) => ctx.db.insert("notes", { text: "sound" }));
    export const texts = untypedQuery(async (ctx) => (await ctx.db.query("notes").collect()).map(({ text }) => text));
    export const reentrant = untypedMutation(async (ctx) => {
      const id = await ctx.db.insert("notes", { text: "x" });
      await ctx.db.patch(id, { get text() { ctx.db.delete(id); return "y"; } });
    });
    const thrower = (error) => untypedMutation(async (ctx) => {
      await ctx.db.insert("notes", { text: "must be undone" });
      throw error();
    });
    export const numberName = thrower(() => Object.assign(new Error(""), { name: 5 }));
    export const objectName = thrower(() => Object.assign(new Error(""), { name: { a: 1 } }));
    export const nothing = thrower(() => undefined);
    export const proxy = thrower(() => new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 2; } }));
    export const getter = thrower(() => Object.defineProperty(new Error("x"), "message", { get() { throw 1; } }));
    export const hidden = untypedMutation(() => Object.defineProperty({}, "toJSON", { value: () => undefined }));
    export const logs = untypedMutation((ctx) => {
      ctx.log.info(Symbol("s"));
      ctx.log.info(Object.create(null));
      ctx.log.info({ a: [1, 2] });
      return 1;
    });
    export const dateBound = untypedQuery((ctx) =>
      ctx.db.query("notes").withIndex("by_n", (q) => q.gt("n", new Date(0))).collect());
    export const inherited = untypedQuery(async (ctx) =>
      (await ctx.db.query("notes").filter((q) => q.eq(q.field("constructor"), undefined)).collect()).length);
    export const poison = untypedMutation(() => {
      Object.prototype.toJSON = () => "poison";
    });
  `,
};

Deno.test("hostile values that app code throws, logs, returns or compares are described in plain words, without effect on others", async () => {
  await using workspace = new Workspace(app);
  await using writer = await workspace.start("writer");
  await using reader = await workspace.start("reader");
  const { outcome: first } = await writer.mutate("a:add");
  assert.equal(first.ok, true);

  const failures: Record<string, RegExp> = {
    reentrant: /^Cannot write document ".*": a getter or a validator wrote it/,
    numberName: /^5$/,
    objectName: /^\[object Object\]$/,
    nothing: /^A value was thrown that is not an Error: undefined$/,
    proxy: /^An error was thrown that cannot be read$/,
    getter: /^An error was thrown that cannot be read$/,
    hidden: /^The result of "a:hidden" turns itself into nothing: use a plain object$/,
    poison: /^Cannot add property toJSON, object is not extensible$/,
  };
  for (const [name, message] of Object.entries(failures)) {
    const { outcome, ts } = await writer.mutate(`a:${name}`);
    assert.ok(!outcome.ok, name);
    assert.equal(typeof outcome.error.message, "string", name);
    assert.match(outcome.error.message, message, name);
    assert.equal(outcome.error.retryable ?? false, false, name);
    assert.equal(ts, 1, name);
  }
  const logs = await writer.mutate("a:logs");
  assert.deepEqual(logs.logLines, [
    "[INFO] Symbol(s)",
    "[INFO] [Object: null prototype] {}",
    "[INFO] { a: [ 1, 2 ] }",
  ]);
  const dateBound = await reader.query("a:dateBound");
  assert.ok(!dateBound.outcome.ok);
  assert.equal(
    dateBound.outcome.error.message,
    'Cannot compare with this value in index "by_n": it is a Date; use date.getTime(), a number',
  );
  assert.equal((await reader.query("a:inherited")).value, 1);
  assert.deepEqual((await reader.query("a:texts")).value, ["sound"]);
});

Deno.test("background code of a call cannot affect later calls: their log lines, clock and transaction", async () => {
  await using workspace = new Workspace({
    "schema.ts": app["schema.ts"],
    "a.js": `
      import { untypedMutation } from "syncline/server";
      const rest = async () => { for (let i = 0; i < 500; i++) await null; };
      let seen = [];
      export const leaver = untypedMutation((ctx) => {
        const at = Date.now();
        (async () => {
          for (let i = 0; i < 100; i++) await null;
          console.log("a secret of the leaver");
          seen.push(Date.now() === at);
          await ctx.db.insert("notes", { text: "stray" }).catch((error) => seen.push(error.message));
        })();
        for (let now = performance.now(), n = 0; n < 3e6; n++) now += n;
        return 1;
      });
      export const next = untypedMutation(async (ctx) => {
        console.log("of the next");
        await rest();
        return [seen, (await ctx.db.query("notes").collect()).length];
      });
    `,
  });
  await using writer = await workspace.start("writer");
  const { answers } = await writer.batch([call("a:leaver"), call("a:next")]);
  assert.deepEqual(answers[1]?.logLines, ["[INFO] of the next"]);
  assert.deepEqual(answers[1]?.value, [
    [
      true,
      '"a:leaver" has ended, and its ctx was used after that: await every promise before the handler returns',
    ],
    0,
  ]);
});
