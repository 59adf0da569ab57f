/** Live queries: which changes run them again, which sockets share them, and what clients receive. */
import assert from "node:assert/strict";
import { UserError } from "syncline/server";
import { z } from "zod";
import { type Case, mutation, names, people, query, serve, type Server } from "./support.ts";

/** Functions that count their runs. */
function counted() {
  const runs = { byName: 0, all: 0, first: 0, page: 0, mine: 0, session: 0, missing: 0, get: 0 };
  const functions = {
    byName: query({
      args: { name: z.string() },
      handler: async (ctx, { name }) => {
        runs.byName++;
        return (await ctx.db.query("people").withIndex("by_name", (q) => q.eq("name", name)).collect())
          .length;
      },
    }),
    all: query({
      handler: async (ctx) => {
        runs.all++;
        return names(await ctx.db.query("people").collect());
      },
    }),
    first: query({
      handler: async (ctx) => {
        runs.first++;
        return (await ctx.db.query("people").withIndex("by_name").first())?.name ?? null;
      },
    }),
    page: query({
      handler: async (ctx) => {
        runs.page++;
        const { page } = await ctx.db.query("people").withIndex("by_name").paginate({
          cursor: null,
          numItems: 2,
        });
        return names(page);
      },
    }),
    get: query({
      args: { id: z.string() },
      handler: async (ctx, { id }) => {
        runs.get++;
        return (await ctx.db.get("people", id as never))?.name ?? null;
      },
    }),
    mine: query({
      handler: (ctx) => {
        runs.mine++;
        return ctx.auth.userId();
      },
    }),
    session: query({
      handler: (ctx) => {
        runs.session++;
        return ctx.auth.sessionId();
      },
    }),
    moody: query({
      handler: async (ctx) => {
        const first = await ctx.db.query("people").first();
        if (first?.name === "bad") throw new UserError("bad", "Bad mood");
        return first?.name ?? null;
      },
    }),
    clock: query({ handler: () => Date.now() }),
    add: mutation({
      args: { name: z.string() },
      handler: (ctx, { name }) => ctx.db.insert("people", { name }),
    }),
    nothing: mutation({ handler: () => null }),
  };
  return { runs, functions };
}

type Runs = ReturnType<typeof counted>["runs"];

function live(cases: Record<string, (server: Server, runs: Runs) => ReturnType<Case>>): void {
  for (const [name, check] of Object.entries(cases)) {
    Deno.test(`live queries: ${name}`, async () => {
      const { runs, functions } = counted();
      await using server = await serve(functions);
      await check(server, runs);
    });
  }
}

