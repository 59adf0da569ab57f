/** The list of behaviours: each case is named for a guarantee to app authors, and runs on a separate test server. */
import {
  createFunctions,
  type DataModelOf,
  defineSchema,
  defineTable,
  id,
  type MutationCtx,
} from "syncline/server";
import { createTestServer, type TestServer } from "syncline/test";
import { z } from "zod";
import { HANG_MS } from "../support/waiting.ts";

export const schema = defineSchema({
  people: defineTable({
    name: z.string(),
    age: z.number().optional(),
    boss: id("people").optional(),
    user: id("_users").optional(),
    tags: z.array(z.string()).optional(),
    address: z.object({ city: z.string(), zip: z.string().optional() }).optional(),
  })
    .index("by_name", ["name"])
    .index("by_age_name", ["age", "name"])
    .index("by_city", ["address.city"])
    .index("by_boss", ["boss"]),
  things: defineTable({ value: z.any().optional() }).index("by_value", ["value"]),
  blobs: defineTable({ value: z.any() }),
  texts: defineTable({ body: z.string(), lang: z.string().optional(), stars: z.number().optional() })
    .searchIndex("by_body", { searchField: "body", filterFields: ["lang", "stars"] }),
  vectors: defineTable({ at: z.array(z.number()).optional(), kind: z.string().optional() })
    .vectorIndex("by_at", { vectorField: "at", dimensions: 3, filterFields: ["kind"] }),
  shapes: defineTable(z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("circle"), radius: z.number() }),
    z.object({ kind: z.literal("square"), side: z.number() }),
  ])).index("by_kind", ["kind"]),
  settings: defineTable({
    level: z.enum(["low", "high"]),
    count: z.int().min(0).default(0),
    flag: z.boolean().nullable(),
    labels: z.record(z.string(), z.number()).optional(),
  }),
});

export const { query, mutation, action, internalQuery, internalMutation } = createFunctions(schema);

export type Model = DataModelOf<typeof schema>;
export type Ctx = MutationCtx<Model>;
export type Server = TestServer<Model>;

export interface ServeOptions {
  /** For calls that never end. By default, calls may be slow. */
  readonly callTimeoutMs?: number;
}

/** A server with the tables above and these functions, under the path `app`. */
export function serve(
  functions: Record<string, unknown> = {},
  { callTimeoutMs = HANG_MS }: ServeOptions = {},
): Promise<Server> {
  const modules = { schema: { default: schema }, app: functions };
  return createTestServer({ modules, callTimeoutMs });
}

export type Case = (server: Server) => Promise<void>;

/** Registers the cases of an area. */
export function behaviours(area: string, cases: Record<string, Case>): void {
  for (const [name, check] of Object.entries(cases)) {
    Deno.test(`${area}: ${name}`, async () => {
      await using server = await serve();
      await check(server);
    });
  }
}

/** A case on a server with its own functions. */
export function withFunctions(
  functions: Record<string, unknown>,
  check: Case,
  options: ServeOptions = {},
): Case {
  return async () => {
    await using server = await serve(functions, options);
    await check(server);
  };
}

/** Stores people with these names, in this order. */
export async function people(ctx: Ctx, ...names: string[]): Promise<void> {
  for (const name of names) await ctx.db.insert("people", { name });
}

export function names(rows: readonly { readonly name: string }[]): string {
  return rows.map(({ name }) => name).join(" ");
}
