import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

export default defineSchema({
  /** One row for each ordinary user. */
  counters: defineTable({ user: z.string(), n: z.number() }).index("by_user", ["user"]),
});
