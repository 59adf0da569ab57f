/** Tables and indexes, and the builders and types that functions import. */
import { createFunctions, defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";

const schema = defineSchema({
  cards: defineTable({
    column: z.enum(["good", "bad", "next"]),
    text: z.string().min(1).max(300),
    by: id("_users"),
    voters: z.array(id("_users")).max(200),
    photo: id("_storage").optional(),
  }).searchIndex("by_text", { searchField: "text" }),
  rounds: defineTable({ endsAt: z.number(), isOver: z.boolean() }),
});

export default schema;
export const { query, mutation, action, internalQuery, internalMutation, internalAction } = createFunctions(
  schema,
);
export type { Doc, Model, MutationCtx, QueryCtx } from "./_generated.ts";
