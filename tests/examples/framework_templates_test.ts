/** The templates of frameworks other than React: two users with a browser each see each other's changes. */
import assert from "node:assert/strict";
import { transformAsync } from "@babel/core";
import solid from "babel-preset-solid";
import { build, type Plugin, stop, transform } from "esbuild";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { compile } from "svelte/compiler";
import { compileScript, parse } from "vue/compiler-sfc";
import { BINDINGS, FRAMEWORKS } from "../../mod/client/build/package_files.ts";
import { copyTemplate } from "../../mod/npm/node/scaffold.ts";
import { startTestServer } from "../auth/server/test_server.ts";
import { linkPackages } from "../support/linked_packages.ts";
import { projectDir } from "../support/processes/child.ts";
import { inChromium, type SharedChromium, sharedChromium } from "../support/shared_chromium.ts";
import { TempFolder } from "../support/temp_folder.ts";

type Framework = (typeof BINDINGS)[number];

/** Compiles the files of a framework like its plugin for Vite. */
const compilers: Readonly<Record<Framework, Plugin>> = {
  vue: {
    name: "vue",
    setup: ({ onLoad }) =>
      onLoad({ filter: /\.vue$/ }, async ({ path }) => {
        const { descriptor } = parse(await Deno.readTextFile(path), { filename: path });
        const { content } = compileScript(descriptor, { id: path, inlineTemplate: true });
        return { contents: content, loader: "ts" };
      }),
  },
  svelte: {
    name: "svelte",
    setup: ({ onLoad }) =>
      onLoad({ filter: /\.svelte$/ }, async ({ path }) => {
        const { js } = compile(await Deno.readTextFile(path), { filename: path });
        return { contents: js.code, loader: "js" };
      }),
  },
  solid: {
    name: "solid",
    setup: ({ onLoad }) =>
      onLoad({ filter: /\.tsx$/ }, async ({ path }) => {
        const source = await transform(await Deno.readTextFile(path), { loader: "tsx", jsx: "preserve" });
        const compiled = await transformAsync(source.code, { presets: [solid], configFile: false });
        return { contents: compiled?.code ?? "", loader: "js" };
      }),
  },
};

/** Creates an app from a template in `folder/apps`, and builds its page into `folder/public`. */
async function buildTemplate(framework: Framework, folder: string): Promise<string> {
  const app = join(folder, "apps", framework);
  const page = join(folder, "public", framework);
  copyTemplate(framework, { from: join(projectDir, "templates"), to: app });
  const [, entry = ""] = /src="\/(src\/main\.\w+)"/.exec(await Deno.readTextFile(join(app, "index.html"))) ??
    [];
  const local = (name: string) => fileURLToPath(import.meta.resolve(name));
  await build({
    entryPoints: [join(app, entry)],
    outfile: join(page, `${entry}.js`),
    bundle: true,
    format: "esm",
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [compilers[framework]],
    alias: {
      "syncline/client": local("syncline/client"),
      [`syncline/${framework}`]: local(`syncline/${framework}`),
      // `createApi`, without the rest of the API for functions.
      "syncline/server": local("syncline/client"),
    },
    nodePaths: [join(folder, "node_modules")],
    logLevel: "error",
  });
  const html = await Deno.readTextFile(join(app, "index.html"));
  const moved = html.replaceAll('="/src/', `="/${framework}/src/`).replace(entry, `${entry}.js`);
  await Deno.writeTextFile(join(page, "index.html"), moved);
  await Deno.copyFile(join(app, "src/style.css"), join(page, "src/style.css"));
  return app;
}

async function filesOf(folder: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for await (const { name } of Deno.readDir(folder)) {
    files[name] = await Deno.readTextFile(join(folder, name));
  }
  return files;
}

/** Opens the page in a separate profile and signs a new user up. */
async function signedUp(
  browser: SharedChromium,
  { url, name, errors }: { readonly url: string; readonly name: string; readonly errors: Error[] },
): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  page.on("pageerror", (error) => errors.push(error));
  await page.goto(url);
  await page.getByLabel("Email").fill(`${name}@example.com`);
  await page.getByLabel("Password").fill("short");
  await page.getByRole("button", { name: "Sign up" }).click();
  assert.equal(await page.locator(":invalid[type=password]").count(), 1);
  await page.getByLabel("Password").fill("correct horse battery");
  await page.getByRole("button", { name: "Sign up" }).click();
  await page.getByLabel("New task").waitFor();
  return page;
}

Deno.test({
  ...inChromium("NP2 the pages of the templates for other frameworks show each other's changes"),
  async fn(t) {
    await using folder = new TempFolder();
    await linkPackages(join(folder.path, "node_modules"), FRAMEWORKS, import.meta.url);
    const apps: string[] = [];
    try {
      for (const framework of BINDINGS) apps.push(await buildTemplate(framework, folder.path));
    } finally {
      await stop();
    }
    await using server = await startTestServer({
      functions: await filesOf(join(apps[0] ?? "", "functions")),
      config: { staticDir: join(folder.path, "public") },
    });
    const browser = await sharedChromium();
    try {
      for (const framework of BINDINGS) {
        await t.step(framework, async () => {
          const url = `${server.url}/${framework}/`;
          const errors: Error[] = [];
          const ada = await signedUp(browser, { url, name: `ada_${framework}`, errors });
          const bob = await signedUp(browser, { url, name: `bob_${framework}`, errors });
          await ada.getByText("Nothing to do").waitFor();
          await ada.getByLabel("New task").fill("Milk");
          await ada.getByRole("button", { name: "Add" }).click();
          await bob.getByText("Milk").waitFor();
          // The elements of a changed task stay, and with them the focus.
          for (const page of [ada, bob]) await page.getByRole("checkbox").focus();
          await bob.getByRole("checkbox").check();
          await ada.locator("input:checked").waitFor();
          for (const page of [ada, bob]) await page.locator("input:focus:checked").waitFor();
          await ada.getByRole("button", { name: "Remove Milk" }).click();
          await bob.getByText("Nothing to do").waitFor();
          await ada.getByRole("button", { name: "Sign out" }).click();
          await ada.getByLabel("Email").waitFor();
          assert.deepEqual(errors, []);
          for (const page of [ada, bob]) await page.context().close();
        });
      }
    } finally {
      await browser.close();
    }
  },
});
