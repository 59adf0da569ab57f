/** Tables and indexes, and the builders and types that functions import. */
import { createFunctions, defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";

const schema = defineSchema({
  tasks: defineTable({ text: z.string().min(1).max(200), done: z.boolean(), by: id("_users") }),
});

export default schema;
export const { query, mutation, action, internalQuery, internalMutation, internalAction } = createFunctions(
  schema,
);
export type { Doc, Model, MutationCtx, QueryCtx } from "./_generated.ts";
