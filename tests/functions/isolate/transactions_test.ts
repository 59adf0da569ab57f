/** Batches, groups, replay records and nesting in the writer; refreshBatches in readers. */
import { unpackEntries } from "../../../mod/functions/wire/packed_entry.ts";
import assert from "node:assert/strict";
import { END_OF_KEYS } from "../../../mod/engine/mod.ts";
import { parseFrameText } from "../../../mod/functions/wire/segment_frames.ts";
import type { Group } from "../../../mod/functions/wire/messages.ts";
import { isolateLimits } from "../../../mod/functions/limits.ts";
import { call, errorOf, user, Workspace } from "./support.ts";

const app = {
  "schema.ts": `
    import { defineSchema, defineTable } from "syncline/server";
    import { z } from "zod";
    export default defineSchema({
      counters: defineTable({ name: z.string(), n: z.number() }).index("by_name", ["name"]),
    });
  `,
  "counters.ts": `
    import { untypedMutation, untypedQuery, UserError } from "syncline/server";
    import { z } from "zod";
    export const slow = untypedQuery({
      args: {},
      handler: () => {
        let sum = 0;
        for (let i = 0; i < 100_000_000; i++) sum += i % 7;
        return sum;
      },
    });
    const name = z.string();
    const find = (ctx, name) => ctx.db.query("counters").withIndex("by_name", (q) => q.eq("name", name)).unique();
    export const add = untypedMutation({
      args: { name, by: z.number().default(1) },
      handler: async (ctx, { name, by }) => {
        const counter = await find(ctx, name);
        console.log("adding", by);
        if (counter === null) await ctx.db.insert("counters", { name, n: by });
        else await ctx.db.patch(counter._id, { n: counter.n + by });
        return (counter?.n ?? 0) + by;
      },
    });
    export const value = untypedQuery({ args: { name }, handler: async (ctx, { name }) => (await find(ctx, name))?.n ?? null });
    export const read = untypedMutation({ args: { name }, handler: async (ctx, { name }) => (await find(ctx, name))?.n ?? null });
    export const addThenFail = untypedMutation({
      args: { name },
      handler: async (ctx, { name }) => {
        await ctx.db.insert("counters", { name, n: 1 });
        throw new UserError("no", "Not today");
      },
    });
    export const spin = untypedMutation({
      args: { ms: z.number() },
      handler: (_ctx, { ms }) => {
        let sum = 0;
        for (let i = 0; i < ms * 200_000; i++) sum += Math.sqrt(i);
        return sum;
      },
    });
    export const large = untypedMutation({ args: { size: z.number() }, handler: (_ctx, { size }) => "x".repeat(size) });
    export const bothAtOnce = untypedMutation(async (ctx) => {
      const results = await Promise.allSettled([
        ctx.runMutation("counters:addThenFail", { name: "both" }),
        ctx.runMutation("counters:add", { name: "both" }),
        ctx.db.insert("counters", { name: "own", n: 1 }),
        ctx.runQuery("counters:value", { name: "both" }),
      ]);
      return results.map((r) => r.status === "fulfilled" && typeof r.value !== "string" ? r.value : r.status);
    });
    export const forgetful = untypedMutation({ args: { name }, handler: (ctx, { name }) => {
      ctx.runMutation("counters:add", { name });
      return null;
    } });
    let kept;
    export const keep = untypedMutation(async (ctx) => { kept = ctx; });
    export const useKept = untypedMutation(async () => { await kept.db.insert("counters", { name: "late", n: 1 }); });
    export const leaveBehind = untypedMutation((ctx) => {
      (async () => { for (let i = 0; i < 50; i++) await null; await ctx.db.insert("counters", { name: "left", n: 1 }); })();
      return null;
    });
    export const stuckInside = untypedMutation((ctx) => ctx.runMutation("counters:stuck"));
    export const stuck = untypedMutation(async (ctx) => { await ctx.db.insert("counters", { name: "stuck", n: 1 }); await new Promise(() => {}); });
  `,
};

const session = "6f1f3c9e-0000-4000-8000-000000000001";

