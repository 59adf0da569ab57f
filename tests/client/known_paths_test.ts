/**
 * Types of functions that are called by their path as a string, once an app registers its `api` or its modules, or by
 * references of the generated file. Apps share a type check unless they register different things.
 */
import assert from "node:assert/strict";
import project from "../../deno.json" with { type: "json" };
import { updateGeneratedModule } from "../../mod/functions/generated_module.ts";
import { repository } from "../docs/pages.ts";
import { TempFolder } from "../support/temp_folder.ts";

const FILES = {
  "functions/tasks.ts": `
import { untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const list = untypedQuery({ args: { list: z.string() }, handler: (_ctx, { list }) => [{ text: list, done: false }] });
export const all = untypedQuery({ args: {}, handler: () => 3 });
/** A path string in a function: its type does not depend on itself. */
export const add = untypedMutation({
  args: { text: z.string() },
  handler: async (ctx, { text }) => ({ text, all: await ctx.runQuery("tasks:all"), other: await ctx.runQuery("no:matter") }),
});
`,
  "functions/admin/users.ts": `
import { untypedQuery } from "syncline/server";
export const count = untypedQuery({ args: {}, handler: () => 1 });
`,
  "src/api.ts": `
import { createApi } from "syncline/client";
export const { api } = createApi<{
  tasks: typeof import("../functions/tasks.ts");
  "admin/users": typeof import("../functions/admin/users.ts");
}>();
declare module "syncline/client" {
  interface Register {
    api: typeof api;
  }
}
`,
  "src/use.tsx": `
import { SynclineClient, SynclineHttpClient, type ResultOf } from "syncline/client";
import { useMutation, usePaginatedQuery, useQuery } from "syncline/react";
import { api } from "./api.ts";

const client = new SynclineClient("http://localhost:3210");
type Row = ResultOf<"tasks:list">[number];

export async function use() {
  const rows = await client.query("tasks:list", { list: "home" });
  const text: string | undefined = rows[0]?.text;
  const same: Row | undefined = (await client.query(api.tasks.list, { list: "home" }))[0];
  const count: number = await client.query("admin/users:count");
  client.subscribe("tasks:all", {}, (all) => all.toFixed());
  // @ts-expect-error -- unknown function
  await client.query("tasks:lst", { list: "home" });
  // @ts-expect-error -- unknown module
  await client.query("task:list", { list: "home" });
  // @ts-expect-error -- an argument is missing
  await client.query("tasks:list", {});
  // @ts-expect-error -- an argument has the wrong type
  await client.mutation("tasks:add", { text: 1 });
  // @ts-expect-error -- a query is no mutation
  await client.mutation("tasks:list", { list: "home" });
  // @ts-expect-error -- a result knows its fields
  rows[0]?.txet;
  await new SynclineHttpClient("http://localhost").query("tasks:all");
  return [text, same, count];
}

export function Tasks() {
  const rows = useQuery("tasks:list", { list: "home" });
  const add = useMutation("tasks:add");
  // @ts-expect-error -- unknown function
  useQuery("tasks:lsit", { list: "home" });
  // @ts-expect-error -- the function returns no pages
  usePaginatedQuery("tasks:nothing", {}, { initialNumItems: 1 });
  return <button type="button" onClick={() => add({ text: rows?.[0]?.text ?? "" })}>Add</button>;
}
`,
  "own/api.ts": `
import { createApi, SynclineClient } from "syncline/client";
interface Modules {
  index: typeof import("./index.ts");
  tasks: typeof import("./tasks.ts");
  "admin/jobs": typeof import("./admin/jobs.ts");
}
export const { api, internal } = createApi<Modules>();
declare module "syncline/client" {
  interface Register {
    modules: Modules;
  }
}
export async function use(client: SynclineClient) {
  const all: number = await client.query("tasks:all");
  const counted: number = await client.query(api.tasks.all);
  const hello: string = await client.query("hello");
  // @ts-expect-error -- it is internal
  await client.mutation("admin/jobs:sweep", { n: 1 });
  // @ts-expect-error -- unknown function
  await client.query("tasks:al");
  return [all, counted, hello];
}
`,
  "own/index.ts": `
import { untypedQuery } from "syncline/server";
export const hello = untypedQuery({ args: {}, handler: () => "hello" });
`,
  "own/tasks.ts": `
import { type ResultOf, untypedAction, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const notAFunction = 1;
export const all = untypedQuery({ args: {}, handler: () => 3 });
export const list = untypedQuery({ args: { list: z.string() }, handler: (_ctx, { list }) => [{ text: list, done: false }] });
type Row = ResultOf<"tasks:list">[number];
/** Its own result is inferred from those of others in the same module, and of one that schedules it. */
export const add = untypedMutation({
  args: { text: z.string() },
  handler: async (ctx, { text }) => {
    const rows = await ctx.runQuery("tasks:list", { list: text });
    const row: Row | undefined = rows[0];
    const nested: { readonly n: number } = await ctx.runMutation("admin/jobs:sweep", { n: 1 });
    await ctx.scheduler.runAfter(0, "admin/jobs:sweep", { n: 2 });
    await ctx.scheduler.runAt(0, "tasks:send", {});
    const hello: string = await ctx.runQuery("hello");
    const service: unknown = await ctx.runQuery("_auth:anything");
    // @ts-expect-error -- unknown function
    await ctx.runQuery("tasks:lst", { list: text });
    // @ts-expect-error -- unknown module
    await ctx.runQuery("task:list", { list: text });
    // @ts-expect-error -- an argument is missing
    await ctx.runQuery("tasks:list", {});
    // @ts-expect-error -- all arguments are missing
    await ctx.runQuery("tasks:list");
    // @ts-expect-error -- an argument has the wrong type
    await ctx.runMutation("admin/jobs:sweep", { n: "1" });
    // @ts-expect-error -- a mutation is no query
    await ctx.runQuery("admin/jobs:sweep", { n: 1 });
    // @ts-expect-error -- a query cannot be scheduled
    await ctx.scheduler.runAfter(0, "tasks:list", { list: "" });
    // @ts-expect-error -- it is not even a function
    await ctx.runQuery("tasks:notAFunction");
    // @ts-expect-error -- a result knows its fields
    row?.txet;
    return { rows, all: await ctx.runQuery("tasks:all"), nested, hello, service };
  },
});
export const send = untypedAction({
  args: {},
  handler: async (ctx) => {
    const { all, rows } = await ctx.runMutation("tasks:add", { text: "sent" });
    const text: string | undefined = rows[0]?.text;
    // @ts-expect-error -- a mutation is no action
    await ctx.runAction("tasks:add", { text: "sent" });
    return { all: all.toFixed(), text };
  },
});
`,
  "own/admin/jobs.ts": `
import { untypedInternalMutation } from "syncline/server";
import { internal } from "../api.ts";
import { z } from "zod";
/** It schedules itself. */
export const sweep = untypedInternalMutation({
  args: { n: z.number() },
  handler: async (ctx, { n }) => {
    await ctx.scheduler.runAfter(1_000, "admin/jobs:sweep", { n: n + 1 });
    await ctx.scheduler.runAfter(1_000, internal.admin.jobs.sweep, { n: n + 1 });
    return { n };
  },
});
`,
  "own/crons.ts": `
import { cronJobs } from "syncline/server";
const crons = cronJobs();
crons.interval("sweep", { hours: 1 }, "admin/jobs:sweep", { n: 1 });
crons.daily("send", { hourUTC: 1, minuteUTC: 0 }, "tasks:send");
// @ts-expect-error -- unknown function
crons.interval("swep", { hours: 1 }, "admin/jobs:swep", { n: 1 });
// @ts-expect-error -- an argument is missing
crons.interval("none", { hours: 1 }, "admin/jobs:sweep");
export default crons;
`,
};

