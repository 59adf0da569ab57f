/** The dashboard's overview, files, schedule, backups and replication in a browser. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { anonymous } from "../../mod/functions/identity.ts";
import { startOfflineHost } from "../../mod/server/offline_host.ts";
import {
  admin,
  checkAppearances,
  checkDialog,
  checkRefused,
  found,
  testDashboard,
  until,
} from "./support/dashboard_page.ts";

const functions = {
  "schema.ts": `import { defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";
export default defineSchema({ notes: defineTable({ text: z.string(), file: id("_storage").optional(),
  stamped: z.boolean().optional() }) });`,
  "notes.ts": `import { id, untypedInternalMutation, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
export const list = untypedQuery({ args: {}, handler: (ctx) => ctx.db.query("notes").collect() });
export const add = untypedMutation({ args: { text: z.string() }, handler: (ctx, { text }) => ctx.db.insert("notes", { text }) });
export const fail = untypedMutation({ args: {}, handler: () => { throw new Error("a bug"); } });
export const later = untypedMutation({ args: {}, handler: async (ctx) =>
  await ctx.scheduler.runAfter(3_600_000, "notes:cleanUp", {}) });
export const cleanUp = untypedInternalMutation({ args: {}, handler: () => null });
export const stamp = untypedInternalMutation({ args: { id: id("notes") }, handler: (ctx, { id }) =>
  ctx.db.patch(id, { stamped: true }) });
export const find = untypedQuery({ args: { text: z.string() }, handler: () => [] });
export const upload = untypedMutation({ args: {}, handler: (ctx) => ctx.storage.generateUploadUrl() });`,
  "crons.ts": `import { cronJobs } from "syncline/server";
const crons = cronJobs();
crons.interval("cleanUp", { minutes: 80 }, "notes:cleanUp", {});
export default crons;`,
};

/** Leaves a data folder in the state of a server killed during an import. */
async function leaveImport(dataDir: string): Promise<void> {
  const functionsDir = join(dataDir, "..", "functions");
  await using host = await startOfflineHost({ dataDir, functionsDir, log: () => {} });
  const mutate = async (udfPath: string, args: Record<string, unknown>) => {
    const { outcome } = await host.mutate({ udfPath, args, identity: anonymous, origin: "system" });
    assert.ok(outcome.ok, JSON.stringify(outcome));
    return JSON.parse(outcome.value);
  };
  const workId = await mutate("_system/admin:beginImport", { table: "notes", mode: "insert", startedBy: "" });
  for (let batch = 0; batch < 2; batch++) {
    const lines = Array.from({ length: 256 }, (_, n) => `{"text":"${n}"}`);
    const rows = { format: "jsonl", lines };
    await mutate("_system/import:write", { table: "notes", mode: "insert", batch: rows, workId });
  }
}

const place = await Deno.makeTempDir();
const replica = join(place, "replica");
const scheduled = join(place, "scheduled");
const restarts: number[] = [];
const replication = {
  everyMs: 50,
  snapshotEveryMs: 86_400_000,
  keepMs: 7 * 86_400_000,
  maxPendingBytes: 2 ** 28,
  heartbeatUrl: null,
};

