/** Functions called by their path as a string: checked and typed once an app registers its `api`, or its modules. */
import assert from "node:assert/strict";
import project from "../../deno.json" with { type: "json" };
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

async function check(folder: TempFolder, ...files: readonly string[]): Promise<void> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["check", "--quiet", "--config", folder.at("deno.json"), ...files.map((file) => folder.at(file))],
    env: { NO_COLOR: "1" },
    stdin: "null",
  });
  const { success, stderr } = await command.output();
  assert.ok(success, new TextDecoder().decode(stderr));
}

Deno.test("DV9 messages name registered functions with their types, also within functions", async () => {
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
  await using folder = await TempFolder.with({ ...FILES, "deno.json": JSON.stringify(config) });
  await check(folder, "src/use.tsx");
  await check(folder, "own/api.ts", "own/crons.ts");
});
