/** Checks that the account to run a function as exists. */
import { z } from "zod";
import { systemQuery } from "../tables.ts";

export const accountExists = systemQuery({
  args: { kind: z.enum(["user", "admin"]), id: z.string() },
  handler: async (ctx, { kind, id }): Promise<boolean> => {
    const { db } = ctx as unknown as {
      readonly db: {
        normalizeId(table: string, id: string): string | null;
        get(id: string): Promise<unknown>;
      };
    };
    const own = db.normalizeId(kind === "user" ? "_users" : "_admins", id);
    return own !== null && await db.get(own) !== null;
  },
});
