/** Reads of lists and appends to them. Keys with an odd number are stored as one document for each value. */
import type { AppDataModel, MutationCtx as MutationCtxOf, QueryCtx as QueryCtxOf } from "syncline/server";
import { mutation, query } from "./schema.ts";
import { z } from "zod";

type Model = AppDataModel<typeof import("./schema.ts")>;
type QueryCtx = QueryCtxOf<Model>;
type MutationCtx = MutationCtxOf<Model>;

const step = z.object({ type: z.enum(["read", "append"]), key: z.string(), value: z.int().optional() });

const isSplit = (key: string) => /[13579]$/.test(key);

async function valuesOf(ctx: QueryCtx | MutationCtx, key: string): Promise<number[]> {
  if (isSplit(key)) {
    const documents = await ctx.db.query("values").withIndex("by_key", (q) => q.eq("key", key)).collect();
    return documents.map(({ value }) => value);
  }
  const list = await ctx.db.query("lists").withIndex("by_key", (q) => q.eq("key", key)).unique();
  return list?.values ?? [];
}

async function append(ctx: MutationCtx, key: string, value: number): Promise<void> {
  if (isSplit(key)) {
    const last = await ctx.db.query("values").withIndex("by_key", (q) => q.eq("key", key)).order("desc")
      .first();
    await ctx.db.insert("values", { key, at: (last?.at ?? 0) + 1, value });
    return;
  }
  const list = await ctx.db.query("lists").withIndex("by_key", (q) => q.eq("key", key)).unique();
  if (list === null) await ctx.db.insert("lists", { key, values: [value] });
  else await ctx.db.patch(list._id, { values: [...list.values, value] });
}

/** Executes steps in order. Returns the values of each read, and `null` for each append. */
export const apply = mutation({
  args: { steps: z.array(step) },
  handler: async (ctx, { steps }) => {
    const results: (number[] | null)[] = [];
    for (const { type, key, value } of steps) {
      if (type === "append") await append(ctx, key, value ?? 0);
      results.push(type === "read" ? await valuesOf(ctx, key) : null);
    }
    return results;
  },
});

/** The values of several lists. */
export const read = query({
  args: { keys: z.array(z.string()) },
  handler: async (ctx, { keys }) => {
    const results: number[][] = [];
    for (const key of keys) results.push(await valuesOf(ctx, key));
    return results;
  },
});
