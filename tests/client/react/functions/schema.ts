/** Rows of lists, in the order of their rank. */
import { createFunctions, defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

const schema = defineSchema({
  rows: defineTable({ list: z.string(), rank: z.number(), text: z.string() }).index("by_list_rank", [
    "list",
    "rank",
  ]),
});

export default schema;

export const { query, mutation, action } = createFunctions(schema);
