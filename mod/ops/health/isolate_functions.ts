/** The heartbeat by which `/api/health/ready` checks that commits and reads work. */
import { z } from "zod";
import { createSystemFunctions, defineTable, type Schema } from "../../functions/api/service.ts";

export const tables = {
  /** Contains one document. */
  _health: defineTable({
    /** Incremented by each heartbeat. */
    beat: z.number(),
  }),
};

const { systemQuery, systemMutation } = createSystemFunctions({ tables } satisfies Schema<typeof tables>);

/** Makes a commit. */
export const beat = systemMutation({
  args: { beat: z.number() },
  handler: async (ctx, args) => {
    const known = await ctx.db.query("_health").first();
    if (known === null) await ctx.db.insert("_health", args);
    else await ctx.db.patch(known._id, args);
  },
});

/** Reads the last heartbeat. */
export const last = systemQuery({
  args: {},
  handler: async (ctx): Promise<number | null> => (await ctx.db.query("_health").first())?.beat ?? null,
});

/** Called by the server only, at `_system/health:<name>`. */
export const healthFunctions = { beat, last };
