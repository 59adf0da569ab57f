/** The generated file of an app: its contents, when it is written, and functions that call others of the same file. */
import assert from "node:assert/strict";
import project from "../../deno.json" with { type: "json" };
import { generatedModule, updateGeneratedModule } from "../../mod/functions/generated_module.ts";
import { findModules } from "../../mod/functions/module_files.ts";
import { repository } from "../docs/pages.ts";
import { TempFolder } from "../support/temp_folder.ts";

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

const noLog = (_level: string, message: string) => assert.fail(message);

Deno.test("functions of one file call each other by generated references, without explicit result types", async () => {
  const imports = {
    "syncline/server": `${repository}/mod/functions/api/mod.ts`,
    zod: project.imports.zod,
    hono: project.imports.hono,
  };
  await using folder = await TempFolder.with({
    "deno.json": JSON.stringify({ nodeModulesDir: "none", lock: false, imports }),
    "functions/schema.ts": SCHEMA,
    "functions/auth.ts": AUTH,
    "functions/weather.ts": WEATHER,
    "functions/admin/jobs.ts": "export const limit = 3;\n",
  });
  await updateGeneratedModule(folder.at("functions"), noLog);
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["check", "--quiet", "--config", folder.at("deno.json"), folder.at("functions")],
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  assert.ok(success, new TextDecoder().decode(stderr));
});

Deno.test("the generated file lists modules, is no module itself, and is written when they change", async () => {
  await using folder = await TempFolder.with({ "functions/tasks.ts": "", "functions/admin/jobs.js": "" });
  const functionsDir = folder.at("functions");
  const file = folder.at("functions/_generated.ts");
  await updateGeneratedModule(functionsDir, noLog);
  const first = await Deno.readTextFile(file);
  assert.match(
    first,
    /^ {2}"admin\/jobs": typeof import\("\.\/admin\/jobs\.js"\);\n {2}tasks: typeof import/m,
  );
  assert.match(first, /AppDataModel<null>/);
  const { mtime } = await Deno.stat(file);
  await updateGeneratedModule(functionsDir, noLog);
  assert.deepEqual((await Deno.stat(file)).mtime, mtime, "an unchanged file is not written");
  await Deno.writeTextFile(folder.at("functions/schema.ts"), "");
  await updateGeneratedModule(functionsDir, noLog);
  const second = await Deno.readTextFile(file);
  assert.match(second, /AppDataModel<typeof import\("\.\/schema\.ts"\)>/);
  assert.doesNotMatch(second, /^ {2}schema:/m);
});

Deno.test("an app without TypeScript gets no generated file", async () => {
  await using folder = await TempFolder.with({ "functions/tasks.js": "" });
  await updateGeneratedModule(folder.at("functions"), noLog);
  await assert.rejects(Deno.stat(folder.at("functions/_generated.ts")), Deno.errors.NotFound);
});

Deno.test("the generated files of templates and examples are up to date", async () => {
  for (
    const app of [
      "templates/react",
      "templates/plain",
      "templates/showcase",
      "templates/server",
      "examples/chat",
      "examples/todo",
      "examples/transfer",
      "examples/next",
      "examples/react_router",
      "examples/svelte_kit",
    ]
  ) {
    const functionsDir = `${repository}/${app}/functions`;
    const contents = generatedModule(findModules(functionsDir).map(({ name }) => name));
    assert.equal(await Deno.readTextFile(`${functionsDir}/_generated.ts`), contents, app);
  }
});
