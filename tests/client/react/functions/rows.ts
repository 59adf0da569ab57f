/** Functions called by the test pages. */
import { paginationOpts, UserError } from "syncline/server";
import { z } from "zod";
import { action, mutation, query } from "./schema.ts";

/** All rows of a list. */
export const all = query({
  args: { list: z.string() },
  handler: (ctx, { list }) =>
    ctx.db.query("rows").withIndex("by_list_rank", (q) => q.eq("list", list)).collect(),
});

/** A list in pages. */
export const page = query({
  args: { list: z.string(), paginationOpts },
  handler: (ctx, { list, paginationOpts }) =>
    ctx.db.query("rows").withIndex("by_list_rank", (q) => q.eq("list", list)).paginate(paginationOpts),
});

/** The caller's own list in pages: another index range for each user. */
export const ownPage = query({
  args: { paginationOpts },
  handler: (ctx, { paginationOpts }) => {
    const list = ctx.auth.userId() ?? "nobody";
    return ctx.db.query("rows").withIndex("by_list_rank", (q) => q.eq("list", list)).paginate(paginationOpts);
  },
});

/** Text of one row, or `null`. */
export const text = query({
  args: { list: z.string(), rank: z.number() },
  handler: async (ctx, { list, rank }) => {
    const row = await ctx.db.query("rows")
      .withIndex("by_list_rank", (q) => q.eq("list", list).eq("rank", rank)).first();
    if (row?.text === "fail") throw new UserError("asked_to_fail", "This row fails");
    return row?.text ?? null;
  },
});

/** Id of the caller, or `null`. */
export const me = query({ handler: (ctx) => ctx.auth.userId() });

/** Sets the text of a row, or inserts a row at this rank. */
export const put = mutation({
  args: { list: z.string(), rank: z.number(), text: z.string() },
  handler: async (ctx, row) => {
    const known = await ctx.db.query("rows")
      .withIndex("by_list_rank", (q) => q.eq("list", row.list).eq("rank", row.rank)).first();
    if (known === null) await ctx.db.insert("rows", row);
    else await ctx.db.patch(known._id, { text: row.text });
  },
});

/** Adds rows at these ranks. */
export const fill = mutation({
  args: { list: z.string(), ranks: z.array(z.number()) },
  handler: async (ctx, { list, ranks }) => {
    for (const rank of ranks) await ctx.db.insert("rows", { list, rank, text: `t${rank}` });
  },
});

/** Adds and removes rows in one step. */
export const change = mutation({
  args: { list: z.string(), add: z.array(z.number()), remove: z.array(z.number()) },
  handler: async (ctx, { list, add, remove }) => {
    for (const rank of remove) {
      const row = await ctx.db.query("rows")
        .withIndex("by_list_rank", (q) => q.eq("list", list).eq("rank", rank)).first();
      if (row !== null) await ctx.db.delete(row._id);
    }
    for (const rank of add) await ctx.db.insert("rows", { list, rank, text: `t${rank}` });
  },
});

/** Returns its argument in capitals. */
export const shout = action({
  args: { text: z.string() },
  handler: (_ctx, { text }) => text.toUpperCase(),
});
