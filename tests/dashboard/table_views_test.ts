/** Columns, saved views and references of the data view, and the query console, in a browser. */
import assert from "node:assert/strict";
import { checkAppearances, testDashboard, until } from "./support/dashboard_page.ts";

const functions = {
  "schema.ts": `import { defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";
export default defineSchema({
  orders: defineTable({
    title: z.string(), customer: id("customers"), state: z.enum(["open", "paid"]), total: z.number(),
    due: z.iso.date().optional(), note: z.string().optional(), place: z.string().optional(),
  }).index("by_customer", ["customer"]),
  customers: defineTable({ name: z.string() }),
});`,
  "orders.ts": `import { untypedQuery } from "syncline/server";
export const open = untypedQuery({ handler: async (ctx) =>
  (await ctx.db.query("orders").filter((q) => q.eq(q.field("state"), "open")).collect()).length });`,
};

testDashboard("tables", { functions }, async (dashboard, t) => {
  const { page, context, server, go, waitForText, button, choose, asAdmin, resize } = dashboard;
  const cell = (text: string) => page.getByRole("gridcell", { name: text, exact: true });
  const header = (name: string) => page.getByRole("columnheader", { name, exact: true });
  const { ids: [ada, grace] } = await asAdmin("_admin/data:insert", {
    table: "customers",
    documents: [{ name: "Ada" }, { name: "Grace" }],
  });
  await asAdmin("_admin/data:insert", {
    table: "orders",
    documents: [
      { title: "Lamp", customer: ada, state: "open", total: 5, due: "2026-12-24" },
      { title: "Desk", customer: grace, state: "paid", total: 70, note: "oak", place: "hall" },
      { title: "Chair", customer: grace, state: "open", total: 40 },
    ],
  });

  await t.step("DA20 a column is hidden and resized, and stays so for this administrator", async () => {
    await go("data/orders");
    await cell("Lamp").waitFor();
    await button("Columns").click();
    await page.getByRole("checkbox", { name: "note" }).uncheck();
    await page.getByLabel("Width of title in pixels").fill("304");
    await page.getByLabel("Columns that stay while scrolling sideways").selectOption("2");
    await button("Done").click();
    await header("note").waitFor({ state: "detached" });
    // On a slow machine, the changes are stored one by one.
    await until(async () => {
      const [stored] = await asAdmin("_admin/views:list", { table: "orders" }, "query");
      return stored?.frozen === 2 && stored.widths.title === 304;
    });
    await page.reload();
    await header("title").waitFor();
    assert.equal(await header("note").count(), 0);
    assert.equal((await header("title").boundingBox())?.width, 304);
  });

  await t.step("DA20 the edge of a column's name is dragged", async () => {
    const box = await header("title").boundingBox();
    assert.ok(box);
    await page.mouse.move(box.x + box.width - 3, box.y + 10);
    await page.mouse.down();
    await page.mouse.move(box.x + 150, box.y + 10, { steps: 5 });
    await page.mouse.up();
    await until(async () => (await header("title").boundingBox())?.width === 150);
    await until(async () =>
      (await asAdmin("_admin/views:list", { table: "orders" }, "query"))[0]?.widths.title === 150
    );
  });

  await t.step("DA20 the first columns stay while scrolling sideways", async () => {
    await resize(1000);
    const left = async () => (await cell("Lamp").boundingBox())?.x ?? 0;
    const before = await left();
    await page.getByRole("grid").evaluate((grid) => grid.scrollLeft = 300);
    // The columns are sticky from the scroll event on, a frame later.
    await page.locator(".grid[data-sideways]").waitFor();
    await until(async () => ((await cell("open").first().boundingBox())?.x ?? 0) < before + 250);
    assert.equal(await left(), before);
    await resize(1280);
  });

  await t.step("DA20 on a phone only the check boxes stay while scrolling sideways", async () => {
    await resize(390);
    const grid = page.getByRole("grid");
    const scrollTo = (left: number) => grid.evaluate((grid, left) => grid.scrollLeft = left, left);
    const check = page.getByLabel("Select this document").first();
    const lefts = async () =>
      await Promise.all([check, cell("Lamp")].map(async (part) => (await part.boundingBox())?.x ?? 0));
    await scrollTo(0);
    const [checkBefore = 0, before = 0] = await lefts();
    await scrollTo(300);
    await page.locator(".grid[data-sideways]").waitFor();
    const [checkAfter, after] = await lefts();
    assert.equal(checkAfter, checkBefore);
    assert.equal(after, before - 300);
    await scrollTo(0);
    await resize(1280);
  });

  await t.step("numbers are aligned to the right", async () => {
    assert.equal(await cell("70").evaluate((element) => getComputedStyle(element).textAlign), "right");
  });

  await t.step("DA21 a reference is shown by its label and opened above the table", async () => {
    await page.getByRole("link", { name: "Grace" }).first().click();
    await page.getByRole("heading", { name: "Document in customers" }).waitFor();
    assert.match(page.url(), new RegExp(`data/orders/${grace}`));
    await button("Close").click();
    await asAdmin("_admin/data:patch", { id: grace, set: { name: "Grace Hopper" } });
    await page.getByRole("link", { name: "Grace Hopper" }).first().waitFor();
  });

  await t.step("DA21 a filter by a reference finds the document by its label", async () => {
    await page.getByLabel("Field to filter by").selectOption("customer");
    const value = page.getByLabel("Filter value");
    await value.fill("Grace Hopper");
    await cell("Lamp").waitFor({ state: "detached" });
    await cell("Desk").waitFor();
    assert.match(page.url(), new RegExp(`value=${grace}`));
    assert.equal(await page.getByText("No index supports this filter").count(), 0);
    await page.reload();
    await until(async () => await value.inputValue() === "Grace Hopper");
  });

  await t.step("DA20 a view is saved with its filter, applied in another browser, and removed", async () => {
    await choose("Views", "Save or remove views…");
    await page.getByLabel("Name").fill("Of Grace");
    await button("Save view").click();
    await waitForText('View "Of Grace" saved.');
    await go("data/customers");
    const other = await context.newPage();
    await other.goto(`${server.url}/_/#/data/orders`);
    await other.getByRole("gridcell", { name: "Lamp", exact: true }).waitFor();
    await other.getByRole("button", { name: "Views" }).click();
    await other.getByRole("menuitem", { name: "Of Grace" }).click();
    await other.getByRole("gridcell", { name: "Lamp", exact: true }).waitFor({ state: "detached" });
    await other.getByRole("gridcell", { name: "Desk", exact: true }).waitFor();
    await other.getByRole("button", { name: "Views" }).click();
    await other.getByRole("menuitem", { name: "Save or remove views…" }).click();
    await other.getByRole("button", { name: "Remove Of Grace" }).click();
    await other.getByText('View "Of Grace" removed.').waitFor();
    await other.close();
  });

  await t.step("a date is chosen with a picker", async () => {
    await go("data/orders?field=due&op=gte&value=");
    await page.locator("input[type=date]").fill("2026-12-01");
    await cell("Lamp").waitFor();
    await cell("Desk").waitFor({ state: "detached" });
  });

  await t.step("DA22 the query console runs a query and advises on an index", async () => {
    await go("data/orders");
    await page.getByRole("link", { name: "Query console" }).click();
    const editor = page.getByLabel("Query function");
    assert.match(await editor.inputValue(), /query\("orders"\)/);
    await editor.fill(
      `async (ctx) => {
  console.log("looking");
  return await ctx.db.query("orders").filter((q) => q.eq(q.field("state"), "paid")).collect();
}`,
    );
    await page.keyboard.press("Control+Enter");
    await page.locator("pre", { hasText: '"title": "Desk"' }).waitFor();
    await waitForText("It read 3 documents and returned 1.");
    await waitForText('.index("by_state", ["state"]) in orders');
    await waitForText("3 documents read");
    await page.locator("pre", { hasText: "[INFO] looking" }).waitFor();
    assert.deepEqual(await dashboard.violations(), []);
    await editor.fill("async (ctx) => {\n  return (;\n}");
    await button("Run query").click();
    await page.locator("pre", { hasText: "console.ts:2:" }).waitFor();
    await page.getByRole("link", { name: "Schema map" }).click();
    await page.getByRole("link", { name: "Query console" }).click();
    assert.match(await editor.inputValue(), /return \(;/, "the text is kept");
  });

  await t.step("DA20 a query is saved under a name, opened after a reload, and removed", async () => {
    const editor = page.getByLabel("Query function");
    await editor.fill("async () => 6 * 7");
    await choose("Queries", "Save or remove queries…");
    await page.getByLabel("Name").fill("Answer");
    await button("Save query").click();
    await waitForText('Query "Answer" saved.');
    await page.reload();
    assert.match(await editor.inputValue(), /query\("orders"\)/);
    await choose("Queries", "Answer");
    assert.equal(await editor.inputValue(), "async () => 6 * 7");
    await editor.fill("async () => 1");
    await choose("Queries", "Answer");
    assert.equal(await editor.inputValue(), "async () => 6 * 7");
    await button("Undo").click();
    assert.equal(await editor.inputValue(), "async () => 1");
    await choose("Queries", "Save or remove queries…");
    assert.deepEqual(await dashboard.violations(), []);
    await button("Remove Answer").click();
    await waitForText('Query "Answer" removed.');
    await page.keyboard.press("Escape");
    await button("Queries").click();
    await page.getByRole("menuitem").first().waitFor();
    assert.deepEqual(await page.getByRole("menuitem").allTextContents(), ["Save or remove queries…"]);
    await page.keyboard.press("Escape");
  });

  await t.step("DA7 axe finds no accessibility violations in tables, columns and views", async () => {
    await checkAppearances(dashboard, ["data/orders?field=customer&op=eq&value=", "data?show=console"]);
    await go("data/orders");
    await button("Columns").click();
    assert.deepEqual(await dashboard.violations(), []);
    await button("Done").click();
    await choose("Views", "Save or remove views…");
    assert.deepEqual(await dashboard.violations(), []);
    await page.keyboard.press("Escape");
  });

  await t.step("DA21 a reference to a missing document is crossed out", async () => {
    await go("data/orders");
    const missing = page.locator("[data-missing=true]");
    await page.getByRole("link", { name: "Ada" }).waitFor();
    assert.equal(await missing.count(), 0);
    await asAdmin("_admin/data:remove", { ids: [ada] });
    await missing.filter({ hasText: ada }).waitFor();
    assert.equal(await missing.count(), 1);
  });
});
