/** Functions that reveal lost, partial and repeated runs. */
import {
  untypedInternalAction,
  untypedInternalMutation,
  untypedMutation,
  untypedQuery,
} from "syncline/server";
import { z } from "zod";

const which = { round: z.int(), n: z.int() };

export const run = untypedInternalMutation({
  args: which,
  handler: async (ctx, args) => {
    await ctx.db.insert("runs", args);
  },
});

export const note = untypedInternalMutation({
  args: { ...which, table: z.enum(["begun", "ended"]) },
  handler: async (ctx, { table, ...args }) => {
    await ctx.db.insert(table, args);
  },
});

export const act = untypedInternalAction({
  args: which,
  handler: async (ctx, args) => {
    await ctx.runMutation("work:note", { ...args, table: "begun" });
    await new Promise((resolve) => setTimeout(resolve, 40));
    await ctx.runMutation("work:note", { ...args, table: "ended" });
  },
});

/** Schedules `count` mutations, and an action for every tenth, `everyMs` apart. */
export const plan = untypedMutation({
  args: { round: z.int(), count: z.int(), inMs: z.number(), everyMs: z.number(), actions: z.boolean() },
  handler: async (ctx, { round, count, inMs, everyMs, actions }) => {
    for (let n = 0; n < count; n++) {
      await ctx.scheduler.runAfter(inMs + n * everyMs, "work:run", { round, n });
      if (actions && n % 10 === 0) {
        await ctx.scheduler.runAfter(inMs + n * everyMs, "work:act", { round, n });
      }
    }
  },
});

/** Loops forever, so that the writer must be killed. */
export const stuck = untypedInternalMutation({
  handler: () => {
    for (;;);
  },
});

export const planStuck = untypedMutation({
  handler: (ctx) => ctx.scheduler.runAfter(0, "work:stuck"),
});

export const touch = untypedMutation({ handler: () => null });

export const openJobs = untypedQuery({
  handler: async (ctx) => {
    let open = 0;
    for (const kind of ["pending", "inProgress"] as const) {
      open += (await ctx.db.query("_scheduled_functions")
        .withIndex("by_due", (q) => q.eq("state.kind", kind)).collect()).length;
    }
    return open;
  },
});

/** Runs of a round by number, and the results of its jobs. */
export const outcome = untypedQuery({
  args: { round: z.int() },
  handler: async (ctx, { round }) => {
    const numbers = async (table: "runs" | "begun" | "ended") =>
      (await ctx.db.query(table).withIndex("by_round", (q) => q.eq("round", round)).collect())
        .map((row) => row.n as number);
    const jobs = (await ctx.db.query("_scheduled_functions").collect())
      .filter((job) => job.args["round"] === round || job.name === "work:stuck");
    return {
      runs: await numbers("runs"),
      begun: await numbers("begun"),
      ended: await numbers("ended"),
      jobs: jobs.map(({ name, args, state }) => ({ name, n: args["n"] as number, state })),
    };
  },
});
