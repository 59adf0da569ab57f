/** The tables of the chat. */
import { createFunctions, defineSchema, defineTable } from "syncline/server";
import { z } from "zod";

const schema = defineSchema({
  channels: defineTable({ name: z.string() }).index("by_name", ["name"]),
  messages: defineTable({ channel: z.string(), name: z.string(), body: z.string() })
    .index("by_channel", ["channel"]),
});

export default schema;

/** The builders whose `ctx.db` knows these tables. */
export const { query, mutation } = createFunctions(schema);