/** An app whose functions call others by references of its generated file. */
const SCHEMA = `
import { createFunctions, defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
const schema = defineSchema({ items: defineTable({ text: z.string() }) });
export default schema;
export const { query, mutation, action, internalAction, internalMutation } = createFunctions<typeof schema, typeof profile>(schema);
import type { profile } from "./auth.ts";
`;

const AUTH = `
import { defineProfile } from "syncline/server";
import { z } from "zod";
export const profile = defineProfile({ nickname: z.string().optional() });
`;

const WEATHER = `
import { z } from "zod";
import { api, type Doc, internal, type QueryCtx } from "./_generated.ts";
import { action, internalAction, internalMutation, mutation, query } from "./schema.ts";

const textOf = async (ctx: QueryCtx, item: Doc<"items">) => item.text + (await ctx.db.query("_users").first())?.profile?.nickname;

export const fetched = internalAction({
  args: { place: z.string() },
  handler: (_ctx, { place }) => ({ degrees: place.length }),
});
export const today = action({
  args: { place: z.string() },
  handler: async (ctx, args) => (await ctx.runAction(internal.weather.fetched, args)).degrees,
});
export const nested = query({ args: {}, handler: (ctx) => ctx.db.query("items").collect() });
export const count = internalMutation({
  args: { n: z.number() },
  handler: async (ctx, { n }) => {
    await ctx.scheduler.runAfter(0, internal.weather.count, { n: n + 1 });
    return n;
  },
});
export const send = mutation({
  args: {},
  handler: async (ctx) => {
    const rows = await ctx.runQuery(api.weather.nested);
    const n = await ctx.runMutation(internal.weather.count, { n: 1 });
    return { n, texts: await Promise.all(rows.map((row) => textOf(ctx, row))) };
  },
});
export const limit = 3;
export const use = action({
  args: {},
  handler: async (ctx) => {
    const sent = await ctx.runMutation(api.weather.send);
    const texts: string[] = sent.texts;
    const degrees: number = await ctx.runAction(api.weather.today, { place: "Ulm" });
    // @ts-expect-error -- an internal function is not in \`api\`
    await ctx.runAction(api.weather.fetched, { place: "Ulm" });
    // @ts-expect-error -- not a function
    await ctx.runAction(api.weather.limit);
    return [texts, degrees] as const;
  },
});
`;

