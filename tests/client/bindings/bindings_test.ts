/** The bindings of frameworks other than React: in a browser against a real server, and during server rendering. */
import assert from "node:assert/strict";
import { build, stop } from "esbuild";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SynclineClient } from "syncline/client";
import { createComponent } from "solid-js";
import { renderToString as renderSolid } from "solid-js/web";
import type { Component } from "svelte";
import { render as renderSvelte } from "svelte/server";
import * as solidBinding from "syncline/solid";
import * as svelteBinding from "syncline/svelte";
import * as vueBinding from "syncline/vue";
import { createSSRApp } from "vue";
import { renderToString as renderVue } from "vue/server-renderer";
import { BINDINGS, FRAMEWORKS } from "../../../mod/client/build/package_files.ts";
import { launchChromium } from "../../support/chromium.ts";
import { linkPackages } from "../../support/linked_packages.ts";
import { ServerProcess } from "../../support/processes/server_process.ts";
import { chromium, needs } from "../../support/services.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { api } from "../react/page/api.ts";

async function buildPage(dir: string): Promise<void> {
  const packages = join(dir, "node_modules");
  await linkPackages(packages, FRAMEWORKS, import.meta.url);
  const entries = ["client", ...BINDINGS].map((name) => `syncline/${name}`);
  try {
    await build({
      entryPoints: [fileURLToPath(new URL("page/main.ts", import.meta.url))],
      outfile: join(dir, "public/page.js"),
      bundle: true,
      format: "esm",
      define: { "process.env.NODE_ENV": '"development"' },
      alias: Object.fromEntries(entries.map((name) => [name, fileURLToPath(import.meta.resolve(name))])),
      nodePaths: [packages],
      logLevel: "error",
    });
  } finally {
    await stop();
  }
  await Deno.writeTextFile(
    join(dir, "public/index.html"),
    '<!doctype html><title>Bindings</title><body><script type="module" src="page.js"></script>\n',
  );
}

Deno.test({
  ...needs(chromium, "each binding follows live queries, arguments, errors, pages and calls"),
  // The browser's driver and the bundler keep their own timers and pipes.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using folder = new TempFolder();
    await buildPage(folder.path);
    await using server = await ServerProcess.start({
      dataDir: join(folder.path, "data"),
      functions: "tests/client/react/functions",
      flags: ["--static", join(folder.path, "public")],
    });
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      const errors: string[] = [];
      page.on("pageerror", (error) => errors.push(error.message));
      await page.goto(`http://127.0.0.1:${server.port}`);
      for (const framework of BINDINGS) {
        await page.evaluate(
          (name) => (globalThis as unknown as { run(name: string): Promise<void> }).run(name),
          framework,
        ).catch((error) => assert.fail(`${framework}: ${error.message}`));
      }
      assert.deepEqual(errors, []);
    } finally {
      await browser.close();
    }
  },
});

Deno.test("bindings leave the client unconnected during server rendering", async (t) => {
  const client = new SynclineClient("http://127.0.0.1:9");
  const expected = "true,LoadingFirstPage,loading,idle,1,false";
  const args = { list: "a" };
  const page = { initialNumItems: 1 };
  const preloaded = { initial: [{ rank: 1 }] as never };

  await t.step("vue", async () => {
    const app = createSSRApp({
      setup() {
        const { isLoading } = vueBinding.useQuery(api.rows.all, args);
        const { status } = vueBinding.usePaginatedQuery(api.rows.page, args, page);
        const { status: authStatus, auth } = vueBinding.useAuth();
        const connection = vueBinding.useConnectionState();
        const shown = vueBinding.useQuery(api.rows.all, args, preloaded);
        assert.throws(() => auth.signOut(), /server rendering/);
        return () =>
          [
            isLoading.value,
            status.value,
            authStatus.value,
            connection.value.phase,
            shown.data.value?.[0]?.rank,
            shown.isLoading.value,
          ].join();
      },
    });
    app.use(vueBinding.SynclinePlugin, client);
    assert.equal(await renderVue(app), expected);
  });

  /** The same with a binding whose values are getters. */
  const shown = (binding: typeof svelteBinding | typeof solidBinding) => {
    const query = binding.useQuery(api.rows.all, args);
    const pages = binding.usePaginatedQuery(api.rows.page, args, page);
    const auth = binding.useAuth();
    assert.throws(() => auth.auth.signOut(), /server rendering/);
    const preloadedQuery = binding.useQuery(api.rows.all, args, preloaded);
    return [
      query.isLoading,
      pages.status,
      auth.status,
      binding.useConnectionState().phase,
      preloadedQuery.data?.[0]?.rank,
      preloadedQuery.isLoading,
    ].join();
  };

  await t.step("svelte", () => {
    let text = "";
    const component = () => {
      svelteBinding.provideSyncline(client);
      text = shown(svelteBinding);
    };
    void renderSvelte(component as unknown as Component, { context: new Map() }).body;
    assert.equal(text, expected);
  });

  await t.step("solid", () => {
    const text = renderSolid(() =>
      createComponent(solidBinding.SynclineProvider, {
        client,
        get children() {
          return shown(solidBinding);
        },
      })
    );
    assert.equal(text, expected);
  });

  assert.equal(client.connectionState().phase, "idle");
  client.close();
});
