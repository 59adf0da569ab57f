/** The tables of the chat. */
import { createFunctions, defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";

const schema = defineSchema({
  channels: defineTable({ name: z.string() }).index("by_name", ["name"]),
  messages: defineTable({
    channel: z.string(),
    name: z.string(),
    body: z.string(),
    /** Who wrote it; guests have no account. */
    author: id("_users").optional(),
  }).index("by_channel", ["channel"]),
  /** The names of those with an account. */
  members: defineTable({ user: id("_users"), name: z.string(), key: z.string() })
    .index("by_user", ["user"])
    .index("by_key", ["key"]),
  /** Who is writing a message right now; a row for each open page that says so. */
  typing: defineTable({
    channel: z.string(),
    name: z.string(),
    /** The page's own secret: it changes this row and no other. */
    page: z.string(),
    /** When the page said so last, in milliseconds since the epoch. */
    at: z.number(),
  })
    .index("by_channel", ["channel"])
    .index("by_page", ["page"])
    .index("by_at", ["at"]),
});

export default schema;

/** The builders whose `ctx.db` knows these tables. */
export const { query, mutation, internalMutation } = createFunctions(schema);