Deno.test("the writer runs batches in order, in groups, each call once", async (t) => {
  await using workspace = new Workspace(app);
  await using writer = await workspace.start("writer");
  const mutation = (
    path: string,
    args: Record<string, unknown> = {},
    requestId?: number,
    principal?: string,
  ) => ({
    ...call(`counters:${path}`, args),
    ...(principal === undefined ? {} : { identity: user(principal) }),
    ...(requestId === undefined ? {} : { replay: { sessionId: session, requestId } }),
  });
  const valueOf = async (name: string) => (await writer.mutate("counters:read", { name })).value;

  await t.step("a batch is answered in order, with entries and increasing ts", async () => {
    const { answers, groups } = await writer.batch([
      mutation("add", { name: "a" }),
      mutation("read", { name: "a" }),
      mutation("addThenFail", { name: "a2" }),
      mutation("add", { name: "a" }),
    ]);
    assert.deepEqual(answers.map(({ value, ts }) => [value, ts]), [[1, 1], [1, 1], [undefined, 1], [2, 2]]);
    // One group, or two on a machine that is busy: the slice is short.
    const entries = groups.flatMap(unpackEntries);
    assert.deepEqual(entries.map(({ ts, changes }) => [ts, changes.length]), [[1, 1], [2, 1]]);
    assert.equal(groups.at(-1)?.ts, 2);
    for (const change of entries.flatMap(({ changes }) => changes)) {
      assert.equal("doc" in change, false);
      assert.ok(
        change.keys.length > 0 && change.keys.every(([, , after]) => after !== null && after < END_OF_KEYS),
      );
    }
  });

  await t.step("an answered request is replayed, with its ts, without running again", async () => {
    const first = (await writer.batch([mutation("add", { name: "r" }, 1)])).answers[0];
    const again = (await writer.batch([mutation("add", { name: "r" }, 1)])).answers[0];
    assert.deepEqual([first?.replayed, again?.replayed], [false, true]);
    assert.deepEqual([again?.value, again?.ts, again?.logLines], [first?.value, first?.ts, []]);
    assert.equal(first?.logLines.length, 1);
    assert.equal(await valueOf("r"), 1);
  });

  await t.step("a failure is replayed as the same failure", async () => {
    const first = errorOf(
      (await writer.batch([mutation("addThenFail", { name: "f" }, 2)])).answers[0] ?? assert.fail(),
    );
    const again = errorOf(
      (await writer.batch([mutation("addThenFail", { name: "f" }, 2)])).answers[0] ?? assert.fail(),
    );
    const { stack: _stack, ...shown } = first;
    assert.deepEqual(again, shown);
  });

  await t.step("duplicates within one batch run once; other identities run separately", async () => {
    const { answers } = await writer.batch([
      mutation("add", { name: "d" }, 3),
      mutation("add", { name: "d" }, 3),
      mutation("add", { name: "d" }, 3, "u1"),
      mutation("add", { name: "d" }, 3, "u1"),
    ]);
    assert.deepEqual(answers.map(({ value, replayed }) => [value, replayed]), [
      [1, false],
      [1, true],
      [2, false],
      [2, true],
    ]);
  });

  await t.step("a long batch commits in several groups with consecutive positions", async () => {
    const calls = Array.from(
      { length: 12 },
      () => mutation("spin", { ms: isolateLimits.batchSliceMs }),
    );
    const { groups, answers } = await writer.batch([...calls, mutation("add", { name: "g" })]);
    assert.equal(answers.length, 13);
    assert.ok(groups.length > 1, `${groups.length} groups`);
    assert.deepEqual(
      groups.map(({ from }) => from),
      groups.map((_, index) => groups.slice(0, index).reduce((sum, { answers }) => sum + answers.length, 0)),
    );
  });

  await t.step("large answers are spread over groups", async () => {
    const { answers, groups } = await writer.batch(
      Array.from({ length: 4 }, () => mutation("large", { size: 9 << 20 })),
    );
    assert.deepEqual(answers.map(({ value }) => (value as string).length), [
      9 << 20,
      9 << 20,
      9 << 20,
      9 << 20,
    ]);
    assert.ok(groups.length >= 2, `${groups.length} groups`);
  });

  await t.step(
    "concurrent nested mutations run in turn, so that a rollback of one spares the others",
    async () => {
      const { value } = await writer.mutate("counters:bothAtOnce");
      assert.deepEqual(value, ["rejected", 1, "fulfilled", 1]);
      assert.deepEqual([await valueOf("both"), await valueOf("own")], [1, 1]);
    },
  );

  await t.step("a nested mutation without await still ends within its call", async () => {
    await writer.mutate("counters:forgetful", { name: "forgotten" });
    assert.equal(await valueOf("forgotten"), 1);
  });

  await t.step("a ctx does not outlive its call", async () => {
    await writer.mutate("counters:keep");
    assert.match(errorOf(await writer.mutate("counters:useKept")).message, /"counters:keep" has ended/);
    assert.equal(await valueOf("late"), null);
    await writer.batch([
      mutation("leaveBehind"),
      mutation("add", { name: "x" }),
      mutation("read", { name: "x" }),
    ]);
    assert.equal(await valueOf("left"), null);
  });

  await t.step("a nested handler that never resolves fails the call and leaves nothing behind", async () => {
    assert.match(errorOf(await writer.mutate("counters:stuckInside")).message, /never happens/);
    assert.equal(await valueOf("stuck"), null);
  });

  await t.step("the next writer reports the newest group, and still has the records", async () => {
    const last = (await writer.batch([mutation("add", { name: "z" }, 99)])).answers[0];
    writer.child.kill("SIGKILL");
    await writer.close();
    await using next = await workspace.start("writer");
    assert.equal(next.booted?.type, "Ready");
    const text = next.booted?.type === "Ready" ? next.booted.lastGroup : null;
    const { message, segments } = parseFrameText<Group>(text ?? "");
    assert.equal(message.from, 0);
    assert.deepEqual([message.ts, segments], [last?.ts, ["1"]]);
    const again = (await next.batch([mutation("add", { name: "z" }, 99)])).answers[0];
    assert.deepEqual([again?.replayed, again?.ts, again?.value], [true, last?.ts, 1]);
  });
});

