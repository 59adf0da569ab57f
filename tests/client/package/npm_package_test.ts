/** The npm package as it is built: its sizes, in plain Node, and in a Vite project with React in two real browser tabs. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ServerProcess } from "../../support/processes/server_process.ts";
import { projectDir } from "../../support/processes/child.ts";
import { launchChromium } from "../../support/chromium.ts";
import { chromium, needs, npm } from "../../support/services.ts";
import { NodeProject } from "./support/node_project.ts";
import { nodeScript } from "./support/node_script.ts";
import { LanguageServer } from "../../npm/support/language_server.ts";
import { TempFolder } from "../../support/temp_folder.ts";

/** Texts of `syncline/server`, and of the package it brings along. */
const ONLY_FUNCTIONS = /"searchField"|ZodError|from "zod"/;

const FUNCTIONS = "tests/client/package/project/functions";

/** Serves the project's functions, and a folder of static files if there is one. */
async function serve(flags: readonly string[], test: (url: string) => Promise<void>): Promise<void> {
  await using dataFolder = new TempFolder();
  const dataDir = dataFolder.path;
  await using server = await ServerProcess.start({ dataDir, functions: FUNCTIONS, flags });
  await test(`http://127.0.0.1:${server.port}`);
}

let built: Promise<string> | null = null;

/** Builds the package, once for all tests. Returns what the build prints. */
function buildPackage(): Promise<string> {
  return built ??= runBuild();
}