testDashboard("overview, files, schedule, backups and replication", {
  functions,
  onRestart: () => void restarts.push(1),
  config: {
    restartExitCode: 75,
    backups: { to: { kind: "folder", path: scheduled }, everyMs: 86_400_000, keep: 3 },
    replication: { ...replication, to: { kind: "folder", path: replica } },
  },
}, async (dashboard, t) => {
  const { page, server, go, waitForText, button, choose, keys, call, asAdmin } = dashboard;
  const dialog = page.getByRole("dialog");
  const staged = () => page.getByRole("heading", { name: /Restore prepared/ });
  const cancelRestore = async () => {
    await button("Cancel the restore").click();
    await waitForText("Restore canceled.");
    // The message of an earlier step may still be shown, and the list is requested after it.
    await staged().waitFor({ state: "detached" });
  };

  await t.step("DA5 a failing function is listed first and links to its runs", async () => {
    for (let i = 0; i < 3; i++) await call("notes:fail");
    // A function that does not exist is no issue.
    await call("notes:gone");
    // The overview requests issues every 30 seconds, and the log stores runs a moment after they end.
    await until(async () =>
      (await asAdmin("_admin/alerts:issues", {}, "action"))
        .some(({ text }: { text: string }) => text.startsWith("notes:fail failed in 3 of 3 calls"))
    );
    await go("users");
    await go("overview");
    await waitForText("notes:fail failed in 3 of 3 calls in the last hour.");
    assert.equal(await page.locator(".issues", { hasText: "(unknown)" }).count(), 0);
    await page.getByRole("link", { name: "View runs" }).click();
    await button(/^Remove filter function:/).waitFor();
    await page.getByRole("button", { name: "notes:fail", exact: true }).first().waitFor();
  });

  await t.step("AL3 an issue is acknowledged, shown again and muted", async () => {
    await go("overview");
    const item = page.getByRole("listitem").filter({ hasText: "notes:fail failed" });
    await item.getByRole("button", { name: "Acknowledge" }).click();
    await page.getByText("1 known issue", { exact: true }).click();
    await item.getByText(`acknowledged by ${admin.email}`).waitFor();
    await item.getByRole("button", { name: "Show again" }).click();
    await item.getByRole("button", { name: "Mute" }).click();
    await page.getByText("1 known issue", { exact: true }).click();
    await item.getByText("muted until").waitFor();
    await item.getByRole("button", { name: "Show again" }).click();
    await item.getByRole("button", { name: "Acknowledge" }).waitFor();
  });

  await t.step("ST6 charts show the last hour with the values of the minute at the pointer", async () => {
    await call("notes:add", { text: "one" });
    await go("overview");
    for (
      const title of ["Calls", "Errors", "Latency", "Commits", "Sockets", "Subscriptions", "Memory", "Disk"]
    ) {
      await page.getByRole("img", { name: new RegExp(`^${title} over the last hour`) }).waitFor();
    }
    const errors = page.getByRole("figure", { name: /^Errors/ });
    await errors.getByRole("img").click({ position: { x: 10, y: 10 } });
    await button("Remove filter outcome: error, timeout or refused").waitFor();
    await waitForText("No matching runs");
    await page.goBack();
    await errors.getByRole("link", { name: "Errors" }).click();
    await page.getByRole("button", { name: "notes:fail", exact: true }).first().waitFor();
    await page.goBack();
    const calls = page.getByRole("figure", { name: /^Calls/ });
    const { width = 0 } = await calls.getByRole("img").boundingBox() ?? {};
    // A new minute may have started since, so check the latest ones.
    await until(async () => {
      for (const back of [0, 1, 2, 3]) {
        await calls.getByRole("img").hover({ position: { x: width - 1 - back * width / 59, y: 10 } });
        if (await calls.getByText(/runs [1-9]/).count() > 0) return true;
      }
      return false;
    });
    await page.getByRole("figure", { name: /^Memory/ }).locator(".chart-at").waitFor({ state: "attached" });
    await page.mouse.move(0, 0);
  });

  await t.step("ST7 charts show 24 hours and 7 days, and the address contains the range", async () => {
    const calls = page.getByRole("figure", { name: /^Calls/ });
    for (const [name, text] of [["24 h", "24 hours"], ["7 d", "7 days"]] as const) {
      await button(name).click();
      await calls.getByRole("img", { name: new RegExp(`over the last ${text}: at most`) }).waitFor();
      const { width = 0 } = await calls.getByRole("img").boundingBox() ?? {};
      await calls.getByRole("img").hover({ position: { x: width - 0.1, y: 10 } });
      await calls.getByText(/runs [\d.]+\/min/).waitFor();
      await page.mouse.move(0, 0);
    }
    assert.match(page.url(), /overview\?range=week$/);
    await page.reload();
    await calls.getByRole("img", { name: /over the last 7 days/ }).waitFor();
    await page.mouse.move(0, 0);
    await button("1 h").click();
  });

  await t.step("DA15 the overview's data is requested once, before the scripts run", async () => {
    const asked: string[] = [];
    const note = (request: { url(): string }) => void asked.push(new URL(request.url()).pathname);
    page.on("request", note);
    await page.reload();
    await page.getByText("Slowest functions in the last hour").waitFor();
    await page.getByRole("heading", { name: "Tables" }).waitFor();
    await waitForText("notes:fail failed in 3 of 3 calls in the last hour.");
    page.off("request", note);
    for (
      const [path, times] of [["/api/admin/stats", 1], ["/api/admin/backups", 1], ["/api/action", 2]] as const
    ) {
      assert.equal(asked.filter((other) => other === path).length, times, `${path} of ${asked.join(" ")}`);
    }
  });

  await t.step("DA15 a failed early request is repeated", async () => {
    let lost = 0;
    await page.route(/\/api\/(admin\/stats|action)$/, async (route) => {
      if (lost++ < 2) await route.abort();
      else await route.continue();
    });
    await page.reload();
    await page.getByText("Slowest functions in the last hour").waitFor();
    await page.getByRole("heading", { name: "Tables" }).waitFor();
    // Issues may be requested again later than the rest.
    await until(() => lost >= 5);
    assert.equal(lost, 5);
    await page.unrouteAll();
  });

  await t.step("DA22 a query without recorded arguments names the setting that records them", async () => {
    await call("notes:find", { text: "one" }, "query");
    await until(async () => {
      await go("users");
      const searched = page.waitForResponse(/\/api\/admin\/logs\?function=notes%3Afind&limit=/);
      await go("functions/notes%3Afind");
      return (await (await searched).json()).runs.length > 0;
    });
    await waitForText("The arguments of earlier runs were not recorded.");
    await page.getByRole("link", { name: "Log arguments" }).waitFor();
    await go("overview");
  });

  await t.step("the slowest functions and the largest tables link to their views", async () => {
    await page.getByRole("link", { name: "notes:fail" }).waitFor();
    // The tables of the server follow those of the app on request.
    const system = page.getByRole("cell", { name: "_audit", exact: true });
    await system.waitFor({ state: "hidden" });
    await page.locator("summary", { hasText: /^\d+ system tables, / }).click();
    await system.waitFor();
    await page.getByRole("cell", { name: "notes", exact: true }).getByRole("link").click();
    await page.getByRole("gridcell", { name: "one" }).waitFor();
  });

  await t.step(
    "SY30 the history of a document shows the time, user and function of each change",
    async () => {
      const id = await call("notes:add", { text: "first words" });
      await asAdmin("_admin/data:patch", { id, set: { text: "other words" } });
      await until(async () => {
        const { changes } = await asAdmin("_admin/data:history", { id }, "action");
        return changes.length === 2 && changes.every(({ run }: { run: object | null }) => run !== null);
      });
      await go(`data/notes/${id}`);
      await button("History").click();
      const commit = (text: string) =>
        page.getByRole("region", { name: /^Commit/ }).filter({ hasText: text });
      await commit("inserted").getByText("by anonymous in").waitFor();
      await checkDialog(dashboard, "document history");
      await commit("inserted").getByRole("link", { name: "notes:add" }).waitFor();
      await commit("changed").getByText(`by ${admin.email} in`).waitFor();
      await commit("changed").getByRole("cell", { name: '"first words"' }).waitFor();
      await commit("changed").getByRole("cell", { name: '"other words"' }).waitFor();
      await keys("Escape");
      // The focus returns to the button that opened the history.
      await page.locator("button:focus", { hasText: "History" }).waitFor();
      await button("History").click();
      await commit("inserted").getByRole("link", { name: "notes:add" }).click();
      await dialog.getByText("notes:add").first().waitFor();
      await go("overview");
      await asAdmin("_admin/data:remove", { ids: [id] });
    },
  );

  await t.step("SY30 the history names the administrator who imported a document", async () => {
    await go("data/notes");
    await choose("More about this table", "Import…");
    await page.getByLabel("File").setInputFiles({
      name: "notes.jsonl",
      mimeType: "text/plain",
      buffer: Buffer.from('{"text":"imported"}\n'),
    });
    await button("Check file").click();
    await button("Import 1 row").click();
    await waitForText("1 document imported.");
    const notes = await call("notes:list", {}, "query");
    const id = notes.find(({ text }: { text: string }) => text === "imported")._id;
    await until(async () =>
      (await asAdmin("_admin/data:history", { id }, "action")).changes[0]?.run?.caller !== undefined
    );
    await go(`data/notes/${id}`);
    await button("History").click();
    await waitForText(`by ${admin.email} in an import or a copy of the table`);
    await keys("Escape", "Escape");
    await asAdmin("_admin/data:remove", { ids: [id] });
  });

  await t.step("DA23 an earlier state of a document is restored, after its deletion too", async () => {
    const id = await call("notes:add", { text: "right" });
    await asAdmin("_admin/data:patch", { id, set: { text: "wrong" } });
    const textOf = async () => (await asAdmin("_admin/data:get", { id }, "query"))?.document.text;
    const restore = async (changes: number) => {
      await until(async () =>
        (await asAdmin("_admin/data:history", { id }, "action")).changes.length === changes
      );
      await button("History").click();
      await page.getByRole("region", { name: /^Commit/ }).filter({ hasText: "inserted" })
        .getByRole("button", { name: "Restore the state after this change" }).click();
      await page.getByText(`Changes of ${id}`).waitFor({ state: "detached" });
    };
    await go(`data/notes/${id}`);
    await restore(2);
    assert.equal(await textOf(), "right");
    await button("Undo").click();
    await until(async () => await textOf() === "wrong");
    const fields = page.getByRole("textbox", { name: "Fields of notes" });
    await fields.getByText("wrong").waitFor();
    await dashboard.fillEditor(fields, '{ "text": "edited" }');
    await button("History").click();
    const earlier = button("Restore the state after this change").last();
    await earlier.waitFor();
    assert.equal(await earlier.isDisabled(), true);
    await waitForText("Save or discard your changes to restore an earlier state.");
    assert.deepEqual(await dashboard.violations(), []);
    await keys("Escape", "Escape");
    await button("Discard changes").click();
    await asAdmin("_admin/data:remove", { ids: [id] });
    await go("audit");
    await page.getByRole("row", { name: /deleted/ }).getByRole("link", { name: `notes/${id}` }).click();
    await waitForText("Document not found");
    await restore(5);
    assert.equal(await textOf(), "right");
    // The button that opened the history is gone.
    await page.locator("[role=dialog]:focus").waitFor();
    const { page: [restored] } = await asAdmin("_admin/audit:list", {
      paginationOpts: { cursor: null, numItems: 1 },
      text: id,
    }, "query");
    assert.deepEqual([restored.action, restored.args.ids], ["_admin/data:insert", id]);
    await button("Undo").last().click();
    await until(async () => await textOf() === undefined);
    await waitForText("Document not found");
    const several = [await call("notes:add", { text: "a" }), await call("notes:add", { text: "b" })];
    await asAdmin("_admin/data:remove", { ids: several });
    await go("audit");
    await waitForText(`deleted ${several.join(", ")} of`);
    await page.getByLabel("Search entries").fill(id);
    await page.getByRole("row", { name: new RegExp(`restored notes/${id} as of `) }).first().waitFor();
    await page.getByText(`deleted ${several.join(", ")} of`).waitFor({ state: "detached" });
  });

  await t.step("a file is opened with the documents that reference it", async () => {
    const url = await call("notes:upload");
    const sent = await fetch(new URL(url, server.url), {
      method: "POST",
      headers: { "Content-Type": "text/plain" },
      body: "hello",
    });
    assert.ok(sent.ok, await sent.text());
    await go("files");
    await page.getByRole("list").getByRole("link").getByText("5 bytes").click();
    await dialog.getByText("SHA-256").waitFor();
    await checkDialog(dashboard, "file");
    await dialog.getByRole("button", { name: "Find" }).click();
    await dialog.getByText("orphan").waitFor();
    await keys("Escape");
  });

  /** A file's tile in the grid. An upload in progress is also a link with the file's name. */
  const tile = (name: string) => page.locator(".tiles").getByRole("link", { name });

  await t.step("the preview shows the whole image", async () => {
    const image = await page.evaluate(() => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [20, 1_000];
      return canvas.toDataURL("image/png").split(",")[1] ?? "";
    });
    const file = { name: "tall.png", mimeType: "image/png", buffer: Buffer.from(image, "base64") };
    await page.getByLabel("Files to upload").setInputFiles(file);
    // The preview replaces an icon, on which a click would be lost.
    const thumbnail = page.locator(".tile img");
    await thumbnail.waitFor();
    // The server may reject this size of thumbnails.
    await page.route(/[?&]thumb=/, (route) => route.fulfill({ status: 400 }));
    const rejected = page.waitForResponse(/[?&]thumb=/);
    await page.reload();
    await rejected;
    await thumbnail.waitFor({ state: "detached" });
    await page.unroute(/[?&]thumb=/);
    await page.reload();
    await thumbnail.waitFor();
    await tile("tall.png").click();
    const preview = dialog.locator(".preview");
    await preview.locator("img").waitFor();
    await until(() => preview.locator("img").evaluate((img) => (img as HTMLImageElement).complete));
    const [outer, inner] = [await preview.boundingBox(), await preview.locator("img").boundingBox()];
    assert.ok(outer && inner);
    assert.ok(inner.height <= outer.height && inner.width <= outer.width, JSON.stringify({ outer, inner }));
    const address = page.url();
    await keys("Escape");
    await dialog.waitFor({ state: "detached" });
    await page.getByLabel("Files to upload").setInputFiles({ ...file, name: "other.png" });
    await thumbnail.nth(1).waitFor();
    // A preview that failed does not hide the preview of the file that is opened next.
    await page.route(/[?&]thumb=512/, (route) => route.fulfill({ status: 400 }));
    const refused = page.waitForResponse(/[?&]thumb=512/);
    await tile("other.png").click();
    await refused;
    await preview.locator("img").waitFor({ state: "detached" });
    await page.unroute(/[?&]thumb=512/);
    await page.goto(address);
    await preview.locator("img").waitFor();
    // A thumbnail cannot be made while its file is deleted.
    await until(() =>
      page.locator(".preview img").evaluateAll((all) =>
        all.every((image) => (image as HTMLImageElement).complete)
      )
    );
    for (const name of ["tall.png", "other.png"]) {
      if (await dialog.count() === 0) await tile(name).click();
      await dialog.getByRole("button", { name: "Delete", exact: true }).click();
      await button("Delete file").click();
      await tile(name).waitFor({ state: "detached" });
      await dialog.waitFor({ state: "detached" });
    }
  });

  await t.step("files are filtered by type", async () => {
    await page.getByLabel("Type", { exact: true }).selectOption("image/");
    await waitForText("No files");
    await page.getByLabel("Type", { exact: true }).selectOption("");
    await page.getByText("5 bytes").waitFor();
  });

  await t.step("orphans are searched, sparing recent uploads", async () => {
    await button("Find orphans").click();
    await waitForText(/No orphans found in \d+ documents/);
  });

  await t.step("files are uploaded, and a rejected one shows an error", async () => {
    const text = { name: "plan.txt", mimeType: "text/plain", buffer: Buffer.from("what we do next") };
    await page.getByLabel("Files to upload").setInputFiles([text, { ...text, name: "later.txt" }]);
    await waitForText("later.txt uploaded.");
    await tile("plan.txt").click();
    await dialog.getByText("15 bytes").waitFor();
    await dialog.getByText(/^text\/plain/).waitFor();
    await dialog.getByRole("button", { name: "Delete", exact: true }).click();
    await button("Delete file").click();
    await tile("plan.txt").waitFor({ state: "detached" });
    await tile("later.txt").click();
    await dialog.getByRole("button", { name: "Delete", exact: true }).click();
    await button("Delete file").click();
    await tile("later.txt").waitFor({ state: "detached" });
    await page.route(
      "**/api/storage/upload*",
      (route) => route.fulfill({ status: 413, json: { errorMessage: "The file is too large" } }),
    );
    await page.getByLabel("Files to upload").setInputFiles(text);
    await waitForText("The file is too large");
    await button("Dismiss").last().click();
    await page.unroute("**/api/storage/upload*");
  });

  await t.step("a file is deleted", async () => {
    await page.getByRole("list").getByRole("link").getByText("5 bytes").click();
    await dialog.getByRole("button", { name: "Delete", exact: true }).click();
    await button("Delete file").click();
    await waitForText("File deleted.");
    await waitForText("No files");
  });

  await t.step("a scheduled function is run now, and another canceled", async () => {
    await call("notes:later");
    await go("schedule?state=pending");
    await page.getByRole("cell", { name: "notes:cleanUp" }).last().waitFor();
    const jobs = page.locator("section", { hasText: "Scheduled functions" });
    await jobs.getByRole("button", { name: "Run now" }).first().click();
    await waitForText("No scheduled functions");
    await call("notes:later");
    await button("Cancel").click();
    await waitForText("Canceled.");
    await waitForText("No scheduled functions");
  });

  await t.step("a cron job is run now", async () => {
    await page.getByRole("cell", { name: "every 80 min", exact: true }).waitFor();
    const row = page.getByRole("row", { name: /^cleanUp / });
    await row.getByRole("button", { name: "Run now" }).click();
    await waitForText("cleanUp started.");
    await row.getByText("done").waitFor();
  });

  await t.step("by keyboard only: jobs are filtered by their state", async () => {
    await page.getByLabel("State", { exact: true }).focus();
    // Letters with a pause in between would choose other states.
    await keys("c");
    await page.waitForFunction(() => location.hash.includes("state=canceled"));
    await page.getByRole("cell", { name: "canceled" }).waitFor();
  });

  await t.step("a backup is created", async () => {
    await go("backups");
    await waitForText("No backups yet");
    await button("Back up now").click();
    await checkDialog(dashboard, "back up now");
    await page.getByLabel("Include the execution log").check();
    await button("Back up").click();
    await waitForText("Backup created.");
    await page.getByRole("cell", { name: /^backup-.*\.tar\.zst$/ }).waitFor();
  });

  await t.step("DA13 a background task is shown in every view and reports its end", async () => {
    const held = Promise.withResolvers<void>();
    await page.route("**/api/admin/backups/*/verify", async (route) => {
      await held.promise;
      await route.continue();
    });
    await choose(/^More about backup-/, "Verify");
    await page.locator(".tasks", { hasText: "Verifying" }).waitFor();
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Schedule" }).click();
    await page.getByRole("heading", { name: "Schedule", exact: true }).waitFor();
    await page.locator(".tasks", { hasText: "Verifying" }).waitFor();
    held.resolve();
    await waitForText(/The archive is intact/);
    await page.locator(".tasks").waitFor({ state: "detached" });
    await page.unroute("**/api/admin/backups/*/verify");
    await button("Dismiss").last().click();
    await go("backups");
  });

  await t.step("a backup is downloaded", async () => {
    const download = page.waitForEvent("download");
    await choose(/^More about backup-/, "Download");
    assert.match((await download).suggestedFilename(), /\.tar\.zst$/);
  });

  await t.step("DA10 verifying a backup does not prepare a restore", async () => {
    await choose(/^More about backup-/, "Verify");
    await waitForText(/The archive is intact: \d+ documents in \d+ tables/);
    assert.equal(await staged().count(), 0);
  });

  await t.step(
    "DA10 scheduled backups are listed, verified, downloaded and restored",
    async () => {
      await waitForText(scheduled);
      await page.getByRole("cell", { name: /^scheduled-.*\.tar\.zst$/ }).waitFor();
      await button("Test target").click();
      await waitForText(`${scheduled} is reachable and writable.`);
      await choose(/^More about scheduled-/, "Verify");
      await waitForText(/The archive is intact/);
      await page.locator(".tasks").waitFor({ state: "detached" });
      await waitForText(/The archive is intact/);
      const download = page.waitForEvent("download");
      await choose(/^More about scheduled-/, "Download");
      assert.match((await download).suggestedFilename(), /^scheduled-.*\.tar\.zst$/);
      await choose(/^More about scheduled-/, "Restore everything…");
      await button("Verify and prepare restore").click();
      await staged().waitFor();
      await cancelRestore();
    },
  );

  await t.step(
    "DA10 files, replica and backup target are tested step by step, with the reason of a failure",
    async () => {
      await go("settings");
      await button("Test all locations").click();
      const shows = (place: string, text: string | RegExp) =>
        dialog.getByRole("region", { name: place }).getByText(text).waitFor();
      await shows("Files", "Remove");
      await shows("Replica", "Remove");
      await shows("Scheduled backups", "Reachable and writable");
      await page.route("**/api/admin/places/files/check", (route) =>
        route.fulfill({
          json: {
            place: "s3://files/",
            steps: [{ step: "list", error: null }, { step: "write", error: "denied" }],
          },
        }));
      await button("Test again").click();
      await shows("Files", "Cannot write: denied");
      await page.unrouteAll();
      await keys("Escape");
      await go("backups");
    },
  );

  await t.step("DA10 an unusable target shows the reason", async () => {
    await Deno.rename(scheduled, `${scheduled}-away`);
    await button("Test target").click();
    await waitForText(/does not exist/);
    await Deno.rename(`${scheduled}-away`, scheduled);
    await button("Dismiss").last().click();
  });

  await t.step("DA2 a restore is prepared and canceled", async () => {
    await choose(/^More about backup-/, "Restore everything…");
    await button("Verify and prepare restore").click();
    await staged().waitFor();
    await cancelRestore();
  });

  await t.step("DA24 one table of a prepared restore is copied into the running server", async () => {
    const notes = () => call("notes:list", {}, "query") as Promise<{ _id: string; text: string }[]>;
    for (
      const [others, isKept] of [["keep", true], ["delete all documents in the table first", false]] as const
    ) {
      const [lost] = await notes();
      assert.ok(lost);
      await asAdmin("_admin/data:remove", { ids: [lost._id] });
      const added = await call("notes:add", { text: "since" });
      await choose(/^More about backup-/, "Restore everything…");
      await button("Verify and prepare restore").click();
      await page.locator(".card", { has: staged() }).getByRole("button", { name: "Copy one table…" }).click();
      await dialog.getByLabel("Table").selectOption("notes");
      await dialog.getByLabel("Documents added since then").selectOption(others);
      await button("Copy table").click();
      await staged().waitFor({ state: "detached" });
      await waitForText(/copied to notes\. The prepared restore was canceled\./);
      const now = await notes();
      assert.deepEqual(now.find(({ _id }) => _id === lost._id), lost);
      assert.equal(now.some(({ _id }) => _id === added), isKept);
      if (isKept) await asAdmin("_admin/data:remove", { ids: [added] });
    }
  });

  await t.step("DA24 one table of a backup is copied without preparing a restore", async () => {
    const notes = () => call("notes:list", {}, "query") as Promise<{ _id: string; text: string }[]>;
    const copy = async (menu: RegExp) => {
      await choose(menu, "Copy one table…");
      await dialog.getByRole("heading", { name: /^Copy one table of .*\.tar\.zst$/ }).waitFor();
      await dialog.getByLabel("Table").selectOption("notes");
      await button("Copy table").click();
      await waitForText(/\d documents? copied to notes\.$/);
      await button("Dismiss").last().click();
      assert.equal(await staged().count(), 0);
    };
    const [lost] = await notes();
    assert.ok(lost);
    await asAdmin("_admin/data:remove", { ids: [lost._id] });
    const added = await call("notes:add", { text: "since" });
    await copy(/^More about backup-/);
    const now = await notes();
    assert.deepEqual(now.find(({ _id }) => _id === lost._id), lost);
    assert.ok(now.some(({ _id }) => _id === added));
    // The target was unusable when it was listed last.
    await go("overview");
    await go("backups");
    await copy(/^More about scheduled-/);
    assert.deepEqual(await notes(), now);
  });

  await t.step("a file that is not an archive is rejected with the reason", async () => {
    await page.locator("input[type=file]").setInputFiles({
      name: "bad.tar.zst",
      mimeType: "application/zstd",
      buffer: Buffer.from("no archive"),
    });
    await page.locator(".toast[data-tone=bad]").waitFor();
    await button("Dismiss").last().click();
    assert.equal(await staged().count(), 0);
  });

  await t.step("the replica is up to date and receives a snapshot", async () => {
    await waitForText("up to date");
    await waitForText(replica);
    await button("Upload a snapshot").click();
    await waitForText("Snapshot uploaded.");
  });

  await t.step(
    "DA24 one table is copied from a point in time, starting at the menu of the table",
    async () => {
      const id = await call("notes:add", { text: "copied back" });
      const { body: { accessToken } } = await server.post("/api/auth/admin/signin", admin);
      const fetched = async (path: string) => {
        const headers = { Authorization: `Bearer ${accessToken}` };
        return await (await fetch(`${server.url}/api/admin/${path}`, { headers })).json();
      };
      const { ts } = await fetched("stats");
      const replicated = await found(async () => {
        const status = await fetched("replication");
        const shipped = (status.generations ?? []).flatMap(({ ranges }: { ranges: { toTs: number }[] }) =>
          ranges.map(({ toTs }) => toTs)
        );
        return Math.max(...shipped) >= ts ? status : null;
      });
      // The newest state offered stays that of the note.
      let offered = replicated;
      await page.route("**/api/admin/replication", (route) => route.fulfill({ json: offered }));
      await page.route("**/api/admin/backups", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ json: { ...await response.json(), replication: offered } });
      });
      await asAdmin("_admin/data:remove", { ids: [id] });
      await go("data/notes");
      const isBack = async () =>
        (await call("notes:list", {}, "query")).some(({ _id }: { _id: string }) => _id === id);
      await choose("More about this table", "Restore an earlier state…");
      await dialog.getByRole("heading", { name: "Restore notes to an earlier state" }).waitFor();
      await dialog.getByLabel("Time", { exact: true }).waitFor();
      await checkDialog(dashboard, "restore a table");
      // A failed import leaves no restore that the next start would apply.
      await page.route("**/api/admin/import/**", (route) => route.abort());
      await button("Restore table").click();
      await page.locator(".toast[data-tone=bad]").waitFor();
      assert.equal((await fetched("restore")).restore, null);
      await button("Dismiss").last().click();
      await page.unroute("**/api/admin/import/**");
      // The dialog is not opened again by the address.
      assert.match(page.url(), /#\/backups$/);
      await button("Copy one table…").click();
      await dialog.getByRole("heading", { name: /^Copy one table as of / }).waitFor();
      await dialog.getByLabel("Table").selectOption("notes");
      await button("Copy table").click();
      await waitForText(/\d documents? copied to notes\.$/);
      assert.ok(await isBack());
      await asAdmin("_admin/data:remove", { ids: [id] });
      await button("Dismiss").last().click();
      await go("data/notes");
      await choose("More about this table", "Restore an earlier state…");
      await button("Restore table").click();
      await waitForText(/\d documents? copied to notes\.$/);
      assert.ok(await isBack());
      assert.equal((await fetched("restore")).restore, null);
      // The field has no milliseconds and omits seconds that are 0. The newest state is restored with both.
      const minute = Math.floor(Date.now() / 60_000) * 60_000;
      const toTime = minute + 123;
      const [{ ranges, ...generation }] = replicated.generations;
      const range = { ...ranges[0], fromTime: minute - 60_000, toTime };
      offered = { ...replicated, generations: [{ ...generation, ranges: [range] }] };
      const sent = page.waitForRequest("**/api/admin/restore/point-in-time/export/notes");
      await page.route("**/api/admin/restore/point-in-time/**", (route) => route.abort());
      await go("data/notes");
      await choose("More about this table", "Restore an earlier state…");
      await button("Restore table").click();
      assert.equal((await sent).postDataJSON().toTime, new Date(toTime).toISOString());
      await page.locator(".toast[data-tone=bad]").waitFor();
      await button("Dismiss").last().click();
      await page.unroute("**/api/admin/restore/point-in-time/**");
      await page.unroute("**/api/admin/replication");
      await page.unroute("**/api/admin/backups");
    },
  );

  await t.step(
    "DA24 copying from a prepared restore leaves the restore of another administrator in place",
    async () => {
      const { body: { accessToken } } = await server.post("/api/auth/admin/signin", admin);
      const headers = { Authorization: `Bearer ${accessToken}` };
      const restoreOf = async () =>
        (await (await fetch(`${server.url}/api/admin/restore`, { headers })).json()).restore;
      await choose(/^More about backup-/, "Restore everything…");
      await button("Verify and prepare restore").click();
      await staged().waitFor();
      const { stagedAt } = await restoreOf();
      // Another one is prepared while the table is imported.
      await page.route("**/api/admin/import/**", async (route) => {
        const answer = await server.post("/api/admin/restore/point-in-time", {}, { bearer: accessToken });
        assert.equal(answer.status, 200);
        await route.continue();
      });
      await page.locator(".card", { has: staged() }).getByRole("button", { name: "Copy one table…" }).click();
      await dialog.getByLabel("Table").selectOption("notes");
      await button("Copy table").click();
      await waitForText("The prepared restore was already canceled or replaced.");
      assert.notEqual((await restoreOf()).stagedAt, stagedAt);
      await page.unroute("**/api/admin/import/**");
      await cancelRestore();
    },
  );

  await t.step("PT4 a point in time is chosen with the slider, and its restore prepared", async () => {
    await call("notes:add", { text: "two" });
    await go("overview");
    await go("backups");
    const slider = page.getByRole("slider", { name: "Time to restore" });
    await slider.focus();
    await keys("Home");
    await waitForText(/before latest/);
    await button("Restore everything…").click();
    await button("Verify and prepare restore").click();
    await staged().waitFor();
    await waitForText(replica);
  });

  await t.step("DA3 a restart is offered if a supervisor exists", async () => {
    await button("Restart now").click();
    await dialog.getByRole("button", { name: "Restart", exact: true }).click();
    await waitForText("The server is restarting.");
    assert.equal(restarts.length, 1);
    await cancelRestore();
  });

  await t.step("DA12 the server's processes are listed, and it is shown as a single server", async () => {
    await go("servers");
    await page.getByRole("row", { name: /^writer all mutations 1/ }).waitFor();
    await waitForText("Single server");
  });

  await t.step(
    "DA12 the servers of a cluster are listed",
    async () => {
      const behind = { lagCommits: 2, lagMs: 300 };
      const server = { role: "follower", epoch: null, ts: 40, ...behind, sockets: 3, seenMs: 400 };
      const cluster = {
        enabled: true,
        id: "a",
        place: "db.example.com/app, schema syncline",
        role: "leader",
        epoch: 7,
        takeovers: 1,
        database: { status: "ok", forMs: 0 },
        servers: [
          { ...server, address: "10.0.0.1:3210", role: "leader", epoch: 7, ts: 42, lagCommits: 0, lagMs: 0 },
          { ...server, address: "10.0.0.2:3210" },
          { ...server, address: "10.0.0.3:3210", seenMs: 90_000 },
        ],
      };
      await page.route("**/api/admin/cluster", (route) => route.fulfill({ json: cluster }));
      await go("overview");
      await go("servers");
      await page.getByRole("row", { name: /^10\.0\.0\.1:3210 leader 42/ }).waitFor();
      await page.getByRole("row", { name: /^10\.0\.0\.2:3210 follower 40 2 commits, 300 ms 3/ }).waitFor();
      await page.unroute("**/api/admin/cluster");
      await page.route(
        "**/api/admin/cluster",
        (route) =>
          route.fulfill({ json: { ...cluster, database: { status: "away", forMs: 5_000 }, servers: null } }),
      );
      await go("overview");
      await go("servers");
      await waitForText("Unknown while the database is unreachable");
      await page.unroute("**/api/admin/cluster");
      await go("overview");
      await go("backups");
    },
  );

  await t.step("a follower shows its progress", async () => {
    const follower = {
      from: "s3://elsewhere/app",
      generation: "g",
      ts: 41,
      newestTs: 44,
      lagCommits: 3,
      lagMs: 60_000,
      errors: [],
    };
    await page.route(
      "**/api/admin/replication",
      (route) => route.fulfill({ json: { enabled: false, follower } }),
    );
    await go("overview");
    await go("backups");
    await waitForText("Following another server");
    await waitForText("1 min behind");
    await waitForText("3 of 44 commits pending");
    await page.unroute("**/api/admin/replication");
    await go("overview");
    await go("backups");
  });

  await t.step("DA11 a deploy key is created, shown once and revoked", async () => {
    await go("deploying");
    await go("deploying?make=deploy");
    await dialog.getByRole("heading", { name: "New deploy key" }).waitFor();
    await keys("Escape");
    await button("New deploy key").click();
    await checkDialog(dashboard, "new deploy key");
    assert.equal(await dialog.getByLabel("Functions").count(), 0);
    await page.getByLabel("Name").fill("CI");
    await button("Create key").click();
    await dialog.getByRole("heading", { name: "New deploy key" }).waitFor();
    const key = await page.getByRole("textbox", { name: "Deploy key" }).inputValue();
    assert.match(key, /^syncline_deploy_/);
    await checkDialog(dashboard, "created key");
    const withKey = await fetch(`${server.url}/api/admin/functions/versions`, {
      headers: { Authorization: `Bearer ${key}` },
    });
    assert.equal(withKey.status, 200);
    await withKey.body?.cancel();
    await button("Done").click();
    await page.getByRole("cell", { name: admin.email }).waitFor();
    assert.ok(!(await page.content()).includes(key));
    // Its replacement has the same permissions, and both work until the old one is revoked.
    await button("Replace CI").click();
    assert.equal(await dialog.getByLabel("Functions").count(), 0);
    assert.equal(await page.getByLabel("Days until it expires").inputValue(), "");
    await button("Create key").click();
    const shown = page.getByRole("textbox", { name: "Deploy key" });
    const other = await shown.inputValue();
    const statusOf = async (key: string) => {
      const headers = { Authorization: `Bearer ${key}` };
      const response = await fetch(`${server.url}/api/admin/functions/versions`, { headers });
      await response.body?.cancel();
      return response.status;
    };
    assert.deepEqual([await statusOf(key), await statusOf(other)], [200, 200]);
    // The revocation asks, and keeps the new key on the screen.
    await button("Revoke the old key…").click();
    await waitForText("Revoke the old key of CI?");
    await button("Cancel").click();
    assert.equal(await statusOf(key), 200);
    await button("Revoke the old key…").click();
    await button("Revoke key").click();
    await dialog.getByText("The old key is revoked. Only this one works.").waitFor();
    assert.equal(await shown.inputValue(), other);
    assert.deepEqual([await statusOf(key), await statusOf(other)], [401, 200]);
    assert.deepEqual(await dashboard.violations(), []);
    await button("Done").click();
    await button("Revoke CI").click();
    await waitForText('Revoke the deploy key "CI"?');
    await button("Revoke key").click();
    await waitForText("No keys");
    await go("audit");
    await page.getByRole("cell", { name: `${admin.email} created the deploy key CI` }).first().waitFor();
    await page.getByRole("cell", { name: `${admin.email} revoked the deploy key CI` }).first().waitFor();
    await go("deploying");
  });

  await t.step("AK1 an API key is created, shown once and revoked", async () => {
    await button("New API key").click();
    await page.getByLabel("Name").fill("Reports");
    await page.getByLabel("Functions").fill("tasks:*, POST /hook");
    await page.getByLabel("Days until it expires").fill("30");
    await button("Create key").click();
    const key = await page.getByRole("textbox", { name: "API key" }).inputValue();
    assert.match(key, /^syncline_key_/);
    await button("Done").click();
    await page.getByRole("cell", { name: "tasks:*, POST /hook" }).waitFor();
    assert.ok(!(await page.content()).includes(key));
    // The lifetime is part of what its replacement has too.
    await button("Replace Reports").click();
    assert.equal(await page.getByLabel("Days until it expires").inputValue(), "30");
    await keys("Escape");
    await dialog.waitFor({ state: "detached" });
    await button("Revoke Reports").click();
    await waitForText('Revoke the API key "Reports"?');
    await button("Revoke key").click();
    await waitForText("No keys");
    // The button that opened the dialog is gone.
    await page.locator("#view:focus").waitFor();
  });

  await t.step("DA11 a variable is set, shown on request and deleted", async () => {
    await waitForText("No environment variables");
    await button("New variable").click();
    await checkDialog(dashboard, "new variable");
    await page.getByLabel("Name").fill("MAIL_KEY");
    await page.getByLabel("Value", { exact: true }).fill("<b>secret</b>");
    await keys("Escape");
    await waitForText("Discard unsaved changes?");
    await button("Keep editing").click();
    await button("Save variable").click();
    await waitForText("MAIL_KEY saved");
    await page.getByRole("cell", { name: "••••••••" }).waitFor();
    await choose("More about MAIL_KEY", "Show value");
    await page.getByRole("cell", { name: "<b>secret</b>" }).waitFor();
    await choose("More about MAIL_KEY", "Delete…");
    await button("Delete variable").click();
    await waitForText("No environment variables");
  });

  await t.step("DA11 a migration is run after a dry run and shows its progress", async () => {
    await button("Run a migration…").click();
    await checkDialog(dashboard, "migration");
    await page.getByLabel("Internal mutation").selectOption("notes:stamp");
    await page.getByLabel("Table").selectOption("notes");
    await button("Dry run").click();
    await waitForText(/Dry run on \d+ documents: \d+ would change. Nothing was stored./);
    assert.ok(
      (await call("notes:list", {}, "query")).every(({ stamped }: { stamped?: boolean }) => !stamped),
    );
    await button("Run").click();
    await page.getByRole("cell", { name: /^done \d+ documents/ }).waitFor();
    const notes = await call("notes:list", {}, "query");
    assert.ok(notes.every(({ stamped }: { stamped?: boolean }) => stamped));
    const id = notes[0]._id;
    await until(async () =>
      (await asAdmin("_admin/data:history", { id }, "action")).changes
        .some(({ run }: { run: { function: string } | null }) =>
          run?.function === "_system/deploy:migrationStep"
        )
    );
    await go(`data/notes/${id}`);
    await button("History").click();
    await waitForText(/changed .* by a migration/);
    await go("audit");
    const entry = page.getByRole("row", { name: /started the migration notes:stamp of notes/ }).first();
    await entry.getByText("Details").click();
    await entry.getByText("From the first document no").waitFor();
    assert.doesNotMatch(await entry.innerText(), /fromStart|path/);
    await go("deploying");
  });

  await t.step("by keyboard only: a variable is set", async () => {
    await page.getByRole("button", { name: "New variable" }).focus();
    await keys("Enter");
    await page.locator("input[name=name]:focus").waitFor();
    await page.keyboard.type("REGION");
    await keys("Tab");
    await page.locator("input[name=value]:focus").waitFor();
    await page.keyboard.type("eu");
    await keys("Enter");
    await page.getByRole("cell", { name: "REGION", exact: true }).waitFor();
  });

  await t.step("AD15 a viewer sees issues, files, jobs and backups, and cannot act on them", async () => {
    await call("notes:later");
    const other = await dashboard.openAs({ email: "vic@example.com", role: "viewer" }, "overview");
    const open = (view: string) => other.goto(`${server.url}/_/#/${view}`);
    const control = (name: string | RegExp) => other.getByRole("button", { name, exact: true }).first();
    await checkRefused(control("Acknowledge"), "editors and owners");
    await checkRefused(control("Mute"), "editors and owners");
    await open("files");
    await checkRefused(control("Upload…"), "editors and owners");
    await open("schedule");
    await other.getByRole("heading", { name: "Scheduled functions" }).waitFor();
    for (const name of ["Run now", "Cancel"]) await checkRefused(control(name), "editors and owners");
    await open("backups");
    await checkRefused(control("Back up now"), "editors and owners");
    await checkRefused(control("Restore from a file…"), "owners");
    await checkRefused(control("Copy one table…"), "owners");
    await checkRefused(control("Restore everything…"), "owners");
    await checkRefused(control("Upload a snapshot"), "editors and owners");
    await control(/^More about backup-/).click();
    for (
      const [name, roles] of [
        ["Verify", "editors and owners"],
        ["Copy one table…", "owners"],
        ["Restore everything…", "owners"],
        ["Delete", "owners"],
      ] as const
    ) {
      await checkRefused(other.getByRole("menuitem", { name }), roles);
    }
    await other.context().close();
  });

  await t.step("by keyboard only: a backup is deleted", async () => {
    await go("backups");
    await page.getByRole("button", { name: /^More about backup-/ }).focus();
    await keys("Enter");
    // A menu handles keys once one of its items has focus.
    await page.locator("[role=menuitem]:focus").first().waitFor();
    await keys("End");
    await page.locator("[role=menuitem]:focus", { hasText: "Delete" }).waitFor();
    await keys("Enter");
    await dialog.getByRole("button", { name: "Delete backup" }).focus();
    await keys("Enter");
    await waitForText("No backups yet");
  });

  await t.step("by keyboard only: the palette opens a table", async () => {
    await keys("Control+k");
    await page.getByPlaceholder("Go to a table").waitFor();
    await page.keyboard.type("table notes");
    await page.getByRole("option", { name: "notes", exact: true, selected: true }).waitFor();
    await keys("Enter");
    await page.getByRole("grid").waitFor();
  });

  await t.step(
    "DA7 axe finds no accessibility violations",
    async () => {
      await asAdmin(
        "_admin/apiKeys:create",
        {
          name: "Nightly reports of the warehouse",
          functions: ["notes:list", "notes:add"],
          expiresAt: Date.now() + 86_400_000,
        },
        "action",
      );
      await checkAppearances(dashboard, ["overview", "files", "schedule", "backups", "deploying", "servers"]);
    },
  );
});

