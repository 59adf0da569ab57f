/** Rows of environment variables. The main process encrypts them. */
import { z } from "zod";
import { UserError } from "../../../errors.ts";
import { deployLimits } from "../../limits.ts";
import { type DeployDoc, systemMutation, systemQuery } from "../tables.ts";

/** Returns all rows, still encrypted. */
export const rows = systemQuery({
  args: {},
  handler: async (ctx): Promise<DeployDoc<"_env">[]> => await ctx.db.query("_env").collect(),
});

/** Changes variables atomically; `null` deletes one. */
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
        `The change would result in ${length} variables; the limit is ${deployLimits.variablesMax}`,
      );
    }
    return null;
  },
});
