/** The table that the clients behind the faulty connection write to. */
import { createFunctions, defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

const schema = defineSchema({
  entries: defineTable({ author: z.string(), n: z.int() }).index("by_author", ["author"]),
});

export default schema;

export const { query, mutation } = createFunctions(schema);