Deno.test("a reader answers a batch from one snapshot", async (t) => {
  await using workspace = new Workspace(app);
  await using writer = await workspace.start("writer");
  await using reader = await workspace.start("reader");
  await writer.mutate("counters:add", { name: "a" });

  await t.step("commits after pinning are not visible", async () => {
    await reader.send({ type: "RunQueryBatch", batch: 1, queries: [call("counters:value", { name: "a" })] });
    const pinned = (await reader.next()).message;
    assert.deepEqual(pinned, { type: "Pinned", batch: 1, ts: 1 });
    await writer.mutate("counters:add", { name: "a" });
    const { message, segments } = await reader.next();
    assert.equal(message.type === "QueryBatchAnswers" && message.last, true);
    assert.deepEqual(segments, ["1"]);
    assert.equal((await reader.query("counters:value", { name: "a" })).value, 2);
  });

  await t.step("reads are reported as intervals, failed queries too", async () => {
    const found = await reader.query("counters:value", { name: "a" });
    const [space, intervals] = Object.entries(found.details.readSet)[0] ?? [];
    assert.match(space ?? "", /^i\d+$/);
    assert.equal(intervals?.length, 1);
    const empty = await reader.query("counters:value", { name: "nobody" });
    assert.notDeepEqual(empty.details.readSet, found.details.readSet);
  });

  await t.step("a ready answer does not wait for a run that was slow the last time", async () => {
    const quick = call("counters:value", { name: "a" });
    const slow = call("counters:slow");
    await reader.queryBatch([quick, slow]);
    await reader.send({ type: "RunQueryBatch", batch: 99, queries: [quick, slow] });
    const froms: number[] = [];
    for (let last = false; !last;) {
      const { message } = await reader.next();
      if (message.type !== "QueryBatchAnswers") continue;
      froms.push(message.from);
      last = message.last;
    }
    assert.deepEqual(froms, [0, 1]);
  });

  await t.step("an empty batch is pinned and ends", async () => {
    assert.deepEqual(await reader.queryBatch([]), { ts: 2, answers: [] });
  });
});
