import { createFunctions, defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

const schema = defineSchema({
  notes: defineTable({ text: z.string(), stars: z.int().optional() }),
});

export default schema;
export const { query, mutation } = createFunctions(schema);
