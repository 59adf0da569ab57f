/** Lists in two forms: as one document each, and as one document for each value. */
import { createFunctions, defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

const schema = defineSchema({
  lists: defineTable({ key: z.string(), values: z.array(z.int()) }).index("by_key", ["key"]),
  values: defineTable({ key: z.string(), at: z.int(), value: z.int() }).index("by_key", ["key", "at"]),
});

export default schema;

export const { query, mutation } = createFunctions(schema);
