/** The tables of the chat. */
import { createFunctions, defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";

const schema = defineSchema({
  channels: defineTable({ name: z.string() }).index("by_name", ["name"]),
  messages: defineTable({
    channel: z.string(),
    name: z.string(),
    body: z.string(),
    /** The author; absent for guests. */
    author: id("_users").optional(),
    /** The text, while the assistant writes it. */
    stream: z.string().optional(),
  }).index("by_channel", ["channel"]),
  /** Names of users with an account. */
  members: defineTable({ user: id("_users"), name: z.string(), key: z.string() })
    .index("by_user", ["user"])
    .index("by_key", ["key"]),
});

export default schema;

/** The builders whose `ctx.db` knows these tables. */
export const { query, mutation, internalAction, internalMutation, internalQuery } = createFunctions(schema);
