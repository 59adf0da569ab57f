/** The tables of the todo app. Every list and item belongs to a user, and only that user sees it. */
import {
  createFunctions,
  type DataModelOf,
  defineSchema,
  defineTable,
  type Doc as DocOf,
  id,
  type QueryCtx,
} from "syncline/server";
import { z } from "zod";

/** Open, or done since an instant (milliseconds since the epoch). */
export const status = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("open") }),
  z.object({ kind: z.literal("done"), at: z.number() }),
]);

const schema = defineSchema({
  lists: defineTable({ owner: id("_users"), title: z.string() })
    .index("by_owner_title", ["owner", "title"]),
  items: defineTable({
    list: id("lists"),
    owner: id("_users"),
    text: z.string(),
    status,
    /** A day, as `2030-01-31`. */
    due: z.iso.date().optional(),
  })
    .index("by_list", ["list"])
    .index("by_list_status", ["list", "status.kind"])
    .index("by_done", ["status.kind", "status.at"])
    .searchIndex("by_text", { searchField: "text", filterFields: ["owner"] }),
});

export default schema;

/** A document of a table: `Doc<"items">`. */
export type Doc<Table extends keyof typeof schema["tables"]> = DocOf<typeof schema, Table>;

/** `ctx` of a query or a mutation, for functions that both call. */
export type Ctx = QueryCtx<DataModelOf<typeof schema>>;

/** The builders whose `ctx.db` knows these tables. */
export const { query, mutation, internalMutation } = createFunctions(schema);
