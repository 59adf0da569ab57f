/** Deferred and external calls: scheduled functions, crons and HTTP routes. */
import assert from "node:assert/strict";
import { cronJobs, httpAction, httpRouter, UserError } from "syncline/server";
import { z } from "zod";
import { createTestServer } from "syncline/test";
import { action, type Case, mutation, names, query, schema, type Server } from "./support.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

const app = {
  add: mutation({
    args: { name: z.string(), fail: z.boolean().default(false) },
    handler: async (ctx, { name, fail }) => {
      await ctx.db.insert("people", { name, age: Date.now() });
      if (fail) throw new UserError("failed", "No");
    },
  }),
  all: query({ handler: async (ctx) => names(await ctx.db.query("people").collect()) }),
  later: mutation({
    args: { name: z.string(), ms: z.number(), fail: z.boolean().default(false) },
    handler: async (ctx, { ms, ...args }) => await ctx.scheduler.runAfter(ms, "app:add", args),
  }),
  at: mutation({
    args: { time: z.number() },
    handler: async (ctx, { time }) => await ctx.scheduler.runAt(time, "app:add", { name: "at" }),
  }),
  regret: mutation({
    handler: async (ctx) => {
      await ctx.scheduler.runAfter(0, "app:add", { name: "never" });
      throw new Error("regretted");
    },
  }),
  cancel: mutation({
    args: { id: z.string() },
    handler: (ctx, { id }) => ctx.scheduler.cancel(id as never),
  }),
  again: mutation({
    args: { left: z.number() },
    handler: async (ctx, { left }) => {
      await ctx.db.insert("people", { name: `${left}` });
      if (left > 1) await ctx.scheduler.runAfter(MINUTE_MS, "app:again", { left: left - 1 });
    },
  }),
  outside: action({
    args: { name: z.string() },
    handler: async (ctx, { name }) => {
      await ctx.runMutation("app:add", { name: `${name} by ${ctx.auth.userId()}` });
    },
  }),
  laterOutside: mutation({
    handler: (ctx) => ctx.scheduler.runAfter(1_000, "app:outside", { name: "action" }),
  }),
  fromAction: action({
    handler: (ctx) => ctx.scheduler.runAfter(MINUTE_MS, "app:add", { name: "scheduled by an action" }),
  }),
};

function cases(area: string, listed: Record<string, Case>, extra: Record<string, unknown> = {}): void {
  for (const [name, check] of Object.entries(listed)) {
    Deno.test(`${area}: ${name}`, async () => {
      await using server = await createTestServer({
        modules: { schema: { default: schema }, app, ...extra },
      });
      await check(server as Server);
    });
  }
}