async function check(folder: TempFolder, ...files: readonly string[]): Promise<void> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["check", "--quiet", "--config", folder.at("deno.json"), ...files.map((file) => folder.at(file))],
    env: { NO_COLOR: "1" },
    stdin: "null",
  });
  const { success, stderr } = await command.output();
  assert.ok(success, new TextDecoder().decode(stderr));
}

async function appsFolder(): Promise<TempFolder> {
  const { zod, hono, croner } = project.imports;
  const types = project.imports["@types/react"];
  const config = {
    nodeModulesDir: "none",
    lock: false,
    imports: {
      "syncline/server": `${repository}/mod/functions/api/mod.ts`,
      "syncline/client": `${repository}/mod/client/mod.ts`,
      "syncline/react": `${repository}/mod/client/react/mod.ts`,
      zod,
      hono,
      croner,
      "react": types,
      "react/jsx-runtime": `${types}/jsx-runtime`,
    },
    compilerOptions: { jsx: "react-jsx", jsxImportSource: "react", lib: ["deno.window", "dom"] },
  };
  const folder = await TempFolder.with({
    ...FILES,
    "references/schema.ts": SCHEMA,
    "references/auth.ts": AUTH,
    "references/weather.ts": WEATHER,
    "references/admin/jobs.ts": "export const limit = 3;\n",
    "deno.json": JSON.stringify(config),
  });
  await updateGeneratedModule(folder.at("references"), (_level, message) => assert.fail(message));
  return folder;
}

Deno.test("functions are called with the types of their arguments and results", async (t) => {
  await using folder = await appsFolder();

  await t.step(
    "DV9 messages name functions of a registered `api`, and functions of one file call each other by generated references, " +
      "without explicit result types",
    () => check(folder, "src/use.tsx", "references"),
  );

  await t.step(
    "DV9 messages name functions of registered modules, also within functions",
    () => check(folder, "own/api.ts", "own/crons.ts"),
  );
});
