/** The one table of the public "transfer" benchmark: numbered accounts with a balance. */
import { createFunctions, defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

const schema = defineSchema({
  accounts: defineTable({ id: z.int(), balance: z.number() }).index("by_account_id", ["id"]),
});

export default schema;
export const { query, mutation } = createFunctions(schema);
