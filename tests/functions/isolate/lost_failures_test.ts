/** Failed promises without await in a real isolate, beside other calls of the same batch. */
import assert from "node:assert/strict";
import { call, Workspace } from "./support.ts";

Deno.test("[FA11] an unhandled rejection belongs to its own call, on every path", async () => {
  await using workspace = new Workspace({
    "schema.ts": `
      import { defineSchema, defineTable } from "syncline/server";
      import { z } from "zod";
      export default defineSchema({ notes: defineTable({ text: z.string() }) });
    `,
    "a.js": `
      import { untypedMutation, untypedQuery } from "syncline/server";
      export const plain = untypedMutation((ctx) => { ctx.db.insert("notes", { text: 1 }); return "done"; });
      export const wrapped = untypedMutation((ctx) => {
        [1].forEach(async () => {
          try {
            await ctx.db.insert("notes", { text: 1 });
          } catch (cause) {
            throw new Error("Another error", { cause });
          }
        });
        return "done";
      });
      export const unrelated = untypedMutation(async (ctx) => {
        await ctx.db.insert("notes", { text: 1 }).catch(() => {});
        void Promise.reject(new Error("Of its own"));
        return "done";
      });
      export const late = untypedMutation((ctx) => {
        (async () => {
          for (let i = 0; i < 100; i++) await null;
          await ctx.db.insert("notes", { text: "late" });
        })();
        return "done";
      });
      export const sound = untypedMutation(async (ctx) => {
        await ctx.db.insert("notes", { text: 1 }).catch(() => {});
        await ctx.db.insert("notes", { text: "sound" });
        return (await ctx.db.query("notes").collect()).length;
      });
    `,
  });
  await using writer = await workspace.start("writer");
  const { answers } = await writer.batch([
    call("a:plain"),
    call("a:sound"),
    call("a:wrapped"),
    call("a:sound"),
    call("a:unrelated"),
  ]);
  const messages = answers.map(({ outcome, value }) => outcome.ok ? value : outcome.error.message);
  assert.match(
    String(messages[0]),
    /^ctx\.db\.insert\("notes", \.\.\.\) failed and was not awaited, .*: .*text/,
  );
  assert.match(String(messages[2]), /^ctx\.db\.insert\("notes", .* not awaited, .*: Another error$/);
  assert.deepEqual([messages[1], messages[3], messages[4]], [1, 2, "done"]);
  const failure = answers[0]?.outcome;
  assert.match(failure?.ok === false ? String(failure.error.stack) : "", /at .*a\.js:\d+:\d+/);

  // Failures after the answer of their call can only be logged.
  assert.equal((await writer.mutate("a:late")).value, "done");
  const { stderr } = await writer.close();
  assert.match(stderr, /a:late: A promise that was left behind was rejected: Error: "a:late" has ended/);
});
