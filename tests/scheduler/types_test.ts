/** Types of `ctx.scheduler` and `cronJobs()`, checked by `deno check`. */
import assert from "node:assert/strict";
import {
  createApi,
  createFunctions,
  cronJobs,
  defineSchema,
  defineTable,
  httpAction,
  httpRouter,
  type Id,
} from "syncline/server";
import { z } from "zod";

const schema = defineSchema({ notes: defineTable({ text: z.string() }) });
const { internalMutation, internalAction, query, mutation } = createFunctions(schema);

const notes = {
  add: internalMutation({ args: { text: z.string() }, handler: (ctx, args) => ctx.db.insert("notes", args) }),
  sweep: internalAction({ handler: () => null }),
  list: query({ handler: (ctx) => ctx.db.query("notes").collect() }),
};

const { api, internal } = createApi<{ notes: typeof notes }>();

export const plan = mutation({
  handler: async (ctx) => {
    const id: Id<"_scheduled_functions"> = await ctx.scheduler.runAfter(5, internal.notes.add, { text: "a" });
    await ctx.scheduler.runAt(new Date(0), internal.notes.sweep);
    await ctx.scheduler.runAt(0, "notes:add", { text: "a" });
    await ctx.scheduler.cancel(id);
    const job = await ctx.db.get(id);
    if (job?.state.kind === "failed") return job.state.error.length;
    // @ts-expect-error -- the arguments do not fit
    await ctx.scheduler.runAfter(5, internal.notes.add, { text: 1 });
    // @ts-expect-error -- an argument is missing
    await ctx.scheduler.runAfter(5, internal.notes.add);
    // @ts-expect-error -- a query cannot be scheduled
    await ctx.scheduler.runAfter(5, api.notes.list);
    // @ts-expect-error -- the id of another table
    await ctx.scheduler.cancel("x" as Id<"notes">);
    // @ts-expect-error -- jobs are written by the scheduler alone
    await ctx.db.patch(id, { name: "x" });
    return null;
  },
});

Deno.test("cron jobs and routes are typed by their functions", () => {
  const crons = cronJobs();
  crons.daily("a", { hourUTC: 1, minuteUTC: 2 }, internal.notes.add, { text: "a" });
  crons.interval("b", { seconds: 5 }, internal.notes.sweep);
  // @ts-expect-error -- the arguments do not fit
  crons.hourly("c", { minuteUTC: 2 }, internal.notes.add, { text: 1 });
  // @ts-expect-error -- a query cannot be a cron
  crons.hourly("d", { minuteUTC: 2 }, api.notes.list);
  // @ts-expect-error -- two units, refused when it runs, too
  assert.throws(() => crons.interval("e", { seconds: 5, minutes: 1 }, internal.notes.sweep), /be one of/);
  const http = httpRouter();
  http.route({
    path: "/x",
    method: "POST",
    handler: httpAction(async (ctx, request) => {
      const { length } = await ctx.runMutation(internal.notes.add, { text: await request.text() });
      // @ts-expect-error -- actions have no database
      void (() => ctx.db);
      return new Response(`${length}`);
    }),
  });
  // @ts-expect-error -- a path or a prefix
  assert.throws(() => http.route({ path: "/y", pathPrefix: "/y", method: "GET", handler: null }), /either/);
});
