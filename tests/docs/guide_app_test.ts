/** Writes the apps of the documentation and of a template into a folder outside this repository: they type-check and their tests pass. */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import project from "../../deno.json" with { type: "json" };
import { updateGeneratedModule } from "../../mod/functions/generated_module.ts";
import { codeBlocks, documentedApps, readPage, repository } from "./pages.ts";
import { TempFolder } from "../support/temp_folder.ts";

/** Lines that must not compile, each tried alone. */
const MISUSES = `
import { SynclineClient } from "syncline/client";
import type { Id } from "syncline/server";
import { api, type Doc } from "./functions/_generated.ts";
import { query } from "./functions/schema.ts";

const client = new SynclineClient("http://localhost:3210");
declare const list: Id<"lists">;

export async function use() {
  const found = await client.query(api.items.search, { list, text: "a" });
  const text: string | undefined = found[0]?.text;
  const item: Doc<"items"> | undefined = found[0];
  // @ts-expect-error -- a result knows its fields
  found[0]?.txet;
  // @ts-expect-error -- an argument is missing
  await client.query(api.items.search, { list });
  // @ts-expect-error -- an argument has the wrong type
  await client.mutation(api.items.add, { list, text: 1 });
  // @ts-expect-error -- a query is no mutation
  await client.mutation(api.items.search, { list, text: "a" });
  // @ts-expect-error -- unknown function
  api.items.serach;
  // @ts-expect-error -- an id of another table
  const other: Id<"items"> = list;
  return [text, item, other];
}

export const wrong = query({
  handler: async (ctx) => {
    // @ts-expect-error -- unknown table
    ctx.db.query("itmes");
    // @ts-expect-error -- unknown index
    ctx.db.query("items").withIndex("by_rank");
    // @ts-expect-error -- the fields of an index must be used in order
    ctx.db.query("items").withIndex("by_list_rank", (q) => q.eq("rank", 1));
    // @ts-expect-error -- queries do not write
    await ctx.db.delete(list);
    const user = await ctx.db.query("_users").first();
    // @ts-expect-error -- users have no such field
    user?.nickname;
    return user?.email ?? null;
  },
});
`;

/** The `deno.json` of an app according to `docs/testing.md`. */
async function appConfig(): Promise<string> {
  const block = (await codeBlocks("docs/testing.md")).find(({ language }) => language === "json");
  assert.ok(block !== undefined);
  return withReact(block.text.replaceAll("/path/to/syncline", repository));
}

/** An app's `deno.json` with the types of React and its JSX, for type checks only. */
function withReact(text: string): string {
  const { imports, ...rest } = JSON.parse(text);
  const types = project.imports["@types/react"];
  const { jsx, jsxImportSource } = project.compilerOptions;
  return JSON.stringify({
    ...rest,
    imports: {
      ...imports,
      "react": types,
      "react/jsx-runtime": `${types}/jsx-runtime`,
      "react-dom/client": `${project.imports["@types/react-dom"]}/client`,
      "vitest": new URL("vitest_stand_in.ts", import.meta.url).href,
      "react-native": new URL("native_stand_in.ts", import.meta.url).href,
      "expo-secure-store": new URL("native_stand_in.ts", import.meta.url).href,
      "react-native-get-random-values": new URL("native_stand_in.ts", import.meta.url).href,
      "next/headers": new URL("server_stand_in.ts", import.meta.url).href,
      "@sveltejs/kit": new URL("server_stand_in.ts", import.meta.url).href,
      "vue": project.imports["vue"],
      "svelte": project.imports["svelte"],
      "svelte/reactivity": project.imports["svelte/reactivity"],
      "solid-js": project.imports["solid-js"],
    },
    compilerOptions: { jsx, jsxImportSource, lib: ["deno.window", "dom"] },
  });
}

/** `syncline/test` like in the npm package, which does not import the server, so that the check takes half the time. */
function withPackagedTests(text: string): string {
  const { imports, ...rest } = JSON.parse(text);
  const test = join(repository, "mod/testing/node/mod.ts");
  return JSON.stringify({ ...rest, imports: { ...imports, "syncline/test": test } });
}

async function deno(cwd: string, ...args: string[]): Promise<void> {
  const command = new Deno.Command(Deno.execPath(), { args, cwd, env: { NO_COLOR: "1" }, stdin: "null" });
  const { code, stdout, stderr } = await command.output();
  const decoder = new TextDecoder();
  assert.equal(code, 0, `${decoder.decode(stdout)}${decoder.decode(stderr)}`);
}

async function write(dir: string, files: Iterable<readonly [name: string, text: string]>): Promise<void> {
  for (const [name, text] of files) {
    const path = join(dir, name);
    await Deno.mkdir(dirname(path), { recursive: true });
    await Deno.writeTextFile(path, text);
  }
}

Deno.test("the apps of the documentation and the showcase type-check in a separate folder, and their tests pass", async () => {
  const apps = await documentedApps();
  await using tempFolder = new TempFolder();
  const dir = tempFolder.path;
  const config = await appConfig();
  await write(dir, [["deno.json", config], ["check.json", withPackagedTests(config)]]);
  for (const [app, files] of apps) {
    await write(join(dir, app), files);
    await updateGeneratedModule(join(dir, app, "functions"), (_level, message) => assert.fail(message));
  }
  await write(join(dir, "guide"), [["misuses.ts", MISUSES]]);
  await deno(dir, "check", "--no-lock", "--config", "check.json", ...apps.keys());
  await deno(
    dir,
    "test",
    "--no-lock",
    "--no-check",
    "--no-prompt",
    "--allow-read",
    "--allow-write",
    ...["guide", "quickstart", "tutorial", "showcase"].map((app) => `${app}/tests`),
  );
});

Deno.test("the page about server rendering shows the files of the examples, which are built by a long test", async () => {
  const blocks = (await codeBlocks("docs/server_rendering.md")).filter(({ language }) => language !== "sh");
  assert.ok(blocks.length >= 8);
  for (const { text } of blocks) {
    const [, name = ""] = /^(?:\/\/|<!--) (\S+)/.exec(text) ?? [];
    const example = name.startsWith("app/") ? "next" : "svelte_kit";
    assert.equal(text.slice(text.indexOf("\n") + 1), await readPage(`examples/${example}/${name}`), name);
  }
});
