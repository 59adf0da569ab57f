/** Functions that are named by a text: checked and typed once an app registers its `api`. */
import assert from "node:assert/strict";
import project from "../../deno.json" with { type: "json" };
import { repository } from "../docs/pages.ts";
import { TempFolder } from "../support/temp_folder.ts";

const FILES = {
  "functions/tasks.ts": `
import { mutation, query } from "syncline/server";
import { z } from "zod";
export const list = query({ args: { list: z.string() }, handler: (_ctx, { list }) => [{ text: list, done: false }] });
export const all = query({ args: {}, handler: () => 3 });
/** Named by a text in a function: nothing goes in a circle. */
export const add = mutation({
  args: { text: z.string() },
  handler: async (ctx, { text }) => ({ text, all: await ctx.runQuery("tasks:all"), other: await ctx.runQuery("no:matter") }),
});
`,
  "functions/admin/users.ts": `
import { query } from "syncline/server";
export const count = query({ args: {}, handler: () => 1 });
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
import { createTestServer } from "syncline/test";
import { api } from "./api.ts";

const client = new SynclineClient("http://localhost:3210");
type Row = ResultOf<"tasks:list">[number];

export async function use() {
  const rows = await client.query("tasks:list", { list: "home" });
  const text: string | undefined = rows[0]?.text;
  const same: Row | undefined = (await client.query(api.tasks.list, { list: "home" }))[0];
  const count: number = await client.query("admin/users:count");
  client.subscribe("tasks:all", {}, (all) => all.toFixed());
  // @ts-expect-error -- there is no such function
  await client.query("tasks:lst", { list: "home" });
  // @ts-expect-error -- there is no such module
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
  const server = await createTestServer({ functionsDir: "/functions" });
  const all: number = await server.query("tasks:all");
  // @ts-expect-error -- there is no such function
  await server.query("tasks:any");
  return [text, same, count, all];
}

export function Tasks() {
  const rows = useQuery("tasks:list", { list: "home" });
  const add = useMutation("tasks:add");
  // @ts-expect-error -- there is no such function
  useQuery("tasks:lsit", { list: "home" });
  // @ts-expect-error -- it gives no pages
  usePaginatedQuery("tasks:nothing", {}, { initialNumItems: 1 });
  return <button type="button" onClick={() => add({ text: rows?.[0]?.text ?? "" })}>Add</button>;
}
`,
  "plain/use.ts": `
import { SynclineClient } from "syncline/client";
/** Without a registered api any text goes, and gives what is not known. */
export async function use(path: string) {
  const value: unknown = await new SynclineClient("http://localhost").query(path, { any: 1 });
  return value;
}
`,
};

async function check(folder: TempFolder, file: string): Promise<void> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["check", "--quiet", "--config", folder.at("deno.json"), folder.at(file)],
    env: { NO_COLOR: "1" },
    stdin: "null",
  });
  const { success, stderr } = await command.output();
  assert.ok(success, new TextDecoder().decode(stderr));
}

Deno.test("DV9 texts name functions of the registered api, with their types; without one any text goes", async () => {
  const { zod, hono, croner } = project.imports;
  const types = project.imports["@types/react"];
  const config = {
    nodeModulesDir: "none",
    lock: false,
    imports: {
      "syncline/server": `${repository}/mod/functions/api/mod.ts`,
      "syncline/client": `${repository}/mod/client/mod.ts`,
      "syncline/react": `${repository}/mod/client/react/mod.ts`,
      "syncline/test": `${repository}/mod/testing/mod.ts`,
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
  await check(folder, "plain/use.ts");
});