testDashboard(
  "the dashboard of a server without a supervisor",
  { functions },
  async (dashboard, t) => {
    const { page, server, go, waitForText, button, choose, keys, call, asAdmin } = dashboard;
    await t.step("DA3 no restart is offered, and the alternative is explained", async () => {
      await go("backups");
      await waitForText("--replicate-to");
      await button("Back up now").click();
      await button("Back up").click();
      await choose(/^More about backup-/, "Restore everything…");
      await button("Verify and prepare restore").click();
      await waitForText("runs without a supervisor");
      assert.equal(await button("Restart now").count(), 0);
      await button("Cancel the restore").click();
      await waitForText("Restore canceled.");
    });

    await t.step(
      "DA24 without replication the menu of a table offers the backups as earlier states",
      async () => {
        const id = await call("notes:add", { text: "since the backup" });
        await go("data/notes");
        await choose("More about this table", "Restore an earlier state…");
        const states = page.getByLabel("Earlier state").locator("option");
        assert.match(await states.first().innerText(), /^Backup of .*, backup-.*\.tar\.zst$/);
        await page.getByLabel("Documents added since then").selectOption("replace");
        await button("Restore table").click();
        await waitForText("0 documents copied to notes.");
        assert.deepEqual(await call("notes:list", {}, "query"), [], id);
        await choose(/^More about backup-/, "Delete");
        await button("Delete backup").click();
        await waitForText("No backups yet");
        await go("data/notes");
        await choose("More about this table", "Restore an earlier state…");
        await waitForText("No earlier state is stored");
        await keys("Escape");
        await button("Back up now").click();
        await button("Back up").click();
        await button(/^More about backup-/).waitFor();
      },
    );

    await t.step("SY30 without replication the history has the audit log and a backup", async () => {
      const id = await call("notes:add", { text: "right" });
      await asAdmin("_admin/data:patch", { id, set: { text: "wrong" } });
      await go(`data/notes/${id}`);
      await button("History").click();
      await waitForText("This server does not replicate");
      await waitForText(`${admin.email} changed notes/${id}: text`);
      await waitForText("A backup from before these changes is of");
      await page.getByRole("link", { name: "Copy notes from a backup or a point in time" }).waitFor();
      await checkDialog(dashboard, "document history without replication");
      await keys("Escape", "Escape");
      await asAdmin("_admin/data:remove", { ids: [id] });
      // The palette finds the deleted document.
      const palette = page.getByPlaceholder("Go to a table");
      await keys("Control+k");
      await palette.fill(id);
      await page.getByRole("option", {
        name: `${id} of notes does not exist: see its history`,
        selected: true,
      })
        .waitFor();
      await keys("Enter");
      await waitForText("Document not found");
      await button("History").click();
      await waitForText(`${admin.email} deleted notes/${id}`);
      await keys("Escape", "Escape", "Control+k");
      await palette.fill(id);
      await page.getByRole("option", { name: `Entries of the audit log with ${id}` }).click();
      await page.getByRole("row", { name: `deleted notes/${id}` }).waitFor();
      await page.locator("#view:focus").waitFor();
    });

    await t.step("DA13 an import interrupted by a server stop is shown until it is dismissed", async () => {
      // A page that refreshes would be refused in the meantime.
      await page.goto("about:blank");
      await server.restart(async () => {
        await leaveImport(server.dataDir);
        return { replication: { ...replication, to: { kind: "folder", path: join(place, "later") } } };
      });
      await page.goto(`${server.url}/_/`);
      await page.getByLabel("Email address").fill(admin.email);
      await page.getByLabel("Password").fill(admin.password);
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      const broken = page.getByRole("list", { name: "Failed tasks" });
      await broken.getByText("Importing into notes was interrupted when the server stopped.").waitFor();
      await broken.getByText("The first 512 rows were imported.").waitFor();
      assert.deepEqual(await dashboard.violations(), []);
      await broken.getByRole("link").click();
      await page.getByRole("grid").waitFor();
      await broken.getByRole("button", { name: "Dismiss: Importing into notes" }).click();
      await broken.waitFor({ state: "detached" });
      await page.reload();
      await page.getByRole("grid").waitFor();
      await asAdmin("_admin/work:list", {}, "query").then((works) =>
        assert.deepEqual(works.filter(({ state }: { state: string }) => state !== "done"), [])
      );
    });

    await t.step("SY30 the state before the start of replication is shown and restored", async () => {
      const [{ _id: edited, text }, { _id: deleted }] = await call("notes:list", {}, "query");
      await asAdmin("_admin/data:patch", { id: edited, set: { text: "wrong" } });
      await asAdmin("_admin/data:remove", { ids: [deleted] });
      for (const id of [edited, deleted]) {
        await until(async () => {
          const { changes, before } = await asAdmin("_admin/data:history", { id }, "action");
          return changes.length === 1 && before !== null;
        });
      }
      await go(`data/notes/${edited}`);
      await button("History").click();
      const change = page.getByRole("region", { name: /^Commit/ });
      await change.getByRole("cell", { name: JSON.stringify(text) }).waitFor();
      await change.getByRole("cell", { name: '"wrong"' }).waitFor();
      const before = page.getByRole("region", { name: "State before these changes" });
      await before.getByText("in the snapshot of").waitFor();
      await checkDialog(dashboard, "document history with a snapshot");
      await before.getByRole("button", { name: "Restore this state" }).click();
      await until(async () =>
        (await asAdmin("_admin/data:get", { id: edited }, "query")).document.text === text
      );
      await go(`data/notes/${deleted}`);
      await button("History").click();
      await before.getByRole("button", { name: "Restore this state" }).click();
      await until(async () => await asAdmin("_admin/data:get", { id: deleted }, "query") !== null);
      await keys("Escape");
    });
  },
);
