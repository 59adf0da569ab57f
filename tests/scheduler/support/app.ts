/** App of the scheduler tests: records runs, and can fail or block on request. */
import {
  untypedAction,
  untypedInternalAction,
  untypedInternalMutation,
  untypedMutation,
  untypedQuery,
} from "syncline/server";
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
import type { CronJobs } from "../../../mod/functions/api/cron_jobs.ts";
import type { AppModule } from "../../../mod/functions/isolate/app/loader.ts";

/** Blocked actions, released by the test. */
export class Holds {
  readonly #waiting: (() => void)[] = [];

  /** Number of blocked actions. */
  get held(): number {
    return this.#waiting.length;
  }

  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Releases the action that has been blocked longest. */
  release(): void {
    this.#waiting.shift()?.();
  }

  releaseAll(): void {
    while (this.#waiting.length > 0) this.release();
  }
}

const schema = defineSchema({ notes: defineTable({ text: z.string(), at: z.number() }) });

/** Function to schedule: `kind` selects the call, `when` its time. */
const jobArgs = {
  path: z.string(),
  args: z.record(z.string(), z.unknown()).default({}),
  when: z.number(),
  after: z.boolean().default(true),
};

/** The app's modules. Its actions block at `holds`. */
export function appModules(holds: Holds, crons: CronJobs | undefined): AppModule[] {
  const app = {
    note: untypedMutation({
      args: { text: z.string() },
      handler: async (ctx, { text }) => {
        await ctx.db.insert("notes", { text, at: Date.now() });
        if (text.startsWith("bad")) throw new Error(`no ${text}`);
      },
    }),
    hidden: untypedInternalMutation({
      args: { text: z.string() },
      handler: (ctx, { text }) =>
        ctx.db.insert("notes", { text: `${text} ${ctx.auth.identity()}`, at: Date.now() }),
    }),
    schedule: untypedMutation({
      args: jobArgs,
      handler: (ctx, { path, args, when, after }) =>
        after ? ctx.scheduler.runAfter(when, path, args) : ctx.scheduler.runAt(when, path, args),
    }),
    scheduleByAction: untypedAction({
      args: jobArgs,
      handler: (ctx, { path, args, when }) => ctx.scheduler.runAfter(when, path, args),
    }),
    scheduleMany: untypedMutation({
      args: { texts: z.array(z.string()), at: z.number(), fails: z.boolean().default(false) },
      handler: async (ctx, { texts, at, fails }) => {
        for (const text of texts) await ctx.scheduler.runAt(at, "app:note", { text });
        if (fails) throw new Error("thrown after scheduling");
      },
    }),
    tryMany: untypedMutation({
      args: { texts: z.array(z.string()), at: z.number() },
      handler: async (ctx, args) => {
        await ctx.runMutation("app:scheduleMany", { ...args, fails: true }).catch(() => {});
      },
    }),
    tryManyByAction: untypedAction({
      args: { texts: z.array(z.string()), at: z.number() },
      handler: async (ctx, args) => {
        await ctx.runMutation("app:scheduleMany", { ...args, fails: true }).catch(() => {});
      },
    }),
    repeat: untypedMutation({
      args: { times: z.number(), path: z.string(), args: z.record(z.string(), z.unknown()) },
      handler: async (ctx, { times, path, args }) => {
        for (let n = 0; n < times; n++) await ctx.scheduler.runAfter(0, path, args);
      },
    }),
    repeatThen: untypedMutation({
      args: {
        times: z.number(),
        path: z.string(),
        args: z.record(z.string(), z.unknown()),
        then: z.object({ path: z.string(), args: z.record(z.string(), z.unknown()) }),
      },
      handler: async (ctx, { times, path, args, then }) => {
        for (let n = 0; n < times; n++) await ctx.scheduler.runAfter(0, path, args);
        await ctx.scheduler.runAfter(1, then.path, then.args);
      },
    }),
    count: untypedMutation({
      args: { left: z.number() },
      handler: async (ctx, { left }) => {
        if (left > 0) await ctx.scheduler.runAfter(0, "app:count", { left: left - 1 });
      },
    }),
    scheduleAndThrow: untypedMutation({
      args: { text: z.string() },
      handler: async (ctx, { text }) => {
        await ctx.scheduler.runAfter(0, "app:note", { text });
        throw new Error("thrown after scheduling");
      },
    }),
    scheduleInNested: untypedMutation({
      args: { text: z.string() },
      handler: async (ctx, { text }) => {
        await ctx.runMutation("app:scheduleAndThrow", { text }).catch(() => {});
        await ctx.scheduler.runAfter(0, "app:note", { text: `${text} outside` });
      },
    }),
    cancel: untypedMutation({
      args: { id: z.string() },
      handler: (ctx, { id }) => ctx.scheduler.cancel(id as never),
    }),
    cancelOwn: untypedMutation({
      args: { text: z.string() },
      handler: async (ctx, { text }) =>
        await ctx.scheduler.cancel(await ctx.scheduler.runAfter(0, "app:note", { text })),
    }),
    wait: untypedInternalAction({
      args: { text: z.string() },
      handler: async (ctx, { text }) => {
        await ctx.runMutation("app:note", { text: `${text} began` });
        await holds.wait();
        await ctx.runMutation("app:note", { text: `${text} ended` });
        if (text.startsWith("failing")) throw new Error(`no ${text}`);
      },
    }),
    texts: untypedQuery({
      handler: async (ctx) => (await ctx.db.query("notes").collect()).map(({ text }) => text),
    }),
    times: untypedQuery({
      handler: async (ctx) => (await ctx.db.query("notes").collect()).map(({ at }) => at),
    }),
    jobs: untypedQuery({
      handler: async (ctx) => await ctx.db.query("_scheduled_functions").collect(),
    }),
    job: untypedQuery({
      args: { id: z.string() },
      handler: async (ctx, { id }) => await ctx.db.get(id as never),
    }),
    removeJob: untypedMutation({
      args: { id: z.string() },
      handler: (ctx, { id }) => ctx.db.delete(id as never),
    }),
  };
  return [
    { name: "schema.ts", modulePath: "schema", exports: { default: schema } },
    { name: "app.ts", modulePath: "app", exports: app },
    ...(crons === undefined ? [] : [{ name: "crons.ts", modulePath: "crons", exports: { default: crons } }]),
  ];
}
