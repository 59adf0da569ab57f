/** Variables of `ctx.env` as documents; main seals them. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import { deployLimits } from "../../limits.ts";
import { type DeployDoc, systemMutation, systemQuery } from "../tables.ts";

/** All of them, still sealed. */
export const rows = systemQuery({
  args: {},
  handler: async (ctx): Promise<DeployDoc<"_env">[]> => await ctx.db.query("_env").collect(),
});

/** Changes several, all or none; `null` forgets one. */
export const change = systemMutation({
  args: {
    changes: z.array(z.strictObject({
      name: z.string(),
      value: z.strictObject({ sealed: z.string(), key: z.string() }).nullable(),
    })),
  },
  handler: async (ctx, { changes }): Promise<null> => {
    for (const { name, value } of changes) {
      const row = await ctx.db.query("_env").withIndex("by_name", (q) => q.eq("name", name)).unique();
      if (row !== null && value !== null) await ctx.db.replace(row._id, { name, ...value });
      else if (row !== null) await ctx.db.delete(row._id);
      else if (value !== null) await ctx.db.insert("_env", { name, ...value });
    }
    const { length } = await ctx.db.query("_env").collect();
    if (length > deployLimits.variablesMax) {
      throw new UserError(
        "too_many_variables",
        `There would be ${length} variables and the limit is ${deployLimits.variablesMax}`,
      );
    }
    return null;
  },
});
