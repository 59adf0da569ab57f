/** The dashboard's versions in a browser: rollback, history, sources and their differences. */
import assert from "node:assert/strict";
import { bundleOf } from "../ops/deploy/support.ts";
import { admin, checkAppearances, checkDialog, testDashboard } from "./support/dashboard_page.ts";

const versionOf = (text: string) =>
  `import { untypedQuery } from "syncline/server";\nexport const which = untypedQuery({ handler: () => "${text}" });`;

testDashboard("rollback of deployed versions", {
  functions: { "app.ts": versionOf("first") },
  config: { pinned: false },
}, async (dashboard, t) => {
  const { page, server, go, waitForText, button, call, keys, resize } = dashboard;
  const { body: { accessToken } } = await server.post("/api/auth/admin/signin", admin);
  const deploy = async (
    text: string,
    others: Record<string, string> = {},
    { message = "", folder = "functions" } = {},
  ) => {
    const { bytes } = await bundleOf({ [`${folder}/app.ts`]: text, ...others }, {}, folder);
    const response = await fetch(`${server.url}/api/admin/functions?${new URLSearchParams({ message })}`, {
      method: "PUT",
      headers: { Authorization: `Bearer ${accessToken}` },
      body: bytes,
    });
    assert.equal(response.status, 200, await response.text());
  };

  await t.step("DA8 the commands of the first deploy are shown, also with a functions folder", async () => {
    await go("versions");
    await waitForText("No deploys yet");
    await button("Copy").click();
    await waitForText("Commands copied.");
    await page.route(
      "**/api/admin/functions/versions",
      (route) => route.fulfill({ json: { pinned: true, versions: [], history: [], hasFrontend: false } }),
    );
    await page.reload();
    await waitForText("It continues with the version that it served last;");
    await page.getByText(`export SYNCLINE_URL=${server.url}`).waitFor();
    assert.deepEqual(await dashboard.violations(), []);
    await page.unrouteAll();
    await page.reload();
    await waitForText("No deploys yet");
  });

  await t.step("DA8 deployed versions are listed with the deployer", async () => {
    await deploy(versionOf("second"), {}, { message: "The second one, for all" });
    await deploy(
      `${versionOf("third")}
import { untypedInternalMutation, untypedMutation } from "syncline/server";
import { untypedAction } from "syncline/server";
export const outlast = untypedAction({ handler: async (ctx) => {
  while (await ctx.runQuery("app:which", {}) === "third") await new Promise((resolve) => setTimeout(resolve, 20));
  throw new Error("Ended after a rollback");
} });
export const extra = untypedInternalMutation({ handler: () => null });
export const add = untypedMutation({ handler: async (ctx) => {
  await ctx.db.insert("notes", { text: "kept" });
  await ctx.scheduler.runAfter(3_600_000, "app:extra", {});
} });`,
      {
        "functions/schema.ts": `import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string() }).index("by_text", ["text"]) });`,
        "functions/crons.ts": `import { cronJobs } from "syncline/server";
const crons = cronJobs();
crons.interval("sweep", { hours: 5 }, "app:extra", {});
export default crons;`,
      },
    );
    for (let i = 0; i < 2; i++) await call("app:add");
    // The view requests versions when it opens, and every 15 seconds.
    await go("users");
    await go("versions");
    await page.getByRole("row", { name: /live/ }).getByText(admin.email).waitFor();
  });

  await t.step("DA8 a rollback shows its changes before it is applied", async () => {
    assert.equal(await call("app:which", {}, "query"), "third");
    const live = page.getByRole("row", { name: /live/ });
    const before = await live.getByRole("cell").first().getAttribute("title");
    const outlasting = call("app:outlast", {}, "action");
    await button("Roll back…").first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Table notes: 2 documents will be out of reach of functions").waitFor();
    await checkDialog(dashboard, "rollback");
    await dialog.getByText("app:extra: 2 pending jobs will fail when due").waitFor();
    await dialog.getByRole("region", { name: "Functions" }).getByText("app:add removed").waitFor();
    await dialog.getByRole("region", { name: "Cron jobs" }).getByText("sweep removed").waitFor();
    await dialog.getByLabel("Message").fill("Lost");
    await button("Cancel").click();
    await button("Discard changes").click();
    await dialog.waitFor({ state: "detached" });
    await button("Roll back…").first().click();
    assert.equal(await dialog.getByLabel("Message").inputValue(), "");
    await dialog.getByLabel("Message").fill("The third one loses notes");
    await dialog.getByRole("button", { name: "Roll back", exact: true }).click();
    await waitForText(/^Version .* is now live\.$/);
    assert.equal(await call("app:which", {}, "query"), "second");
    await page.locator(`td[title="${before}"]`, { hasText: "live" }).waitFor({ state: "detached" });
    await outlasting;
  });

  await t.step("DA22 a version links to its errors, also to those of runs that ended after it", async () => {
    const third = page.getByRole("row", { name: "Roll back" }).first();
    const hash = await third.getByRole("cell").first().getAttribute("title") ?? "";
    await third.getByRole("link", { name: "Errors" }).click();
    await page.getByRole("button", { name: `Remove filter version: ${hash.slice(0, 7)}` }).waitFor();
    await page.getByRole("row", { name: /Ended after a rollback/ }).getByRole("button").click();
    const sheet = page.getByRole("dialog");
    // This server does not log arguments.
    await sheet.getByText("Not recorded for this run.").waitFor();
    await sheet.getByRole("link", { name: "Log arguments" }).waitFor();
    await sheet.getByRole("link", { name: hash.slice(0, 7) }).waitFor();
    await sheet.getByRole("link", { name: "runs of this version" }).click();
    await page.getByRole("cell", { name: "app:add" }).first().waitFor();
    // The version that is served now has no errors.
    await go("versions");
    await page.getByRole("row", { name: /live/ }).getByRole("link", { name: "Errors" }).click();
    await waitForText("No matching runs");
    await go("versions");
  });

  await t.step(
    "DA31 deploys are listed with their user and time, and with links to the runs of that time",
    async () => {
      const history = page.locator(".card", { has: page.getByRole("heading", { name: "History" }) });
      const rows = history.getByRole("row");
      await rows.nth(3).waitFor();
      const times = [1, 2, 3].map((row) => rows.nth(row));
      await times[0]?.getByText("The third one loses notes").waitFor();
      await times[0]?.getByText(admin.email).waitFor();
      await times[0]?.getByRole("cell", { name: "now" }).waitFor();
      await times[2]?.getByText("The second one, for all").waitFor();
      // The message of the version stays that of its deploy.
      await page.getByRole("row", { name: /live The second one, for all/ }).waitFor();
      await times[1]?.getByRole("link", { name: "Logs" }).click();
      await page.getByRole("heading", { name: "Logs" }).waitFor();
      await page.getByRole("cell", { name: "app:add" }).first().waitFor();
      await page.goBack();
      await history.waitFor();
      await times[1]?.getByRole("link", { name: "Errors" }).click();
      await waitForText("No matching runs");
      await go("versions");
    },
  );

  await t.step("DA31 the sources of a version are shown, and compared with another one by file", async () => {
    await page.getByRole("row", { name: /live/ }).getByRole("link").first().click();
    await page.locator(".code").getByText('handler: () => "second"').waitFor();
    assert.deepEqual(
      await page.getByRole("navigation", { name: "Files" }).getByRole("listitem").allTextContents(),
      [
        "app.ts",
      ],
    );
    await page.getByLabel("Compare with").selectOption({ index: 1 });
    const files = page.getByRole("navigation", { name: "Files" });
    await files.getByRole("link", { name: "app.ts" }).click();
    await page.locator("[data-change=added]").getByText('handler: () => "second"').waitFor();
    await page.locator("[data-change=removed]").getByText('handler: () => "third"').waitFor();
    const [short, long] = await page.locator(".code td[data-line]").evaluateAll((cells) =>
      // Line numbers of a short and of a long file.
      ["1", "1234"].map((line) => {
        for (const cell of cells) cell.setAttribute("data-line", line);
        return cells.map((cell) => cell.clientHeight);
      })
    );
    assert.deepEqual(long, short, "line numbers wrap");
    await files.getByRole("link", { name: "crons.ts removed" }).click();
    await page.locator("[data-change=removed]").getByText('crons.interval("sweep"').waitFor();
    assert.deepEqual(await dashboard.violations(), []);
    await resize(390);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0);
    await resize(1280);
    await page.getByRole("link", { name: "All versions" }).click();
    await page.getByRole("row", { name: /live/ }).getByRole("link", { name: "Compare" }).click();
    await page.locator("[data-change=removed]").first().waitFor();
    await go("versions/00000000000000000000000000000000");
    await waitForText("The server does not have this version any more");
    await go("versions");
  });

  await t.step("DA8 a table that the version lacks stays readable and can be exported", async () => {
    await go("data/notes");
    await waitForText("The live version does not have this table");
    await page.getByRole("gridcell", { name: "kept" }).nth(1).waitFor();
    await page.getByRole("columnheader", { name: "text" }).waitFor();
    assert.equal(await button("New document").count(), 0);
    await page.getByRole("gridcell", { name: "kept" }).first().click();
    await page.locator(".cm-content", { hasText: "kept" }).waitFor();
    await button("Close").click();
    await page.getByRole("navigation", { name: "Tables" }).getByText("orphaned").waitFor();
    const download = page.waitForEvent("download");
    await dashboard.choose("More about this table", "Export as JSON lines");
    const lines = (await Deno.readTextFile(await (await download).path())).trim().split("\n");
    assert.deepEqual(lines.map((line) => JSON.parse(line).text), ["kept", "kept"]);
    assert.deepEqual(await dashboard.violations(), []);
  });

  await t.step("DA8 jobs of missing functions are listed, canceled and retried", async () => {
    await go("schedule");
    await waitForText("2 pending jobs call functions that the live version lacks: app:extra.");
    await page.getByRole("link", { name: "Show" }).click();
    await page.getByText("function missing").nth(2).waitFor();
    await button("Cancel").first().click();
    await waitForText("Canceled.");
    await button("Retry").first().click();
    await waitForText("app:extra scheduled again.");
    // The error is shown, and leads to the runs.
    await page.getByRole("cell", { name: /^failed \S/ }).getByRole("link").waitFor();
    assert.deepEqual(await dashboard.violations(), []);
    await go("versions");
  });

  await t.step("by keyboard only: a rollback is opened and canceled", async () => {
    await button("Roll back…").first().focus();
    await keys("Enter");
    await page.getByRole("dialog").waitFor();
    await keys("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal(await call("app:which", {}, "query"), "second");
  });

  await t.step("DA31 versions deployed from differently named folders are compared by file", async () => {
    await page.getByRole("row", { name: /live/ }).getByRole("link").first().click();
    await page.locator(".code").getByText('handler: () => "second"').waitFor();
    const [, second = ""] = /versions\/([0-9a-f]+)/.exec(page.url()) ?? [];
    const others = { "functions2/text.ts": 'export const text = "fourth";' };
    const text = `import { text } from "./text.ts";\n${versionOf("second").replace('"second"', "text")}`;
    await deploy(text, others, { folder: "functions2" });
    await go("users");
    await go("versions");
    await page.getByRole("row", { name: /live/ }).getByRole("link").first().click();
    const files = page.getByRole("navigation", { name: "Files" }).getByRole("listitem");
    await page.getByLabel("Compare with").selectOption(second);
    await files.filter({ hasText: "added" }).waitFor();
    assert.deepEqual(await files.allTextContents(), ["app.ts+2 −1", "text.tsadded"]);
    await go("versions");
  });

  await t.step(
    "DA7 axe finds no accessibility violations",
    async () => {
      const link = page.getByRole("row", { name: /live/ }).getByRole("link", { name: "Compare" });
      const [, compared = ""] = (await link.getAttribute("href") ?? "").split("#/");
      await checkAppearances(dashboard, ["versions", compared, compared.replace(/\?.*/, "")]);
    },
  );
});
