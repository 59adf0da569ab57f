/** The dashboard in a browser, against a whole server: what a person does there. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { startTestServer } from "../auth/server/test_server.ts";
import { launchChromium } from "../support/chromium.ts";

const admin = { email: "ada@example.com", password: "correct horse battery" };

const functions = {
  "schema.ts": `import { defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";
export default defineSchema({
  orders: defineTable({
    customer: id("_users").optional(), title: z.string(), state: z.enum(["open", "paid"]), total: z.number(),
  }).index("by_state", ["state"]).searchIndex("search_title", { searchField: "title" }),
});`,
  "orders.ts": `import { internalMutation, mutation, query } from "syncline/server";
import { z } from "zod";
export const list = query({ args: { state: z.enum(["open", "paid"]) }, handler: (ctx, { state }) =>
  ctx.db.query("orders").withIndex("by_state", (q) => q.eq("state", state)).collect() });
export const add = mutation({ args: { title: z.string() }, handler: async (ctx, { title }) => {
  ctx.log.info("adding", { title });
  return await ctx.db.insert("orders", { title, state: "open", total: 1 });
} });
export const later = mutation({ args: {}, handler: async (ctx) =>
  await ctx.scheduler.runAfter(3_600_000, "orders:tidy", {}) });
export const tidy = internalMutation({ args: {}, handler: () => null });`,
};

Deno.test({
  name: "a person looks after a server with the dashboard",
  // The browser's driver keeps timers and pipes of its own.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn(t) {
    await using server = await startTestServer({
      functions,
      config: { executionLog: { keepMs: 86_400_000, bytesMax: 100_000_000 } },
    });
    const browser = await launchChromium();
    try {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
      const page = await context.newPage();
      const faults: string[] = [];
      page.on("pageerror", (error) => faults.push(error.message));
      page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
      const go = async (view: string) => {
        await page.goto(`${server.url}/_/#/${view}`);
        await page.locator("#view").waitFor();
      };
      const told = (text: string) => page.getByText(text, { exact: false }).first().waitFor();
      const button = (name: string) => page.getByRole("button", { name, exact: true });
      const call = (path: string, args: object) => server.post("/api/mutation", { path, args });

      await t.step(
        "the first administrator is set up with the printed link, whose token leaves the address",
        async () => {
          const [, token] = /svc_setup_token=([^&]+)/.exec(server.setupLink ?? "") ?? [];
          await page.goto(`${server.url}/_/#svc_setup_token=${token}`);
          await told("Create the first administrator");
          assert.ok(!page.url().includes("svc_setup_token"));
          await page.getByLabel("Email address").fill(admin.email);
          await page.getByLabel("Password").fill(admin.password);
          await button("Create administrator").click();
          await told("Needs attention");
          await told("There is no backup.");
        },
      );

      await t.step(
        "DA1 a document is made, seen, changed and deleted, and the deletion taken back",
        async () => {
          await go("data/orders");
          await button("New document").click();
          const editor = page.getByRole("textbox", { name: "Fields of orders" });
          await editor.waitFor();
          await editor.fill('{ "title": "Lamp", "state": "open" }');
          await button("Save").click();
          await told("total:");
          await editor.fill('{ "title": "Lamp", "state": "open", "total": 20 }');
          await button("Save").click();
          await told("The document is stored.");
          await editor.fill('{ "title": "Lamp", "state": "paid", "total": 21 }');
          await button("Save").click();
          await told("The document is saved.");
          await button("Close").click();
          await page.getByRole("gridcell", { name: "paid" }).waitFor();
          await page.getByRole("gridcell", { name: "Lamp" }).click();
          await button("Delete").click();
          await told("The document is deleted.");
          await told("No documents");
          await button("Undo").click();
          await page.getByRole("gridcell", { name: "Lamp" }).waitFor();
        },
      );

      await t.step("what others write appears at once, and filters say what they cost", async () => {
        await call("orders:add", { title: "Chair" });
        await page.getByRole("gridcell", { name: "Chair" }).waitFor();
        await page.getByLabel("Field to filter by").selectOption("state");
        await page.getByLabel("Value to compare with").fill("paid");
        await page.getByRole("gridcell", { name: "Chair" }).waitFor({ state: "detached" });
        assert.equal(await page.getByText("No index serves this filter").count(), 0);
        await page.getByLabel("Field to filter by").selectOption("total");
        await page.getByLabel("Value to compare with").fill("1");
        await told("No index serves this filter");
        await page.getByRole("gridcell", { name: "Chair" }).waitFor();
        await page.getByLabel("Search title").fill("lamp");
        await page.getByLabel("Field to filter by").selectOption("");
        await page.getByRole("gridcell", { name: "Lamp" }).waitFor();
      });

      await t.step(
        "by keyboard alone: the grid is walked through, a document opened, and the sheet closed",
        async () => {
          await go("data/orders");
          const grid = page.getByRole("grid");
          await grid.waitFor();
          await grid.focus();
          await page.keyboard.press("ArrowDown");
          await page.keyboard.press("Enter");
          await page.getByRole("dialog").waitFor();
          await page.keyboard.press("Escape");
          await page.getByRole("dialog").waitFor({ state: "detached" });
          await grid.focus();
          await page.keyboard.press("Space");
          await button("Delete 1").waitFor();
        },
      );

      await t.step("two who edit one document: the second is told", async () => {
        await go("data/orders");
        await page.getByRole("gridcell", { name: "Chair" }).click();
        const editor = page.getByRole("textbox", { name: "Fields of orders" });
        await editor.waitFor();
        const other = await context.newPage();
        await other.goto(page.url());
        const otherEditor = other.getByRole("textbox", { name: "Fields of orders" });
        await otherEditor.waitFor();
        await otherEditor.fill('{ "title": "Chair", "state": "open", "total": 2 }');
        await other.getByRole("button", { name: "Save", exact: true }).click();
        await told("Somebody has changed this document.");
        await button("Save").click();
        await page.getByRole("alert").waitFor();
        await other.close();
        await button("Show it as it is now").click();
        await page.waitForFunction(() => document.querySelector(".cm-content")?.textContent?.includes("2"));
        await button("Close").click();
      });

      await t.step(
        "a function is run as nobody, with result and log lines, and a query watched live",
        async () => {
          await go("functions/orders%3Aadd");
          await page.getByRole("textbox", { name: "Arguments" }).fill('{ "title": "<b>Sofa</b>" }');
          await button("Run").click();
          await told("success");
          await told("[INFO] adding title=");
          await go("functions/orders%3Alist");
          await page.getByRole("textbox", { name: "Arguments" }).fill('{ "state": "open" }');
          await button("Watch live").click();
          await told("<b>Sofa</b>");
          await call("orders:add", { title: "Rug" });
          await told("Rug");
          assert.equal(await page.locator("b", { hasText: "Sofa" }).count(), 0, "markup was rendered");
        },
      );

      await t.step(
        "what ran is found in the log, with its lines, and comes in while it is watched",
        async () => {
          await go("logs?text=Sofa");
          await button("orders:add").first().click();
          await told("[INFO] adding title=");
          await button("Close").click();
          await page.getByLabel("Text in a log line or an error").fill("Stool");
          await told("No run is found");
          await call("orders:add", { title: "Stool" });
          await button("orders:add").first().waitFor();
          await button("Remove the filter text").click();
          await button("orders:list").first().waitFor();
        },
      );

      await t.step("a user is found, renamed, signed out everywhere and deleted", async () => {
        await server.post("/api/auth/signup", { email: "ben@example.com", password: "a good password" });
        await go("users");
        await page.getByRole("link", { name: "ben@example.com" }).click();
        await page.getByLabel("Name").fill("Ben");
        await button("Save").click();
        await told("The user is saved.");
        await server.post("/api/auth/signin", { email: "ben@example.com", password: "a good password" });
        await page.getByRole("dialog").getByRole("button", { name: "End", exact: true }).nth(1).waitFor();
        await page.getByRole("dialog").getByRole("button", { name: "End", exact: true }).first().click();
        await told("The session has ended.");
        await button("End all").click();
        await told("Not signed in anywhere");
        await button("More about this user").click();
        await page.getByRole("menuitem", { name: "Delete user" }).click();
        await page.getByRole("dialog").last().getByRole("button", { name: "Delete user" }).click();
        await told("The user is deleted.");
        await told("No one has signed up yet");
      });

      await t.step("a scheduled function is seen and canceled", async () => {
        await call("orders:later", {});
        await go("schedule?state=pending");
        await page.getByRole("cell", { name: "orders:tidy" }).waitFor();
        await button("Cancel").click();
        await told("Nothing is scheduled");
      });

      await t.step("DA2 a backup is made and staged, and the staged restore canceled", async () => {
        await go("backups");
        await button("Back up now").click();
        await button("Back up").click();
        await told("The backup is made.");
        await page.getByRole("button", { name: /^More about .*\.tar\.zst$/ }).click();
        await page.getByRole("menuitem", { name: "Restore…" }).click();
        await button("Check and stage").click();
        await told("A restore is staged");
        await button("Cancel the restore").click();
        await told("Nothing is staged any more.");
      });

      await t.step("the palette goes anywhere by a few letters", async () => {
        await page.keyboard.press("Control+k");
        await page.getByPlaceholder("Go to a table").fill("orders:add");
        await page.keyboard.press("Enter");
        await page.waitForFunction(() => location.hash.includes("functions"));
      });

      await t.step(
        "nothing that a person with a screen reader or a keyboard would stumble over",
        async () => {
          for (const theme of ["light", "dark"] as const) {
            await page.emulateMedia({ colorScheme: theme });
            for (
              const view of [
                "overview",
                "data/orders",
                "functions/orders%3Aadd",
                "logs",
                "users",
                "files",
                "schedule",
                "backups",
                "administrators",
              ]
            ) {
              await go(view);
              assert.deepEqual(await violations(page), [], `${view}, ${theme}`);
            }
          }
        },
      );

      await t.step("an administrator who is removed is shown the door at once", async () => {
        const answer = await server.post("/api/auth/admin/signin", admin);
        const bearer = answer.body.accessToken;
        const action = (path: string, args: object) => server.post("/api/action", { path, args }, { bearer });
        const mutation = (path: string, args: object) =>
          server.post("/api/mutation", { path, args }, { bearer });
        await action("_admin/administrators:create", {
          email: "eve@example.com",
          password: "another password",
        });
        await mutation("_admin/administrators:remove", { adminId: answer.body.adminId });
        await told("Sign in to Syncline");
        await told("Your session has ended.");
      });

      // The browser tells of refused requests as errors; the page itself must have made none.
      assert.deepEqual(faults.filter((fault) => !/status of 4\d\d/.test(fault)), []);
    } finally {
      await browser.close();
    }
  },
});

/** What axe finds, a line each. */
async function violations(page: Page): Promise<string[]> {
  const axe = await Deno.readTextFile(new URL(import.meta.resolve("axe-core/axe.min.js")));
  await page.evaluate(axe);
  return await page.evaluate(async () => {
    const { axe } = globalThis as never as {
      axe: {
        run(): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }>;
      };
    };
    const { violations } = await axe.run();
    return violations.map(({ id, nodes }) =>
      `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(" | ")}`.slice(
        0,
        600,
      )
    );
  });
}
