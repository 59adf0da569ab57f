/** The one table of the public "transfer" benchmark: numbered accounts with a balance. */
import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

export default defineSchema({
  accounts: defineTable({ id: z.int(), balance: z.number() }).index("by_account_id", ["id"]),
});