cases("scheduler", {
  "runAfter runs when the time has come, and not before": async (t) => {
    await t.mutation("app:later", { name: "a", ms: HOUR_MS });
    await t.advance(HOUR_MS - 1);
    assert.equal(await t.query("app:all"), "");
    await t.advance(1);
    assert.equal(await t.query("app:all"), "a");
  },
  "runAfter 0 runs right after the commit": async (t) => {
    await t.mutation("app:later", { name: "a", ms: 0 });
    await t.settled();
    assert.equal(await t.query("app:all"), "a");
  },
  "runAt runs at its time, and sees it as the present": async (t) => {
    const time = t.now() + 5 * HOUR_MS;
    await t.mutation("app:at", { time });
    await t.advance(24 * HOUR_MS);
    assert.equal(await t.run(async ({ db }) => (await db.query("people").unique())?.age), time);
  },
  "runAt in the past runs at once": async (t) => {
    await t.mutation("app:at", { time: t.now() - HOUR_MS });
    await t.settled();
    assert.equal(await t.query("app:all"), "at");
  },
  "what a mutation scheduled is undone when it throws": async (t) => {
    await assert.rejects(t.mutation("app:regret"), { message: "regretted" });
    await t.advance(HOUR_MS);
    assert.equal(await t.query("app:all"), "");
  },
  "what is canceled does not run": async (t) => {
    const id = await t.mutation("app:later", { name: "a", ms: HOUR_MS });
    await t.mutation("app:cancel", { id });
    await t.advance(2 * HOUR_MS);
    assert.equal(await t.query("app:all"), "");
  },
  "canceling what has run changes nothing": async (t) => {
    const id = await t.mutation("app:later", { name: "a", ms: 0 });
    await t.settled();
    await t.mutation("app:cancel", { id });
    assert.equal(await t.query("app:all"), "a");
  },
  "functions run in the order of their times": async (t) => {
    for (const [name, ms] of [["c", 3_000], ["a", 1_000], ["b", 2_000]]) {
      await t.mutation("app:later", { name, ms });
    }
    await t.advance(HOUR_MS);
    assert.equal(await t.query("app:all"), "a b c");
  },
  "a scheduled mutation that fails leaves nothing and is not run again": async (t) => {
    await t.mutation("app:later", { name: "a", ms: 0, fail: true });
    await t.advance(HOUR_MS);
    assert.equal(await t.query("app:all"), "");
  },
  "a scheduled function schedules the next one": async (t) => {
    await t.mutation("app:again", { left: 3 });
    await t.advance(10 * MINUTE_MS);
    assert.equal(await t.query("app:all"), "3 2 1");
  },
  "a scheduled action runs without a user": async (t) => {
    const ada = await t.asUser("Ada");
    await ada.mutation("app:laterOutside");
    await t.advance(1_000);
    assert.equal(await t.query("app:all"), "action by null");
  },
  "actions schedule too": async (t) => {
    await t.action("app:fromAction");
    await t.advance(MINUTE_MS - 1);
    assert.equal(await t.query("app:all"), "");
    await t.advance(1);
    assert.equal(await t.query("app:all"), "scheduled by an action");
  },
  "live queries see what scheduled functions write": async (t) => {
    using seen = t.subscribe("app:all");
    await seen.next();
    await t.mutation("app:later", { name: "a", ms: HOUR_MS });
    await t.advance(HOUR_MS);
    assert.deepEqual(seen.results, ["", "a"]);
  },
  "an unknown function cannot be scheduled": async (t) => {
    await assert.rejects(t.run((ctx) => ctx.scheduler.runAfter(0, "app:nothing")), /app:nothing/);
  },
  "a query cannot be scheduled": async (t) => {
    await assert.rejects(t.run((ctx) => ctx.scheduler.runAfter(0, "app:all")), /app:all.* is a query/);
  },
  "arguments are checked when they are scheduled": async (t) => {
    await assert.rejects(t.run((ctx) => ctx.scheduler.runAfter(0, "app:add", { name: 1 })), /name/);
  },
  "a delay that is no number, or negative, is refused": async (t) => {
    await assert.rejects(t.run((ctx) => ctx.scheduler.runAfter(NaN, "app:add", { name: "a" })), /NaN|number/);
  },
});

const often = cronJobs();
often.interval("often", { minutes: 10 }, "app:add", { name: "often" });

const crons = cronJobs();
crons.daily("nightly", { hourUTC: 3, minuteUTC: 30 }, "app:add", { name: "nightly" });
crons.cron("mondays", "0 12 * * 1", "app:add", { name: "monday" });

/** How often a cron has run, and when last. */
async function runsOf(t: Server, name: string): Promise<{ count: number; last: string }> {
  return await t.run(async ({ db }) => {
    const rows = await db.query("people").withIndex("by_name", (q) => q.eq("name", name)).collect();
    return { count: rows.length, last: new Date(rows.at(-1)?.age ?? 0).toISOString() };
  });
}

cases("crons", {
  "an interval runs at once and then every so often": async (t) => {
    await t.advance(HOUR_MS);
    assert.equal((await runsOf(t, "often")).count, 7);
  },
}, { crons: { default: often } });

cases("crons", {
  "daily runs once a day at its time, UTC": async (t) => {
    await t.advance(3 * 24 * HOUR_MS);
    assert.deepEqual(await runsOf(t, "nightly"), { count: 3, last: "2030-01-03T03:30:00.000Z" });
  },
  "an expression runs at its times": async (t) => {
    await t.advance(14 * 24 * HOUR_MS);
    assert.deepEqual(await runsOf(t, "monday"), { count: 2, last: "2030-01-14T12:00:00.000Z" });
  },
}, { crons: { default: crons } });

