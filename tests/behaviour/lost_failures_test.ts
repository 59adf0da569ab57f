/** Operations of `ctx` without `await`: their failure fails the call. */
import assert from "node:assert/strict";
import { UserError } from "syncline/server";
import {
  action,
  behaviours,
  type Ctx,
  internalMutation,
  mutation,
  people,
  query,
  withFunctions,
} from "./support.ts";

const wrong = { name: 1 } as never;
const missing = "0".repeat(26) as never;

const all = query({
  handler: async (ctx) => (await ctx.db.query("people").collect()).map(({ name }) => name).join(" "),
});
const failing = internalMutation({
  handler: async (ctx) => {
    await people(ctx, "inner");
    throw new UserError("refused", "Not today");
  },
});

/** A mutation that stores "before" and then does this, without waiting for it. */
const leaving = (leave: (ctx: Ctx) => unknown) =>
  mutation({
    handler: async (ctx) => {
      await people(ctx, "before");
      leave(ctx);
      return "done";
    },
  });

const left = {
  insert: leaving((ctx) => void ctx.db.insert("people", wrong)),
  patch: leaving((ctx) => void ctx.db.patch(missing, {})),
  replace: leaving((ctx) => void ctx.db.replace(missing, wrong)),
  remove: leaving((ctx) => void ctx.db.delete(missing)),
  nested: leaving((ctx) => void ctx.runMutation("app:failing")),
  nestedArgs: leaving((ctx) => void ctx.runMutation("app:failing", { n: 1n })),
  schedule: leaving((ctx) => void ctx.scheduler.runAfter(-1, "app:failing")),
  unknown: leaving((ctx) => void ctx.scheduler.runAt(0, "app:nothing")),
  cancel: leaving((ctx) => void ctx.scheduler.cancel("x" as never)),
  file: leaving((ctx) => void ctx.storage.delete(1 as never)),
  loop: leaving((ctx) => [1, 2].forEach(async () => void await ctx.db.insert("people", wrong))),
  later: leaving((ctx) => [1].forEach(async () => (await null, await ctx.db.insert("people", wrong)))),
  derived: leaving((ctx) => ctx.db.insert("people", wrong).then(() => 1)),
  half: leaving((ctx) => ctx.db.insert("people", wrong).finally(() => {})),
  behind: leaving((ctx) => {
    void ctx.runMutation("app:failing").catch(() => {});
    void ctx.db.insert("people", wrong);
  }),
};

const received: Record<keyof typeof left, RegExp> = {
  insert: /^ctx\.db\.insert\("people", \.\.\.\) failed and was not awaited, so nothing was stored: .*name/,
  patch: /^ctx\.db\.patch\(\) failed and was not awaited/,
  replace: /^ctx\.db\.replace\(\) failed and was not awaited/,
  remove: /^ctx\.db\.delete\(\) failed and was not awaited/,
  nested: /^ctx\.runMutation\("app:failing"\) failed and was not awaited, .*: Not today$/,
  nestedArgs: /^ctx\.runMutation\("app:failing"\) failed and was not awaited, .*BigInt/,
  schedule: /^ctx\.scheduler\.runAfter\(\) failed and was not awaited/,
  unknown: /^ctx\.scheduler\.runAt\(\) failed and was not awaited/,
  cancel: /^ctx\.scheduler\.cancel\(\) failed and was not awaited/,
  file: /^ctx\.storage\.delete\(\) failed and was not awaited/,
  loop: /^ctx\.db\.insert\("people", \.\.\.\) failed and was not awaited/,
  later: /^ctx\.db\.insert\("people", \.\.\.\) failed and was not awaited/,
  derived: /^ctx\.db\.insert\("people", \.\.\.\) failed and was not awaited/,
  half: /^ctx\.db\.insert\("people", \.\.\.\) failed and was not awaited/,
  behind: /^ctx\.db\.insert\("people", \.\.\.\) failed and was not awaited/,
};

const taken = {
  caught: leaving((ctx) => void ctx.db.insert("people", wrong).catch(() => {})),
  settled: mutation({
    handler: async (ctx) => {
      const results = await Promise.allSettled([
        ctx.db.insert("people", wrong),
        ctx.runMutation("app:failing"),
        ctx.db.insert("people", { name: "sound" }),
      ]);
      return results.map(({ status }) => status);
    },
  }),
  takenLate: mutation({
    handler: async (ctx) => {
      const first = ctx.db.insert("people", wrong);
      // A tick of the event loop before the failure is handled.
      await crypto.subtle.digest("SHA-256", new Uint8Array(1));
      await ctx.runMutation("app:inner");
      return await first.catch(() => "taken");
    },
  }),
};

behaviours("[FA11] operations without await", {
  "their failure is the call's, and nothing of it is kept": withFunctions(
    { ...left, failing, all },
    async (t) => {
      for (const [name, message] of Object.entries(received)) {
        await assert.rejects(t.mutation(`app:${name}`), (error: Error) => {
          assert.match(error.message, message, name);
          return true;
        });
      }
      assert.equal(await t.query("app:all"), "");
    },
  ),
  "caught failures belong to the code that catches them": withFunctions({
    ...taken,
    failing,
    all,
    inner: internalMutation({
      handler: async (ctx) => {
        await ctx.db.insert("people", wrong).catch(() => {});
        return null;
      },
    }),
  }, async (t) => {
    assert.equal(await t.mutation("app:caught"), "done");
    assert.deepEqual(await t.mutation("app:settled"), ["rejected", "rejected", "fulfilled"]);
    assert.equal(await t.mutation("app:takenLate"), "taken");
    assert.equal(await t.query("app:all"), "before sound");
  }),
  "a nested mutation fails for its caller, which may continue": withFunctions({
    all,
    careless: internalMutation({
      handler: async (ctx) => {
        await people(ctx, "careless");
        void ctx.db.insert("people", wrong);
      },
    }),
    outer: mutation({
      handler: async (ctx) => {
        await people(ctx, "outer");
        return await ctx.runMutation("app:careless").catch((error: Error) => error.message);
      },
    }),
  }, async (t) => {
    assert.match(await t.mutation("app:outer") as string, /^ctx\.db\.insert\("people", \.\.\.\) failed/);
    assert.equal(await t.query("app:all"), "outer");
  }),
  "an action that does not wait for a mutation's failure fails": withFunctions(
    {
      failing,
      act: action({
        handler: async (ctx) => {
          void ctx.runMutation("app:failing");
          await new Promise((resolve) => setTimeout(resolve, 50));
          return "done";
        },
      }),
    },
    (t) =>
      assert.rejects(
        t.action("app:act"),
        /ctx\.runMutation\("app:failing"\) failed and was not awaited: Not today$/,
      ),
  ),
  "writing in a query is reported, too": withFunctions({
    read: query({
      handler: (ctx) => {
        void (ctx.db as never as { insert(table: string, fields: unknown): Promise<null> }).insert(
          "people",
          {},
        );
        return 1;
      },
    }),
  }, (t) => assert.rejects(t.query("app:read"), /failed and was not awaited, .*A query cannot write/)),
});
