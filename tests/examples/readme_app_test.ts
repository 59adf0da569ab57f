/** The README's app, written into a folder outside this repository: it type-checks there, its misuses do not, its test passes. */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import project from "../../deno.json" with { type: "json" };

const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

/** What must not compile, each line for itself. */
const MISUSES = `
import { SynclineClient } from "syncline/client";
import type { Id } from "syncline/server";
import { api } from "./functions/api.ts";
import type { Doc } from "./functions/schema.ts";
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
  // @ts-expect-error -- there is no such function
  api.items.serach;
  // @ts-expect-error -- an id of another table
  const other: Id<"items"> = list;
  return [text, item, other];
}

export const wrong = query({
  handler: async (ctx) => {
    // @ts-expect-error -- there is no such table
    ctx.db.query("itmes");
    // @ts-expect-error -- there is no such index
    ctx.db.query("items").withIndex("by_rank");
    // @ts-expect-error -- the fields of an index come in order
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

/** The code blocks of the README that begin with a file name, and its import map. */
async function readmeApp(): Promise<Map<string, string>> {
  const readme = await Deno.readTextFile(join(root, "README.md"));
  const chapters = readme.slice(readme.indexOf("## Schema and functions"), readme.indexOf("## Options of"));
  const files = new Map<string, string>();
  for (const [, language, text = ""] of chapters.matchAll(/\`\`\`(tsx?|json)\n([\s\S]*?)\`\`\`/g)) {
    const name = language === "json" ? "deno.json" : /^\/\/ (\S+)/.exec(text)?.[1];
    assert(name !== undefined, `a code block without a file name: ${text}`);
    files.set(name, text.replaceAll("/path/to/syncline", root));
  }
  files.set("deno.json", withReact(files.get("deno.json") ?? ""));
  return files;
}

/** An app's `deno.json` with the types of React and its JSX: what is checked is not run. */
function withReact(text: string): string {
  const { imports, ...rest } = JSON.parse(text);
  const types = project.imports["@types/react"];
  const { jsx, jsxImportSource } = project.compilerOptions;
  return JSON.stringify({
    ...rest,
    imports: { ...imports, "react": types, "react/jsx-runtime": `${types}/jsx-runtime` },
    compilerOptions: { jsx, jsxImportSource, lib: ["deno.window", "dom"] },
  });
}

async function deno(cwd: string, ...args: string[]): Promise<void> {
  const command = new Deno.Command(Deno.execPath(), { args, cwd, env: { NO_COLOR: "1" }, stdin: "null" });
  const { code, stdout, stderr } = await command.output();
  const decoder = new TextDecoder();
  assert.equal(code, 0, `${decoder.decode(stdout)}${decoder.decode(stderr)}`);
}

Deno.test("the README's app type-checks in a folder of its own, and its test passes", async () => {
  const files = await readmeApp();
  assert.deepEqual([...files.keys()].sort(), [
    "app/items.tsx",
    "deno.json",
    "functions/api.ts",
    "functions/items.ts",
    "functions/schema.ts",
    "tests/items_test.ts",
  ]);
  const dir = await Deno.makeTempDir();
  try {
    for (const [name, text] of [...files, ["misuses.ts", MISUSES] as const]) {
      const path = join(dir, name);
      await Deno.mkdir(dirname(path), { recursive: true });
      await Deno.writeTextFile(path, text);
    }
    await deno(dir, "check", "--no-lock", "misuses.ts", "functions", "tests", "app");
    await deno(
      dir,
      "test",
      "--no-lock",
      "--no-check",
      "--no-prompt",
      "--allow-read",
      "--allow-write",
      "tests",
    );
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