const cronMistakes: Record<
  string,
  readonly [make: (crons: ReturnType<typeof cronJobs>) => void, message: RegExp]
> = {
  "an interval of no length": [(c) => c.interval("a", { seconds: 0 }, "app:add"), /at least one second/],
  "an hour that is none": [
    (c) => c.daily("a", { hourUTC: 24, minuteUTC: 0 }, "app:add"),
    /hourUTC must be a whole number from 0 to 23/,
  ],
  "two crons of one name": [
    (c) => {
      c.hourly("a", { minuteUTC: 0 }, "app:add");
      c.hourly("a", { minuteUTC: 1 }, "app:add");
    },
    /Duplicate cron "a"/,
  ],
  "a name of the service": [(c) => c.hourly("svc-a", { minuteUTC: 0 }, "app:add"), /are reserved/],
};

for (const [name, [make, message]] of Object.entries(cronMistakes)) {
  Deno.test(`crons: ${name} is refused`, () => assert.throws(() => make(cronJobs()), message));
}

for (
  const [name, [add, message]] of Object.entries<[(c: ReturnType<typeof cronJobs>) => void, RegExp]>({
    "an unknown function": [
      (c) => c.hourly("a", { minuteUTC: 0 }, "app:nothing"),
      /there is no function "app:nothing"/,
    ],
    "a query": [
      (c) => c.hourly("a", { minuteUTC: 0 }, "app:all"),
      /only mutations and actions can be crons/,
    ],
    "arguments that do not fit": [
      (c) => c.hourly("a", { minuteUTC: 0 }, "app:add", { name: 1 }),
      /cron "a": args\.name/,
    ],
    "an expression that is none": [(c) => c.cron("a", "every day", "app:add", { name: "a" }), /five fields/],
  })
) {
  Deno.test(`crons: ${name} is refused when the app is loaded`, async () => {
    const broken = cronJobs();
    add(broken);
    const modules = { schema: { default: schema }, app, crons: { default: broken } };
    await assert.rejects(createTestServer({ modules }), message);
  });
}

const http = httpRouter();
http.route({
  path: "/hook",
  method: "POST",
  handler: httpAction(async (ctx, request) => {
    const { name } = await request.json();
    await ctx.runMutation("app:add", { name });
    return new Response(await ctx.runQuery("app:all") as string, {
      status: 201,
      headers: { "X-Test": "yes" },
    });
  }),
});
http.route({
  pathPrefix: "/files/",
  method: "GET",
  handler: httpAction((_ctx, request) => Promise.resolve(new Response(new URL(request.url).pathname))),
});
http.route({
  path: "/files/one",
  method: "GET",
  handler: httpAction(() => Promise.resolve(new Response("the one"))),
});
http.route({
  path: "/broken",
  method: "GET",
  handler: httpAction(() => Promise.reject(new Error("a bug"))),
});

cases("http routes", {
  "a route gets the request and answers it": async (t) => {
    const response = await t.fetch("/hook", { method: "POST", body: JSON.stringify({ name: "a" }) });
    assert.deepEqual(
      [response?.status, response?.headers.get("X-Test"), await response?.text()],
      [201, "yes", "a"],
    );
  },
  "live queries see what a route writes": async (t) => {
    using seen = t.subscribe("app:all");
    await seen.next();
    await t.fetch("/hook", { method: "POST", body: JSON.stringify({ name: "a" }) });
    assert.deepEqual(seen.results, ["", "a"]);
  },
  "a prefix takes what is below it, an exact path comes first": async (t) => {
    const read = async (path: string) => await (await t.fetch(path))?.text();
    assert.deepEqual([await read("/files/a/b"), await read("/files/one")], ["/files/a/b", "the one"]);
  },
  "another method or path is nobody's": async (t) => {
    for (const path of ["/hook", "/elsewhere", "/files"]) assert.equal((await t.fetch(path)).status, 404);
  },
  "an error of a handler": async (t) => {
    const answer = await t.fetch("/broken");
    assert.equal(answer.status, 500);
    assert.deepEqual(await answer.json(), { status: "error", errorMessage: "a bug", errorData: null });
  },
}, { http: { default: http } });