async function runBuild(): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["task", "--quiet", "build:client"],
    cwd: projectDir,
    env: { NO_COLOR: "1" },
  }).output();
  assert(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

Deno.test("the npm package is small and its types need only React", async (t) => {
  await t.step("the build prints the sizes, and they are within their limits", async () => {
    const printed = await buildPackage();
    // deno-lint-ignore no-console
    console.log(printed.trimEnd());
    const sizes = [...printed.matchAll(/: (\d+) bytes gzipped, within the limit of (\d+)/g)]
      .map(([, bytes, max]) => [Number(bytes), Number(max)]);
    assert.deepEqual(sizes.map(([, max]) => max), [17, 5, 1, 1, 1, 1, 1, 1].map((kib) => kib * 1024));
    assert(sizes.every(([bytes = Infinity, max = 0]) => bytes > 100 && bytes <= max));
  });

  await t.step("types of the client and the hooks need only React", async () => {
    const files = await Array.fromAsync(Deno.readDir(join(projectDir, "dist/client/shared")));
    const features = ["presence.d.ts", "react/presence.d.ts", "streams.d.ts", "react/streams.d.ts"];
    const types = files.map(({ name }) => `shared/${name}`).filter((name) => name.endsWith(".d.ts"));
    for (
      const name of [
        "client.d.ts",
        "react.d.ts",
        "accounts.d.ts",
        "react/accounts.d.ts",
        ...features,
        ...types,
      ]
    ) {
      const text = await Deno.readTextFile(join(projectDir, "dist/client", name));
      const imported = [...text.matchAll(/(?:from|import) ['"]([^'"]+)['"]/g)].map(([, from = ""]) => from);
      assert.deepEqual(imported.filter((from) => !from.startsWith(".") && from !== "react"), [], name);
    }
  });
});

Deno.test(needs(npm, "the npm package works in projects that install it"), async (t) => {
  await buildPackage();
  await using project = await NodeProject.create();

  await t.step("the hooks are a client module for frameworks with server components", async () => {
    const read = (name: string) => Deno.readTextFile(join(projectDir, "dist/client", name));
    const exported = (text: string) =>
      /export \{([^}]*)\};\s*$/.exec(text)?.[1]?.split(/[\s,]+/).filter(Boolean);
    const [hooks, server] = [await read("react.js"), await read("react_server.js")];
    assert.match(hooks, /^"use client";\n/);
    assert.deepEqual(exported(server)?.toSorted(), exported(hooks)?.toSorted());
    assert.match(server, /from "\.\/react\.js"/);
    assert.match(server, /function preloadQuery/);
    assert.doesNotMatch(server, /from "react"/);
  });

  await t.step("in plain Node it subscribes, calls and lets the program exit", async () => {
    await Deno.mkdir(join(project.dir, "script"));
    await Deno.writeTextFile(join(project.dir, "script/notes.mjs"), nodeScript);
    await project.node("node_modules/typescript/bin/tsc", "-p", "tsconfig.node.json");
    await serve([], async (url) => {
      const printed = JSON.parse(await project.node("script/notes.mjs", url));
      assert.deepEqual(printed, {
        texts: ["over HTTP", "over the socket"],
        transport: "webSocket",
        refused: true,
      });
    });
  });

  await t.step(
    "DV9 the app's own functions type its calls: tsc checks texts that name them, and an editor completes them",
    async () => {
      const file = join(project.dir, "known/use.ts");
      const text = `import { type SynclineClient, createApi } from "syncline/client";
import { useQuery } from "syncline/react";

interface Modules {
  notes: typeof import("../functions/notes.ts");
  own: typeof import("./own.ts");
}
export const { api } = createApi<Modules>();
declare module "syncline/client" {
  interface Register {
    modules: Modules;
  }
}

export async function use(client: SynclineClient) {
  const [note] = await client.query("notes:list");
  const text: string | undefined = note?.text;
  const shown = useQuery("notes:list")?.[0]?.stars;
  await client.mutation("notes:add", { text: "typed", stars: shown ?? 1 });
  // @ts-expect-error -- there is no such function
  await client.query("notes:lst");
  // @ts-expect-error -- an argument has the wrong type
  await client.mutation("notes:add", { text: 1 });
  return text;
}
`;
      const own = join(project.dir, "known/own.ts");
      const ownText = `import { untypedQuery } from "syncline/server";

export const twice = untypedQuery({
  handler: async (ctx) => {
    const notes = await ctx.runQuery("notes:list");
    // @ts-expect-error -- there is no such function
    await ctx.runQuery("notes:lst");
    // @ts-expect-error -- a mutation is no query
    await ctx.runQuery("notes:add", { text: "typed", stars: 1 });
    return notes.map(({ text, stars }) => text.repeat(stars ?? 1));
  },
});
`;
      await Deno.mkdir(join(project.dir, "known"));
      await Deno.writeTextFile(file, text);
      await Deno.writeTextFile(own, ownText);
      await Deno.writeTextFile(
        join(project.dir, "known/tsconfig.json"),
        '{ "extends": "../tsconfig.json", "include": [".", "../src", "../functions"] }',
      );
      await project.node("node_modules/typescript/bin/tsc", "-p", "known");
      await using editor = new LanguageServer(project.dir);
      await editor.open(file, text);
      assert.deepEqual(
        (await editor.completions(file, { text, behind: 'client.mutation("' })).filter((name) =>
          name.includes(":")
        ),
        ["notes:add"],
      );
      assert.ok(
        (await editor.completions(file, { text, behind: 'useQuery("notes:list")?.[0]?.' })).includes("stars"),
      );
      await editor.open(own, ownText);
      const paths = await editor.completions(own, { text: ownText, behind: 'await ctx.runQuery("' });
      assert.deepEqual(["notes:list", "own:twice"].filter((path) => !paths.includes(path)), []);
    },
  );

  await t.step({
    ...needs(chromium, "a page that Vite builds is live in two tabs"),
    fn: async () => {
      await project.node("node_modules/vite/bin/vite.js", "build", "--logLevel", "warn");
      const script = await builtScript(project);
      // Code that only functions need is left out: the package's messages about tables, and zod.
      const needed = await Deno.readTextFile(join(projectDir, "dist/client/server.js"));
      assert.match(needed, ONLY_FUNCTIONS);
      assert.doesNotMatch(script, ONLY_FUNCTIONS);
      await serve(["--static", join(project.dir, "dist")], async (url) => {
        const browser = await launchChromium();
        try {
          const context = await browser.newContext();
          const [here, there] = await Promise.all([context.newPage(), context.newPage()]);
          const errors: string[] = [];
          for (const page of [here, there]) {
            page.on("pageerror", ({ message }) => errors.push(message));
            await page.goto(url);
            await page.getByRole("status").filter({ hasText: "webSocket" }).waitFor();
          }
          await here.getByRole("button", { name: "Add" }).click();
          await there.getByText("note 0").waitFor();
          await there.getByRole("button", { name: "Add" }).click();
          await here.getByText("note 1").waitFor();
          assert.deepEqual(await here.getByRole("listitem").allTextContents(), ["note 1", "note 0"]);
          assert.deepEqual(errors, []);
        } finally {
          await browser.close();
        }
      });
    },
  });
});

async function builtScript(project: NodeProject): Promise<string> {
  const assets = join(project.dir, "dist/assets");
  for await (const { name } of Deno.readDir(assets)) {
    if (name.endsWith(".js")) return await Deno.readTextFile(join(assets, name));
  }
  assert.fail("Vite has built no script");
}
