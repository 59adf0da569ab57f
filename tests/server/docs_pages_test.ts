/** The documentation served at `/_/docs/`: pages, links, groups, search, and no active content. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { ServiceError, serviceErrors } from "../../mod/errors.ts";
import { ClientModules } from "../../mod/server/http/client_modules.ts";
import { createRouter } from "../../mod/server/http/router.ts";
import { StaticFiles } from "../../mod/server/http/static_files.ts";
import { DocsPages } from "../../mod/server/docs/docs_pages.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { FakeBackend } from "./support/fake_backend.ts";

const docs = new DocsPages();
const text = async (path: string) => await (await docs.respond(path))?.text() ?? "";

const names = async () =>
  [...(await text("")).matchAll(/<nav[^]*<\/nav>/g)].flatMap(([nav]) =>
    [...nav.matchAll(/<a href="([\w-]+)"/g)].map(([, name = ""]) => name)
  );

Deno.test("DO1 every page is served, and its links resolve", async () => {
  const found = await names();
  assert.ok(found.length >= 25);
  assert.equal(found[0], "quickstart");
  const pages = new Map(await Promise.all(found.map(async (name) => [name, await text(name)] as const)));
  let followed = 0;
  for (const [name, page] of [...pages, ["", await text("")] as const]) {
    for (const [, target = "", anchor] of page.matchAll(/<a href="([\w-]*)(?:#([\w-]+))?"/g)) {
      const other = pages.get(target === "" ? name : target);
      assert.ok(other !== undefined, `${name} leads to ${target}`);
      if (anchor !== undefined) {
        assert.ok(other.includes(` id="${anchor}"`), `${name} leads to ${target}#${anchor}`);
      }
      followed++;
    }
  }
  assert.ok(followed > 100);
});

Deno.test("DO1 the navigation has the groups of the index, and a page has a table of contents", async () => {
  const page = await text("errors");
  const groups = [...page.matchAll(/<h2>([^<]+)<\/h2>/g)].map(([, title]) => title);
  assert.deepEqual(groups, ["Start", "Guides", "Operate", "Reference", "Explanation", "On this page"]);
  assert.match(page, /<a href="errors" aria-current="page">/);
  assert.match(page, /<aside[^]*<a href="#sockets">/);
  assert.match(await text("client_api"), /<aside[^]*<a href="#usequery">/);
});

Deno.test("DO4 the search finds sections that contain every word, headings first", async () => {
  const found = async (query: string) =>
    [...(await (await docs.respond("search", query))?.text() ?? "").matchAll(/<li><a href="([^"]+)">/g)]
      .map(([, target]) => target);
  assert.equal((await found("optimistic updates"))[0], "react#optimistic-updates");
  assert.ok((await found("popup_blocked")).some((target) => target?.startsWith("errors")));
  assert.deepEqual(await found("optimistic zzzz"), []);
  assert.deepEqual(await found(" "), []);
  const page = await (await docs.respond("search", '<b>"x'))?.text() ?? "";
  assert.doesNotMatch(page, /<b>|"x"/);
});

Deno.test("DO1 each error code has an anchor on the errors page", async () => {
  const page = await text("errors");
  for (const code of Object.keys(serviceErrors)) assert.ok(page.includes(`<tr id="${code}">`), code);
});

Deno.test("DO2 pages are served as Markdown, and llms.txt lists them", async () => {
  const list = await text("llms.txt");
  const paths = [...list.matchAll(/\]\(\/_\/docs\/([\w-]+\.md)\)/g)].map(([, path = ""]) => path);
  assert.ok(paths.length >= 25);
  for (const path of paths) assert.match(await text(path), /^# /);
});

Deno.test("DO1 the page about metrics links to the dashboard for Grafana", async () => {
  assert.match(await text("metrics"), /<a href="grafana\.json">/);
  assert.equal(JSON.parse(await text("grafana.json")).title, "Syncline");
});

Deno.test("DO1 HTML and unknown links in a page are rendered as text", async () => {
  await using folder = await TempFolder.with({
    "bad.md":
      "# <script>alert(1)</script>\\n\\n[a](javascript:alert(1)) ![b](x.png) [c](../README.md)\\n\\n<b onclick=x>\\n",
  });
  const response = await new DocsPages(folder.at()).respond("bad");
  const page = await response?.text() ?? "";
  assert.doesNotMatch(page, /<script|javascript:|<img|<b |\.\.\/README/);
  for (const path of ["nope", "../docs/bad", "bad.html", "%2e%2e/bad"]) {
    assert.equal(await new DocsPages(folder.at()).respond(path), null);
  }
});

Deno.test("DO1 a failed read is tried again by the next request", async () => {
  using folder = new TempFolder();
  const pages = new DocsPages(folder.at("docs"));
  await assert.rejects(async () => await pages.respond("a"), Deno.errors.NotFound);
  await Deno.mkdir(folder.at("docs"));
  await Deno.writeTextFile(folder.at("docs/a.md"), "# A page\n");
  assert.match(await (await pages.respond("a"))?.text() ?? "", /A page/);
});

Deno.test("DO1 pages have the strict content security policy, and errors link to them", async () => {
  const backend = new FakeBackend();
  const app = createRouter({
    routes: backend.routes,
    acceptSocket: () => {
      throw new ServiceError("bad_request");
    },
    ts: () => backend.ts,
    appRoutes: backend.http.appRoutes,
    clientModules: new ClientModules(),
    dashboard: await StaticFiles.open(fileURLToPath(new URL("../../dashboard/public", import.meta.url)), {
      clientRoutes: false,
    }),
    frontend: () => null,
    log: () => {},
  });
  const page = await app.request("/_/docs/errors");
  assert.equal(page.status, 200);
  assert.match(page.headers.get("content-security-policy") ?? "", /default-src 'self'/);
  assert.match(await page.text(), /<h1 id="errors">/);
  assert.equal((await app.request("/_/docs", { redirect: "manual" })).headers.get("location"), "/_/docs/");
  const missing = await app.request("/api/nope");
  assert.equal(missing.headers.get("link"), '</_/docs/errors#not_found>; rel="help"');
  assert.equal((await app.request("/_/docs/nope")).status, 404);
  await Promise.all([missing, page].map((response) => response.body?.cancel().catch(() => {})));
});
