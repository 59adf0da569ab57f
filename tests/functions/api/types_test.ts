/** The types of the author-facing API: inferred types and compile errors. `deno check` is the test. */
import assert from "node:assert/strict";
import {
  type ArgsOf,
  createApi,
  createFunctions,
  defineSchema,
  defineTable,
  type Doc,
  functionReference,
  type Id,
  id,
  type ResultOf,
} from "syncline/server";
import { z } from "zod";
import { functionPath } from "../../../mod/protocol/function_reference.ts";

const schema = defineSchema({
  users: defineTable({ name: z.string() }),
  messages: defineTable({
    channel: z.string(),
    body: z.string(),
    likes: z.number().default(0),
    author: id("users").optional(),
    place: z.object({ city: z.string() }).optional(),
    embedding: z.array(z.number()).optional(),
  })
    .index("by_channel", ["channel", "likes"])
    .index("by_city", ["place.city"])
    .searchIndex("by_body", { searchField: "body", filterFields: ["channel"] })
    .vectorIndex("by_embedding", { vectorField: "embedding", dimensions: 3, filterFields: ["channel"] })
    .aggregate("by_channel_likes", { by: ["channel", "likes"], sum: ["likes"] }),
  shapes: defineTable(z.union([
    z.object({ kind: z.literal("circle"), radius: z.number() }),
    z.object({ kind: z.literal("square"), side: z.number() }),
  ])),
});

const { query, mutation, internalMutation, action } = createFunctions(schema);

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
function same<A, B>(..._proof: Same<A, B> extends true ? [] : [never]): void {}

const messagesModule = {
  list: query({
    args: { channel: z.string(), limit: z.int().default(20) },
    handler: async (ctx, { channel, limit }) => {
      same<typeof limit, number>();
      const rows = await ctx.db.query("messages")
        .withIndex("by_channel", (q) => q.eq("channel", channel).gt("likes", 3))
        .filter((q) => q.eq(q.field("body"), "hello"))
        .order("desc").take(limit);
      await ctx.db.query("messages").filter((row) => row.likes > 3).first();
      await ctx.db.query("messages").withIndex("by_city", (q) => q.eq("place.city", "Turin")).unique();
      const counted = ctx.db.query("messages").withIndex("by_channel", (q) => q.eq("channel", channel));
      same<number, Awaited<ReturnType<typeof counted.count>>>();
      // @ts-expect-error -- a search has no entries to count
      ctx.db.query("messages").withSearchIndex("by_body", (q) => q.search("body", "x")).count;
      const likes = ctx.db.aggregate(
        "messages",
        "by_channel_likes",
        (q) => q.eq("channel", channel).gt("likes", 3),
      );
      same<Awaited<ReturnType<typeof likes.max>>, number | null>();
      same<NonNullable<Awaited<ReturnType<typeof likes.at>>>["body"], string>();
      await likes.sum("likes");
      // @ts-expect-error -- the aggregate does not sum this field
      await likes.sum("body");
      // @ts-expect-error -- the fields of an aggregate must be used in order
      ctx.db.aggregate("messages", "by_channel_likes", (q) => q.eq("likes", 1));
      // @ts-expect-error -- unknown aggregate
      ctx.db.aggregate("messages", "by_channel");
      await ctx.db.query("messages").withSearchIndex(
        "by_body",
        (q) => q.search("body", "x").eq("channel", "general"),
      ).collect();
      await ctx.db.vectorSearch("messages", "by_embedding", {
        vector: [1, 2, 3],
        filter: (q) => q.eq("channel", channel),
      });
      return rows.map((row) => row.body);
    },
  }),
  send: mutation({
    args: { body: z.string() },
    handler: (ctx, { body }) => ctx.db.insert("messages", { body, channel: "general" }),
  }),
  embed: mutation({
    args: { message: id("messages") },
    handler: async (ctx, { message }) => {
      const embedding = [1, 2, 3] as const;
      await ctx.db.insert("messages", { body: "", channel: "general", embedding });
      await ctx.db.patch(message, { embedding });
      await ctx.db.replace(message, { body: "", channel: "general", embedding });
      // @ts-expect-error -- a vector has numbers
      await ctx.db.patch(message, { embedding: ["1"] as const });
    },
  }),
  get: query({ args: { id: id("messages") }, handler: (ctx, args) => ctx.db.get(args.id) }),
  purge: internalMutation({ handler: () => null }),
  call: action({
    handler: async (ctx) => {
      const bodies = await ctx.runQuery(
        functionReference<"query", { channel: string }, string[]>("messages:list"),
        { channel: "general" },
      );
      same<typeof bodies, string[]>();
      return bodies.length;
    },
  }),
  constant: 3,
};

const { api, internal } = createApi<
  { "admin/messages": typeof messagesModule; index: typeof messagesModule }
>();

Deno.test("references carry arguments and results inferred from the modules", () => {
  same<ArgsOf<typeof api.admin.messages.list>, { channel: string; limit?: number | undefined }>();
  same<ResultOf<typeof api.admin.messages.list>, string[]>();
  same<ResultOf<typeof api.send>, Id<"messages">>();
  same<ArgsOf<typeof api.get>, { id: Id<"messages"> }>();
  same<ResultOf<typeof api.get>, Doc<typeof schema, "messages"> | null>();
  same<Doc<typeof schema, "messages">["likes"], number>();
  same<Doc<typeof schema, "shapes">["kind"], "circle" | "square">();
  same<ResultOf<typeof internal.admin.messages.purge>, null>();
  assert.equal(functionPath(api.admin.messages.list), "admin/messages:list");
  assert.equal(functionPath(api.list), "list");
});

// Never called: each line below must not compile.
export function refused(): void {
  // @ts-expect-error -- an internal function is not public
  void functionPath(api.purge);
  // @ts-expect-error -- a public function is not internal
  void functionPath(internal.send);
  // @ts-expect-error -- a constant is not a function
  void functionPath(api.constant);
  // @ts-expect-error -- unknown function
  void api.lst;
  query({
    handler: async (ctx) => {
      // @ts-expect-error -- no such table
      ctx.db.query("mesages");
      // @ts-expect-error -- no such index
      ctx.db.query("messages").withIndex("by_body");
      // @ts-expect-error -- the fields of an index must be used in order
      ctx.db.query("messages").withIndex("by_channel", (q) => q.eq("likes", 3));
      // @ts-expect-error -- the field is a text
      ctx.db.query("messages").withIndex("by_channel", (q) => q.eq("channel", 3));
      // @ts-expect-error -- a range ends the chain
      ctx.db.query("messages").withIndex("by_channel", (q) => q.gt("channel", "a").eq("likes", 3));
      // @ts-expect-error -- queries do not write
      await ctx.db.insert("users", { name: "x" });
      // @ts-expect-error -- order may be used only once
      ctx.db.query("messages").order("asc").order("desc");
      // @ts-expect-error -- the filter field is not part of the index
      ctx.db.query("messages").withSearchIndex("by_body", (q) => q.search("body", "x").eq("likes", 1));
    },
  });
  mutation({
    args: { user: id("users") },
    handler: async (ctx, { user }) => {
      // @ts-expect-error -- body is missing
      await ctx.db.insert("messages", { channel: "general" });
      // @ts-expect-error -- an id of another table
      const author: Id<"messages"> = user;
      void author;
      await ctx.db.patch(user, { name: "y" });
      // @ts-expect-error -- users have no such field
      await ctx.db.patch(user, { nam: "y" });
    },
  });
  // @ts-expect-error -- an index on a field that is not there
  defineTable({ a: z.string() }).index("by_b", ["b"]);
}