live({
  "a write outside the range of a query does not run it again": async (t, runs) => {
    using seen = t.subscribe("app:byName", { name: "m" });
    await seen.next();
    for (const name of ["a", "z", "mm"]) await t.mutation("app:add", { name });
    assert.deepEqual([runs.byName, seen.results], [1, [0]]);
  },
  "a write inside the range runs it again, once": async (t, runs) => {
    using seen = t.subscribe("app:byName", { name: "m" });
    await seen.next();
    await t.mutation("app:add", { name: "m" });
    assert.deepEqual([runs.byName, seen.results], [2, [0, 1]]);
  },
  "a write to another table does not run it again": async (t, runs) => {
    using seen = t.subscribe("app:all");
    await seen.next();
    await t.run(({ db }) => db.insert("things", {}));
    assert.equal(runs.all, 1);
  },
  "a query that read the first row only is not run again by a row behind it": async (t, runs) => {
    await t.mutation("app:add", { name: "b" });
    using seen = t.subscribe("app:first");
    await seen.next();
    await t.mutation("app:add", { name: "c" });
    assert.equal(runs.first, 1);
    await t.mutation("app:add", { name: "a" });
    assert.deepEqual([runs.first, seen.results], [2, ["b", "a"]]);
  },
  "a page is not run again by rows behind its end": async (t, runs) => {
    await t.run((ctx) => people(ctx, "a", "b", "c"));
    using seen = t.subscribe("app:page");
    await seen.next();
    await t.mutation("app:add", { name: "d" });
    assert.equal(runs.page, 1);
    await t.mutation("app:add", { name: "aa" });
    assert.deepEqual(seen.results, ["a b", "a aa"]);
  },
  "a document that was looked for by id is noticed when it is deleted": async (t, runs) => {
    const id = await t.mutation("app:add", { name: "a" }) as never;
    using seen = t.subscribe("app:get", { id });
    assert.equal(await seen.next(), "a");
    await t.mutation("app:add", { name: "b" });
    assert.equal(runs.get, 1);
    await t.run(({ db }) => db.delete(id));
    assert.equal(await seen.next(), null);
  },
  "a result that comes out the same is not sent again": async (t, runs) => {
    await t.run((ctx) => people(ctx, "a"));
    using seen = t.subscribe("app:byName", { name: "a" });
    await seen.next();
    await t.run(async ({ db }) => {
      const row = await db.query("people").first();
      if (row !== null) await db.patch(row._id, { age: 1 });
    });
    assert.deepEqual([runs.byName, seen.results], [2, [1]]);
  },
  "a mutation that writes nothing runs nothing again": async (t, runs) => {
    using seen = t.subscribe("app:all");
    await seen.next();
    await t.mutation("app:nothing");
    assert.equal(runs.all, 1);
  },
  "writing a document's own values again is no change": async (t, runs) => {
    const id = await t.mutation("app:add", { name: "a" }) as never;
    using seen = t.subscribe("app:all");
    await seen.next();
    await t.run(({ db }) => db.patch(id, { name: "a" } as never));
    assert.equal(runs.all, 1);
  },
  "equal queries of many clients run once": async (t, runs) => {
    const seen = [];
    for (let n = 0; n < 5; n++) seen.push((await t.asUser(`u${n}`)).subscribe("app:all"));
    for (const one of seen) await one.next();
    assert.equal(runs.all, 1);
    await t.mutation("app:add", { name: "a" });
    for (const one of seen) assert.deepEqual(one.results, ["", "a"]);
    assert.equal(runs.all, 2);
    for (const one of seen) one[Symbol.dispose]();
  },
  "queries that look at the user are shared by the user's clients only": async (t, runs) => {
    const [ada, eve] = [
      await t.asUser({ email: "ada@example.com" }),
      await t.asUser({ email: "eve@example.com" }),
    ];
    const ada2 = await t.asUser({ email: "ada@example.com" });
    const results = [];
    for (const caller of [ada, ada2, eve]) {
      using seen = caller.subscribe("app:mine");
      results.push(await seen.next());
    }
    assert.deepEqual(results, [ada.userId, ada.userId, eve.userId]);
    assert(runs.mine <= 3, `${runs.mine} runs`);
  },
  "queries that look at the session are a session's own": async (t) => {
    const one = await t.asUser({ email: "ada@example.com" });
    const two = await t.asUser({ email: "ada@example.com" });
    assert.deepEqual(
      [await one.query("app:session"), await two.query("app:session")],
      [one.sessionId, two.sessionId],
    );
    assert.notEqual(one.sessionId, two.sessionId);
  },
  "a query asked for once is answered from its last result while nothing changed": async (t, runs) => {
    for (let n = 0; n < 3; n++) await t.query("app:all");
    assert.equal(runs.all, 1);
    await t.mutation("app:add", { name: "a" });
    assert.equal(await t.query("app:all"), "a");
    assert.equal(runs.all, 2);
  },
  "a query that looks at the clock is not answered from its last result": async (t) => {
    const first = await t.query("app:clock");
    await t.advance(5);
    assert.equal(await t.query("app:clock"), first as number + 5);
  },
  "a query that fails stays live and recovers": async (t) => {
    await t.mutation("app:add", { name: "bad" });
    using seen = t.subscribe("app:moody");
    await assert.rejects(seen.next(), { code: "bad", message: "Bad mood" });
    await t.run(async ({ db }) => {
      const row = await db.query("people").first();
      if (row !== null) await db.patch(row._id, { name: "good" });
    });
    assert.equal(await seen.next(), "good");
  },
  "two queries change in one step": async (t) => {
    const { client } = t.asAnonymous();
    const ready = Promise.withResolvers<void>();
    const steps: string[] = [];
    let [all, first]: unknown[] = [undefined, undefined];
    client.subscribe("app:all", {}, (value) => {
      all = value;
      steps.push(`${all}/${client.watchQuery("app:first", {}).localResult()}`);
    });
    client.subscribe("app:first", {}, (value) => {
      first = value;
      ready.resolve();
    });
    await ready.promise;
    await t.mutation("app:add", { name: "a" });
    assert.deepEqual([all, first, steps.at(-1)], ["a", "a", "a/a"]);
  },
  "a subscription that ended hears nothing more": async (t) => {
    const seen = t.subscribe("app:all");
    await seen.next();
    seen[Symbol.dispose]();
    await t.mutation("app:add", { name: "a" });
    assert.deepEqual(seen.results, [""]);
  },
});
