/** The tables of the todo app. A list belongs to a user and is visible to its members. */
import { createFunctions, defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";
import type { profile } from "./auth.ts";

/** Open, or done since an instant (milliseconds since the epoch). */
export const status = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("open") }),
  z.object({ kind: z.literal("done"), at: z.number() }),
]);

const schema = defineSchema({
  lists: defineTable({
    owner: id("_users"),
    title: z.string(),
    /** Secret of the invitation link; absent while there is none. */
    invite: z.string().optional(),
  })
    .index("by_owner_title", ["owner", "title"])
    .index("by_invite", ["invite"]),
  /** Members of lists beside the owner. */
  members: defineTable({ list: id("lists"), user: id("_users") })
    .index("by_list_user", ["list", "user"])
    .index("by_user", ["user"]),
  items: defineTable({
    list: id("lists"),
    /** The list's owner, also for items of members. */
    owner: id("_users"),
    text: z.string(),
    status,
    /** A day, as `2030-01-31`. */
    due: z.iso.date().optional(),
  })
    .index("by_list", ["list"])
    .index("by_list_status", ["list", "status.kind"])
    .index("by_done", ["status.kind", "status.at"])
    .aggregate("by_state", { by: ["list", "status.kind"] })
    .searchIndex("by_text", { searchField: "text", filterFields: ["owner", "list"] }),
  /** Files of items. The facts of a file are kept here too, so that a page of items reads no file. */
  attachments: defineTable({
    item: id("items"),
    list: id("lists"),
    file: id("_storage"),
    name: z.string(),
    contentType: z.string(),
    /** Bytes. */
    size: z.number(),
  })
    .index("by_item", ["item"])
    .index("by_list", ["list"])
    .index("by_file", ["file"]),
});

export default schema;

/** The builders whose `ctx.db` knows these tables, and the profile of users. */
export const { query, mutation, internalMutation } = createFunctions<typeof schema, typeof profile>(schema);
