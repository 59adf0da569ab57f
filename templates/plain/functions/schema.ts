import { createFunctions, defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";

const schema = defineSchema({
  tasks: defineTable({ text: z.string().min(1).max(200), done: z.boolean(), by: id("_users") }),
});

export default schema;
export const { query, mutation } = createFunctions(schema);
