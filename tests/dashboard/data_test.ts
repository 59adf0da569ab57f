/** The dashboard's data view in a browser. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import {
  checkAppearances,
  checkDialog,
  checkRefused,
  testDashboard,
  until,
} from "./support/dashboard_page.ts";

const WIDE = 500;
const MARKUP = "<img src=x onerror=\"document.title='run'\"><b>bold</b>";

const functions = {
  "schema.ts": `import { defineSchema, defineTable, id } from "syncline/server";
import { z } from "zod";
const wide = Object.fromEntries(Array.from({ length: ${WIDE} }, (_, at) => ["field" + at, z.number().optional()]));
export default defineSchema({
  orders: defineTable({
    customer: id("customers").optional(), title: z.string(), state: z.enum(["open", "paid"]), total: z.number(),
  }).index("by_state", ["state"]).searchIndex("search_title", { searchField: "title" }),
  customers: defineTable({
    name: z.string(), parent: id("customers").optional(), tags: z.array(z.string()).optional(),
  }),
  wide: defineTable(wide),
  large: defineTable({ name: z.string() }),
});`,
  "orders.ts": `import { untypedMutation } from "syncline/server";
import { z } from "zod";
export const add = untypedMutation({ args: { title: z.string() }, handler: async (ctx, { title }) =>
  await ctx.db.insert("orders", { title, state: "open", total: 1 }) });`,
};

testDashboard("documents", { functions }, async (dashboard, t) => {
  const { page, context, server, go, waitForText, button, choose, keys, call, asAdmin } = dashboard;
  /** The editor is empty for a moment before it shows the document. */
  const editor = (of = page) =>
    of.getByRole("textbox", { name: "Fields of orders" }).filter({ hasText: /\S/ });
  const fillEditor = (text: string) => dashboard.fillEditor(editor(), text);
  /** Waits until the open document has no unsaved edits. */
  const saved = () => page.locator(".sheet .button[data-tone=accent]:disabled:not([aria-busy])").waitFor();
  /** Waits until a button has the focus. */
  const waitForFocus = (name: string) => button(name).and(page.locator(":focus")).waitFor();
  const cell = (text: string) => page.getByRole("gridcell", { name: text, exact: true });
  const grid = page.getByRole("grid");
  /** Clicks Undo of the newest toast with a text. Toasts of earlier steps may have the same text. */
  const undo = (toast: string) =>
    page.getByRole("status").locator(".toast", { hasText: toast }).getByRole("button", { name: "Undo" })
      .last().click();
  const upload = async (text: string, name = "orders.jsonl") => {
    await page.getByLabel("File").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
    await button("Check file").click();
  };

  await t.step(
    "DA1 an invalid document is rejected with an error for each field, and a valid one is saved",
    async () => {
      await go("data/orders");
      await button("New document").click();
      await editor().waitFor();
      await checkDialog(dashboard, "new document");
      await fillEditor('{ "title": "Lamp", "state": "open" }');
      await button("Save").click();
      await waitForText("total:");
      await fillEditor('{ "title": "Lamp", "state": "open", "total": 20 }');
      await button("Save").click();
      await waitForText("Saved");
    },
  );

  await t.step("invalid JSON shows an error and is not saved", async () => {
    await fillEditor('{ "title": ');
    await button("Save").click();
    await page.getByRole("alert").waitFor();
  });

  await t.step("a document is edited, and the edit undone", async () => {
    await fillEditor('{ "title": "Lamp", "state": "paid", "total": 21 }');
    await button("Save").click();
    // Content behind a dialog has no roles.
    await page.locator(".cell", { hasText: "paid" }).waitFor();
    await saved();
    await undo("Saved");
    await waitForText("Undone");
    await editor().getByText('"open"').waitFor();
    await page.locator(".cell", { hasText: "paid" }).waitFor({ state: "detached" });
  });

  await t.step("the order of fields is no conflict, and a field that occurs twice is refused", async () => {
    await fillEditor('{ "total": 22, "state": "open", "title": "Lamp" }');
    // No conflict is shown, not even for a moment when the new version arrives before the save ends.
    const conflicts = await page.evaluateHandle(() => {
      const seen: string[] = [];
      new MutationObserver(() => {
        for (const { textContent } of document.querySelectorAll("[role=dialog] .banner")) {
          seen.push(textContent);
        }
      }).observe(document.body, { subtree: true, childList: true });
      return seen;
    });
    await button("Save").click();
    await page.locator(".cell", { hasText: /^22$/ }).waitFor();
    await saved();
    assert.deepEqual(await conflicts.jsonValue(), []);
    await fillEditor('{ "title": "Lamp", "title": "Lost", "state": "open", "total": 20 }');
    await button("Save").click();
    await page.getByRole("alert").getByText('The field "title" occurs twice').waitFor();
  });

  await t.step("DA16 unsaved edits are kept until they are discarded, and Ctrl+S saves", async () => {
    await fillEditor('{ "title": "Lamp", "state": "open", "total": 23 }');
    await keys("Escape");
    await page.getByRole("heading", { name: "Discard unsaved changes?" }).waitFor();
    await button("Keep editing").click();
    await keys("Control+s");
    await page.locator(".cell", { hasText: /^23$/ }).waitFor();
    await saved();
    await fillEditor('{ "title": "Lamp", "state": "open", "total": 24 }');
    const here = page.url();
    await page.evaluate(() => location.hash = "#/users");
    await button("Keep editing").click();
    await page.waitForURL(here);
    await keys("Escape");
    await button("Discard changes").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.locator(".cell", { hasText: /^24$/ }).waitFor({ state: "detached" });
    await cell("Lamp").first().click();
    await editor().waitFor();
  });

  await t.step("an undone copy shows its original, and leaves another document open", async () => {
    const original = page.url();
    const copy = async () => {
      await button("Duplicate").click();
      await page.waitForURL((url) => url.href !== original);
      await waitForText("Copy created");
    };
    await copy();
    await undo("Copy created");
    await page.waitForURL(original);
    await editor().waitFor();
    await copy();
    await page.goto(original);
    await editor().waitFor();
    await undo("Copy created");
    // Content behind a dialog has no roles.
    await page.locator(".cell", { hasText: "Lamp" }).nth(1).waitFor({ state: "detached" });
    assert.equal(page.url(), original);
    await editor().waitFor();
  });

  await t.step("a document is duplicated", async () => {
    const original = page.url();
    await button("Duplicate").click();
    // The message of the step before may still be shown.
    await page.waitForURL((url) => url.href !== original);
    await button("Close").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await cell("Lamp").nth(1).waitFor();
  });

  await t.step("a document is deleted, and the deletion undone", async () => {
    await cell("Lamp").first().click();
    await button("Delete").click();
    await waitForText("Deleted");
    await cell("Lamp").nth(1).waitFor({ state: "detached" });
    await undo("Deleted");
    await cell("Lamp").nth(1).waitFor();
  });

  await t.step("several documents are deleted together, and the deletion undone", async () => {
    await page.getByRole("checkbox", { name: "Select this document" }).first().check();
    await page.getByRole("checkbox", { name: "Select this document" }).nth(1).check();
    await button("Delete 2").click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await waitForText("No documents");
    await undo("2 documents deleted");
    await cell("Lamp").nth(1).waitFor();
  });

  await t.step(
    "a new document keeps the ID entered for it, and anything but an object is refused",
    async () => {
      const id = await call("orders:add", { title: "Removed" });
      await asAdmin("_admin/data:remove", { ids: [id] });
      await go("data/orders/new");
      await fillEditor("[1]");
      await button("Save").click();
      await page.getByRole("alert").getByText("A JSON object is required").waitFor();
      await fillEditor(`{ "_id": "${id}", "title": "Again", "state": "open", "total": 1 }`);
      await button("Save").click();
      await page.waitForURL(`**/orders/${id}`);
      await page.locator("dd", { hasText: id }).waitFor();
      await button("Close").click();
      await asAdmin("_admin/data:remove", { ids: [id] });
      await go("data/orders");
    },
  );

  await t.step("writes of others appear immediately", async () => {
    await call("orders:add", { title: "Chair" });
    await cell("Chair").waitFor();
  });

  await t.step("a filter supported by an index does not scan", async () => {
    await page.getByLabel("Field to filter by").selectOption("state");
    await page.getByLabel("Filter value").selectOption("paid");
    await cell("Chair").waitFor({ state: "detached" });
    assert.equal(await page.getByText("No index supports this filter").count(), 0);
  });

  await t.step("several filters must all match, and each can be removed", async () => {
    await page.getByLabel("Filter value").selectOption("open");
    await button("Filter").click();
    await page.getByLabel("Field to filter by 2").selectOption("title");
    await page.getByLabel("Operator 2").selectOption("contains");
    await page.getByLabel("Filter value 2").fill("CHA");
    await cell("Lamp").first().waitFor({ state: "detached" });
    await cell("Chair").waitFor();
    assert.match(page.url(), /field=state.*field2=title/);
    await button("Remove filter 2").click();
    await cell("Lamp").first().waitFor();
  });

  await t.step("a filter without an index shows that it scans", async () => {
    await page.getByLabel("Field to filter by").selectOption("total");
    await page.getByLabel("Operator").selectOption("lte");
    await page.getByLabel("Filter value").fill("1");
    await waitForText("No index supports this filter");
    await cell("Chair").waitFor();
    await cell("Lamp").first().waitFor({ state: "detached" });
    await page.getByLabel("Field to filter by").selectOption("");
  });

  await t.step("documents are searched by text", async () => {
    await page.getByLabel("Search title").fill("chair");
    await cell("Lamp").first().waitFor({ state: "detached" });
    await cell("Chair").waitFor();
    await page.getByLabel("Search title").fill("");
  });

  await t.step("the order is reversed and kept in the address", async () => {
    await button(/^Descending/).click();
    await page.waitForFunction(() =>
      document.querySelectorAll(".grid-body .grid-row")[0]?.textContent?.includes("Lamp")
    );
    assert.match(page.url(), /order=asc/);
    await button(/^Ascending/).click();
  });

  await t.step("a click on a column's name sorts by its index, a second one reverses the order", async () => {
    const states = () =>
      page.locator(".grid-body .grid-row").evaluateAll((rows) =>
        rows.map((row) => [...row.children].map(({ textContent }) => textContent ?? ""))
          .map((cells) => cells.find((text) => text === "open" || text === "paid"))
      );
    const [{ _id }] = (await asAdmin("_admin/data:documents", {
      table: "orders",
      paginationOpts: { numItems: 1, cursor: null },
    }, "query")).page;
    await asAdmin("_admin/data:patch", { id: _id, set: { state: "paid" } });
    const header = page.getByRole("columnheader", { name: "state" });
    await header.getByRole("button").click();
    await page.waitForFunction(() =>
      document.querySelector("[aria-sort=ascending]")?.textContent === "state"
    );
    await cell("paid").waitFor();
    assert.equal((await states()).indexOf("paid"), (await states()).length - 1);
    await header.getByRole("button").click();
    await page.waitForFunction(() => document.querySelector("[aria-sort=descending]"));
    await page.waitForFunction(() =>
      document.querySelectorAll(".grid-body .grid-row")[0]?.textContent?.includes("paid")
    );
    assert.equal(await page.getByRole("columnheader", { name: "total" }).getByRole("button").count(), 0);
    await asAdmin("_admin/data:patch", { id: _id, set: { state: "open" } });
  });

  await t.step("a chosen order takes precedence over the index that serves the filter", async () => {
    await go("data/orders?field=state&value=open");
    const order = page.getByLabel("Order by");
    await until(async () => await order.inputValue() === "by_state");
    await order.selectOption("Creation time");
    await waitForText("No index supports this filter");
    assert.equal(await order.inputValue(), "by_creation_time");
    await order.selectOption("by_state");
    await page.getByText("No index supports this filter").waitFor({ state: "detached" });
    assert.doesNotMatch(page.url(), /index=/);
  });

  await t.step("a document is edited in a form, which is kept as the editor of this browser", async () => {
    await go("data/orders");
    await cell("Chair").click();
    await button("Form").click();
    await page.getByLabel("total", { exact: true }).fill("8");
    await button("Save").click();
    await page.locator(".cell", { hasText: /^8$/ }).waitFor();
    await saved();
    await button("JSON").click();
    await page.locator(".cm-content", { hasText: '"total": 8' }).waitFor();
    await undo("Saved");
    await waitForText("Undone");
    await button("Close").click();
  });

  await t.step("by keyboard only: a document is opened from the grid and closed", async () => {
    await go("data/orders");
    // Without rows, the keys have no effect.
    await cell("Lamp").first().waitFor();
    await grid.focus();
    await keys("ArrowDown", "ArrowDown", "ArrowUp", "End", "Home", "Enter");
    await page.getByRole("dialog").waitFor();
    await keys("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.reload();
    await cell("Lamp").first().click();
    await page.getByRole("dialog").waitFor();
    await keys("Escape");
    await page.locator(".grid:focus").waitFor();
  });

  await t.step("by keyboard only: documents are selected in the grid", async () => {
    await grid.focus();
    await keys("Home", "Space", "ArrowDown", "Space");
    await button("Delete 2").waitFor();
    await keys("Space", "Home", "Space");
    await button("Delete 2").waitFor({ state: "detached" });
  });

  await t.step("by keyboard only: a document is created", async () => {
    await button("New document").focus();
    await keys("Enter");
    await fillEditor('{ "title": "Desk", "state": "open", "total": 3 }');
    await button("Save").focus();
    await keys("Enter");
    await waitForText("Saved");
    await keys("Escape");
    await cell("Desk").waitFor();
  });

  await t.step(
    "by keyboard only: a field is edited in the grid, and the edit undone",
    async () => {
      await grid.focus();
      await keys("Home", "ArrowRight", "ArrowRight", "ArrowRight", "F2");
      await page.getByLabel("New value of title").waitFor();
      await keys("Control+a");
      await page.keyboard.insertText("Standing desk");
      await keys("Enter");
      await cell("Standing desk").waitFor();
      await waitForText("title saved");
      await undo("title saved");
      await cell("Desk").waitFor();
    },
  );

  await t.step("SY23 a field that changes while it is edited in the grid is not overwritten", async () => {
    await grid.focus();
    await keys("Home", "F2");
    await page.getByLabel("New value of title").fill("Mine");
    const id = await page.locator(".grid-body .grid-row").first().getByRole("gridcell").nth(1).innerText();
    await asAdmin("_admin/data:patch", { id, set: { title: "Theirs", total: 4 } });
    await page.locator(".grid-body .grid-row").first().getByRole("gridcell", { name: "4", exact: true })
      .waitFor();
    await keys("Enter");
    await waitForText('Someone else changed "title" while you were editing');
    await button("Dismiss").last().click();
    await cell("Theirs").waitFor();
    await asAdmin("_admin/data:patch", { id, set: { title: "Desk", total: 3 } });
    await cell("Desk").waitFor();
  });

  await t.step("a choice in a cell replaces the value that the cell shows", async () => {
    const row = page.locator(".grid-body .grid-row").first();
    const id = await row.getByRole("gridcell").nth(1).innerText();
    const state = row.getByRole("gridcell").nth(4);
    await state.hover();
    await state.getByRole("button", { name: "Edit state" }).click();
    const choice = page.getByLabel("New value of state");
    await asAdmin("_admin/data:patch", { id, set: { state: "paid" } });
    await until(async () => await choice.inputValue() === '"paid"');
    await choice.selectOption({ label: "open" });
    await waitForText("state saved");
    await state.getByText("open", { exact: true }).waitFor();
  });

  await t.step("an invalid field value is rejected in its cell, and Escape cancels the edit", async () => {
    await cell("Desk").hover();
    const total = page.locator(".grid-body .grid-row").first().getByRole("gridcell").nth(5);
    await total.hover();
    await total.getByRole("button", { name: "Edit total" }).click();
    await page.getByLabel("New value of total").fill('"many"');
    await keys("Enter");
    await page.locator(".toast[data-tone=bad]").waitFor();
    await button("Dismiss").last().click();
    await total.hover();
    await total.getByRole("button", { name: "Edit total" }).click();
    await page.getByLabel("New value of total").fill("9");
    await keys("Escape");
    assert.equal(await total.innerText(), "3");
  });

  await t.step(
    "SY23 the second of two conflicting saves is rejected, and the latest version can be loaded",
    async () => {
      await cell("Chair").click();
      await editor().waitFor();
      const other = await context.newPage();
      await other.goto(page.url());
      await editor(other).waitFor();
      await editor(other).fill('{ "title": "Chair", "state": "open", "total": 2 }');
      await other.getByRole("button", { name: "Save", exact: true }).click();
      // A sheet without edits shows the new values.
      await page.waitForFunction(() =>
        document.querySelector(".cm-content")?.textContent?.includes('"total": 2')
      );
      assert.equal(await page.getByText("Someone else changed").count(), 0);
      await fillEditor('{ "title": "Chair", "state": "paid", "total": 1 }');
      await editor(other).fill('{ "title": "Chair", "state": "open", "total": 3 }');
      await other.getByRole("button", { name: "Save", exact: true }).click();
      await waitForText("Someone else changed this document");
      await button("Save").click();
      await page.getByRole("alert").waitFor();
      await other.close();
      await button("Discard changes and load latest version").click();
      await page.waitForFunction(() =>
        document.querySelector(".cm-content")?.textContent?.includes('"total": 3')
      );
      await button("Close").click();
    },
  );

  await t.step(
    "DA6 names with markup are shown as text in the grid, the sheet and the tooltip",
    async () => {
      await call("orders:add", { title: MARKUP });
      await cell(MARKUP).click();
      await page.locator(".cm-content", { hasText: "onerror" }).waitFor();
      assert.equal(await page.locator("main b, main img[src=x], [role=dialog] b").count(), 0);
      assert.notEqual(await page.title(), "run");
      await button("Close").click();
    },
  );

  await t.step("a reference is followed", async () => {
    const { ids: [parent] } = await asAdmin("_admin/data:insert", {
      table: "customers",
      documents: [{ name: "Grace" }],
    });
    await asAdmin("_admin/data:insert", {
      table: "orders",
      documents: [{ title: "Shelf", state: "open", total: 4, customer: parent }],
    });
    await page.getByRole("link", { name: "Grace" }).click();
    await page.locator(".cm-content", { hasText: "Grace" }).waitFor();
    assert.match(page.url(), new RegExp(`/data/orders/${parent}$`), "above the table of orders");
    await page.getByRole("heading", { name: "Document in customers" }).waitFor();
    await button("Close").click();
    await cell("Shelf").waitFor();
  });

  await t.step("an import is checked first and reports errors by row", async () => {
    await go("data/orders");
    await choose("More about this table", "Import…");
    await upload('{"title":"One","state":"open","total":1}\n{"title":2,"state":"open","total":1}\nnone\n');
    await waitForText("2 invalid rows. Nothing was imported.");
    const lines = page.getByRole("dialog").locator("tbody tr td:first-child");
    assert.deepEqual(await lines.allTextContents(), ["2", "3"]);
  });

  await t.step("valid rows are imported after the dry run", async () => {
    await upload('{"title":"Imported","state":"open","total":1}\n');
    await waitForText("The row is valid. Nothing has been imported yet.");
    await waitForFocus("Import 1 row");
    await keys("Enter");
    await waitForText("1 document imported.");
    await waitForFocus("More about this table");
    await cell("Imported").waitFor();
  });

  await t.step("the palette opens the import into a table", async () => {
    await go("overview");
    await keys("Control+k");
    await page.getByPlaceholder("Go to a table").fill("import orders");
    await page.getByRole("option", { name: "Import into orders…" }).click();
    await page.getByRole("heading", { name: "Import into orders" }).waitFor();
    assert.match(page.url(), /#\/data\/orders$/);
    await keys("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  await t.step("the columns of a CSV file are mapped to fields, and unknown ones are skipped", async () => {
    await choose("More about this table", "Import…");
    const csv = `Product,STATE,total,Remark\n"Shelf, oak",open,7,"a ""remark"" ${"long ".repeat(12)}"\n`;
    await page.getByLabel("File").setInputFiles({
      name: "shop.csv",
      mimeType: "text/csv",
      buffer: Buffer.from(csv),
    });
    await waitForText("No column for title.");
    assert.equal(await page.getByLabel("Field of column STATE").inputValue(), "state");
    assert.equal(await page.getByLabel("Field of column Remark").inputValue(), "");
    await page.getByLabel("Field of column Product").selectOption("title");
    await button("Cancel").click();
    await button("Keep editing").click();
    assert.equal(await page.getByLabel("Field of column Product").inputValue(), "title");
    await button("Check file").click();
    await waitForText("The row is valid.");
    await checkDialog(dashboard, "import");
    const isScrolled = await page.locator(".faults").evaluate((it) =>
      it.scrollWidth > it.clientWidth || it.scrollHeight > it.clientHeight
    );
    assert.equal(isScrolled, false, "all columns of the file are visible");
    await button("Import 1 row").click();
    await cell("Shelf, oak").waitFor();
    // Its documents are visible before it ends, and a server runs one import at a time.
    await page.getByRole("list", { name: "Running tasks" }).waitFor({ state: "detached" });
  });

  await t.step("the report of an import is about the file and columns that are shown", async () => {
    await go("data/orders");
    await choose("More about this table", "Import…");
    // The columns of the first file are read after those of the second.
    await page.evaluate(() => {
      const { text } = Blob.prototype;
      const second = Promise.withResolvers<void>();
      let reads = 0;
      Blob.prototype.text = async function () {
        const isFirst = reads++ === 0;
        if (isFirst) await second.promise;
        else Blob.prototype.text = text;
        const content = await text.call(this);
        // After the page has received the content.
        setTimeout(() => {
          if (isFirst) document.body.dataset["read"] = content;
          else second.resolve();
        });
        return content;
      };
    });
    for (const content of ["Product,Price\nShelf,1\n", "title,Remark\nTable,2\n"]) {
      await page.getByLabel("File").setInputFiles({
        name: "shop.csv",
        mimeType: "text/csv",
        buffer: Buffer.from(content),
      });
    }
    await page.locator("body[data-read^=Product]").waitFor();
    await page.getByLabel("Field of column Remark").waitFor();
    assert.equal(await page.getByLabel("Field of column Price").count(), 0);
    const held = Promise.withResolvers<void>();
    await page.route("**/api/admin/import/orders?**", async (route) => {
      await held.promise;
      await route.continue();
    });
    await button("Check file").click();
    await button("Checking…").waitFor();
    assert.equal(await page.getByLabel("File").isDisabled(), true);
    assert.equal(await page.getByLabel("Field of column Remark").isDisabled(), true);
    held.resolve();
    await waitForText("1 invalid row. Nothing was imported.");
    assert.equal(await page.getByLabel("File").isDisabled(), false);
    await page.unroute("**/api/admin/import/orders?**");
  });

  await t.step("an import file that cannot be read is reported when it is checked", async () => {
    const restore = await page.evaluateHandle(() => {
      const { text, arrayBuffer } = Blob.prototype;
      const fail = () => Promise.reject(new Error("deleted"));
      Object.assign(Blob.prototype, { text: fail, arrayBuffer: fail });
      return () => Object.assign(Blob.prototype, { text, arrayBuffer });
    });
    await page.route("**/api/admin/import/orders?**", (route) => route.abort());
    await upload("title\nShelf\n", "shop.csv");
    await waitForText("Cannot read shop.csv. Select it again.");
    assert.equal(await page.getByLabel(/^Field of column/).count(), 0);
    await page.unroute("**/api/admin/import/orders?**");
    await restore.evaluate((call) => void call());
    await keys("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  await t.step("DA13 an import shows its progress, also after the page was closed", async () => {
    const running = { table: "orders", dryRun: false, done: 0, of: 1_000, rows: 0, startedAt: 0 };
    let now: object = { running: { ...running, step: "receiving", done: 250 }, last: null };
    await page.route("**/api/admin/import", (route) => route.fulfill({ json: now }));
    const held = Promise.withResolvers<void>();
    await page.route("**/api/admin/import/orders?**", async (route) => {
      if (!route.request().url().includes("dryRun")) await held.promise;
      await route.continue();
    });
    await choose("More about this table", "Import…");
    const row = JSON.stringify({ title: "Left", state: "open", total: 1 });
    // Two rows, because the message of an earlier import may still be shown.
    await upload(`${row}\n${row}`);
    await button("Import 2 rows").click();
    const strip = page.getByRole("list", { name: "Running tasks" });
    await strip.getByText("orders: 25 % uploaded").waitFor();
    now = { running: { ...running, step: "writing", done: 421, rows: 12_000 }, last: null };
    await strip.getByText("orders: 42 % imported, 12,000 rows").waitFor();
    held.resolve();
    await waitForText("2 documents imported.");
    await page.reload();
    await strip.getByText("orders: 42 % imported, 12,000 rows").waitFor();
    now = {
      running: null,
      last: { table: "orders", dryRun: false, endedAt: 0, imported: 28_000, error: null },
    };
    await waitForText("28,000 documents of orders imported.");
    await strip.waitFor({ state: "detached" });
    await page.unrouteAll();
  });

  await t.step("a table is exported", async () => {
    const download = page.waitForEvent("download");
    await choose("More about this table", "Export as JSON lines");
    assert.equal((await download).suggestedFilename(), "orders.jsonl");
    await waitForFocus("More about this table");
  });

  await t.step("DA14 an export with a filter contains matching documents only", async () => {
    await go("data/orders?field=title&op=eq&value=Imported");
    await cell("Imported").waitFor();
    const exported = async (format: string) => {
      const download = page.waitForEvent("download");
      await choose("More about this table", `Export filtered rows as ${format}`);
      return await Deno.readTextFile(await (await download).path());
    };
    const lines = (await exported("JSON lines")).trim().split("\n");
    assert.deepEqual(lines.map((line) => JSON.parse(line).title), ["Imported"]);
    const [head, row, end] = (await exported("CSV")).split("\r\n");
    assert.equal(head, "_id,_creationTime,title,state,total");
    assert.match(row ?? "", /^[^,]+,[\d.]+,Imported,open,1$/);
    assert.equal(end, "");
    await go("data/orders?field=total&op=gte&value=0&order=asc");
    const totals = (await exported("JSON lines")).trim().split("\n").map((line) =>
      JSON.parse(line)._creationTime
    );
    assert.deepEqual(totals, totals.toSorted((a, b) => a - b));
    await go("data/orders");
    // The hovered row has edit buttons in its cells.
    await page.mouse.move(0, 0);
  });

  await t.step("DA14 one field is set on several documents, and undo restores each value", async () => {
    await call("orders:add", { title: "First of two" });
    await call("orders:add", { title: "Second of two" });
    const totals = async () =>
      (await asAdmin("_admin/data:documents", {
        table: "orders",
        paginationOpts: { numItems: 2, cursor: null },
      }, "query")).page.map(({ total }: { total: number }) => total);
    await cell("Second of two").waitFor();
    await page.getByRole("checkbox", { name: "Select this document" }).first().check();
    await page.getByRole("checkbox", { name: "Select this document" }).nth(1).check();
    await button("Set field on 2").click();
    await page.getByLabel("Field", { exact: true }).selectOption("total");
    await checkDialog(dashboard, "set a field");
    await page.getByLabel("total", { exact: true }).fill("70");
    await button("Set field").click();
    await waitForText("Set total on 2 documents");
    assert.deepEqual(await totals(), [70, 70]);
    await undo("Set total on 2 documents");
    await waitForText("Undone");
    assert.deepEqual(await totals(), [1, 1]);
    // A conflicting change is reported before it is overwritten.
    await button("Set field on 2").click();
    await page.getByLabel("Field", { exact: true }).selectOption("total");
    await page.getByLabel("total", { exact: true }).fill("80");
    const { page: [newest] } = await asAdmin("_admin/data:documents", {
      table: "orders",
      paginationOpts: { numItems: 1, cursor: null },
    }, "query");
    const setTotal = (total: number) => asAdmin("_admin/data:patch", { id: newest._id, set: { total } });
    await setTotal(5);
    await button("Set field").click();
    await waitForText('Someone else changed "total" while you were editing');
    assert.deepEqual(await totals(), [5, 1]);
    // Content behind a dialog has no roles.
    await page.locator(".grid-row", { hasText: "Second of two" }).getByText("5", { exact: true }).waitFor();
    await button("Set field").click();
    // The message of the first change may still be shown.
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await setTotal(6);
    await undo("Set total on 2 documents");
    await waitForText('Someone else changed "total" while you were editing');
    assert.deepEqual(await totals(), [6, 80]);
    await button("Set field on 2").click();
    await page.getByLabel("Field", { exact: true }).selectOption("title");
    await page.getByLabel("title", { exact: true }).fill("Lost");
    await keys("Escape");
    await button("Discard changes").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  await t.step("creating a document is undone", async () => {
    await button("New document").click();
    await fillEditor('{ "title": "Not for long", "state": "open", "total": 1 }');
    await button("Save").click();
    await waitForText("Saved");
    await undo("Saved");
    await waitForText("Undone");
    // Content behind a dialog has no roles.
    await page.locator(".cell", { hasText: "Not for long" }).waitFor({ state: "detached" });
  });

  await t.step("DA16 undo does not replace later edits", async () => {
    await button("New document").click();
    await fillEditor('{ "title": "Shared", "state": "open", "total": 1 }');
    await button("Save").click();
    await page.getByText("Created", { exact: true }).waitFor();
    const id = new URL(page.url()).hash.split("/").at(-1) ?? "";
    await asAdmin("_admin/data:patch", { id, set: { total: 902 } });
    await undo("Saved");
    await waitForText('Someone else changed "total" while you were editing');
    await editor().filter({ hasText: '"total": 902' }).waitFor();
    await fillEditor('{ "title": "Shared", "state": "open", "total": 903 }');
    await button("Save").click();
    await page.locator(".cell", { hasText: /^903$/ }).waitFor();
    await saved();
    // Edits made since in the editor are kept.
    await fillEditor('{ "title": "Shared", "state": "open", "total": 904 }');
    await undo("Saved");
    await page.locator(".cell", { hasText: /^903$/ }).waitFor({ state: "detached" });
    await page.getByText("Someone else changed this document").waitFor({ state: "detached" });
    assert.match(await editor().innerText(), /"total": 904/);
    await keys("Escape");
    await button("Discard changes").click();
    await asAdmin("_admin/data:remove", { ids: [id] });
    await cell("Shared").waitFor({ state: "detached" });
  });

  await t.step("the schema of a table is shown with its indexes", async () => {
    await choose("More about this table", "Schema and indexes");
    await waitForText("search_title");
    await checkDialog(dashboard, "schema and indexes");
    await keys("Escape");
  });

  await t.step(
    "the schema map shows all tables with their relations and links to their documents",
    async () => {
      await page.getByRole("link", { name: "Schema map" }).click();
      const orders = page.getByRole("region", { name: "orders" });
      await orders.getByText("→ customers").waitFor();
      assert.equal(await page.locator(".schema-plane path").count(), 2, "to another table, and to itself");
      await page.getByRole("region", { name: "customers" }).getByRole("link").click();
      await cell("Grace").waitFor();
    },
  );

  await t.step(`a document of 1 MiB and one of ${WIDE} fields can be displayed`, async () => {
    await asAdmin("_admin/data:insert", {
      table: "wide",
      documents: [Object.fromEntries(Array.from({ length: WIDE }, (_, at) => [`field${at}`, at]))],
    });
    const { ids: [large] } = await asAdmin("_admin/data:insert", {
      table: "orders",
      documents: [{ title: "x".repeat(1_000_000), state: "open", total: 1 }],
    });
    await go("data/wide");
    await cell("59").waitFor();
    await cell("59").click();
    await page.locator(".cm-content", { hasText: "field0" }).waitFor();
    assert.deepEqual(await dashboard.violations(), [], "a document longer than the editor");
    await button("Close").click();
    await go(`data/orders/${large}`);
    await page.locator(".cm-content", { hasText: "xxxx" }).waitFor();
    await button("Close").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await asAdmin("_admin/data:remove", { ids: [large] });
  });

  await t.step("documents of 1 MiB are loaded in short pages without gaps", async () => {
    const large = 20;
    for (let at = 0; at < large; at += 4) {
      const documents = Array.from(
        { length: 4 },
        (_, of) => ({ name: `${at + of} ${"x".repeat(1_000_000)}` }),
      );
      await asAdmin("_admin/data:insert", { table: "large", documents });
    }
    await go("data/large?order=asc");
    await page.locator(".grid-body .cell", { hasText: new RegExp(`^${large - 1} x`) }).waitFor();
    const shown = await page.locator(".grid-body .grid-row").evaluateAll((rows) =>
      rows.map((row) => Number.parseInt(row.querySelectorAll("[role=gridcell]")[2]?.textContent ?? "", 10))
        .toSorted((a, b) => a - b)
    );
    assert.deepEqual(shown, Array.from({ length: large }, (_, at) => at));
    const { workId } = await asAdmin("_admin/data:deleteWhere", { table: "large" }, "action");
    assert.ok(workId);
    await waitForText("No documents");
  });

  const shown = (position: number) => page.locator(`.grid-row[aria-rowindex="${position}"]`);

  await t.step("DA9 a long table is scrolled to its end and back, also by keyboard", async () => {
    const many = Array.from({ length: 900 }, (_, at) => ({ name: `Customer ${at}` }));
    await asAdmin("_admin/data:insert", { table: "customers", documents: many });
    await go("data/customers?order=asc");
    const total = await page.waitForFunction(() => {
      const rows = Number(document.querySelector(".grid")?.getAttribute("aria-rowcount"));
      return rows > 900 ? rows : null;
    });
    const last = Number(await total.jsonValue());
    await grid.focus();
    await keys("End");
    await shown(last).getByText("Customer 899").waitFor();
    await page.locator(".grid-row[data-current=true]").getByText("Customer 899").waitFor();
    await page.locator(".grid-foot", { hasText: `– ${last - 1} of ${last - 1}` }).waitFor();
    assert.ok(
      await page.locator(".grid-body .grid-row").count() < 100,
      "only rows near the viewport are rendered",
    );
    await keys("PageUp", "PageUp", "PageUp", "PageUp", "PageUp");
    await page.locator(".grid-row[data-current=true]").getByText("Customer 799").waitFor();
    await grid.evaluate((element) => element.scrollTop = element.scrollHeight / 2);
    await shown(Math.round(last / 2)).waitFor();
    const names = await page.locator(".grid-body .grid-row").evaluateAll((rows) =>
      rows.map((row) =>
        [
          Number(row.getAttribute("aria-rowindex")),
          row.querySelectorAll("[role=gridcell]")[2]?.textContent,
        ] as const
      )
        .toSorted(([a], [b]) => a - b)
    );
    const numbers = names.map(([, name]) => Number(name?.replace("Customer ", "")));
    assert.deepEqual(numbers, names.map((_, at) => (numbers[0] ?? 0) + at), "no gaps or duplicates");
    await grid.focus();
    await keys("Home");
    await shown(2).waitFor();
  });

  await t.step(
    "DA9 dragging the scroll bar shows row numbers immediately and requests one position at a time",
    async () => {
      const asked: number[] = [];
      const held = Promise.withResolvers<void>();
      await page.route("**/api/query", async (route) => {
        const { path, args } = route.request().postDataJSON();
        // The page jumped to requests the pages before it.
        if (path === "_admin/data:position" && args.before === undefined) {
          asked.push(args.behind);
          await held.promise;
        }
        await route.continue();
      });
      const wrong = await grid.evaluate(async (element) => {
        const wrong: string[] = [];
        for (let step = 0; step <= 10; step++) {
          element.scrollTop = element.scrollHeight * (0.5 + step / 25);
          const { left, top, height } = element.getBoundingClientRect();
          const middle = height / 2;
          const pending = () =>
            document.elementFromPoint(left + 20, top + middle)?.closest(".grid-pending")?.textContent;
          const expected = String(Math.floor((element.scrollTop + middle - 34) / 34) + 1);
          for (let frames = 0; pending() !== expected && frames < 600; frames++) {
            await new Promise(requestAnimationFrame);
          }
          if (pending() !== expected) wrong.push(`${pending()} instead of ${expected}`);
        }
        return wrong;
      });
      assert.deepEqual(wrong, []);
      await until(() => asked.length > 0);
      assert.equal(asked.length, 1, "only the latest of the others is queued");
      assert.deepEqual(await dashboard.violations(), [], "rows are loading");
      held.resolve();
      const rested = Math.round(await grid.evaluate(({ scrollTop }) => scrollTop) / 34);
      await shown(rested + 5).waitFor();
      assert.equal(asked.length, 2);
      await page.locator(".grid-pending").first().waitFor({ state: "detached" });
      await page.unrouteAll();
      await grid.focus();
      await keys("Home");
      await shown(2).waitFor();
    },
  );

  await t.step("DA9 an index range filters without a scan", async () => {
    await go("data/orders?field=state&op=gte&value=paid");
    // The grid of the previous step has the same table.
    await until(async () => await page.getByLabel("Filter value", { exact: true }).inputValue() === "paid");
    assert.equal(await page.getByText("No index supports this filter").count(), 0);
  });

  await t.step("all documents matching a filter are deleted in the background", async () => {
    await go("data/orders?field=title&op=eq&value=Imported");
    await cell("Imported").waitFor();
    await choose("More about this table", "Delete all shown…");
    await button("Delete all").click();
    await waitForText("No documents");
  });

  await t.step(
    "DA17 a lost connection is shown, and missed changes appear after the reconnect",
    async () => {
      const other = await context.newPage();
      let blocked = false;
      const sockets: { close(): Promise<void> }[] = [];
      await other.routeWebSocket(/\/api\/sync/, (socket) => {
        if (blocked) return void socket.close();
        socket.connectToServer();
        sockets.push(socket);
      });
      await other.route("**/*", (route) => blocked ? route.abort() : route.continue());
      const id = await call("orders:add", { title: "Edited while the server is down" });
      await other.goto(`${server.url}/_/#/data/orders/${id}`);
      await editor(other).fill('{ "title": "Edited later", "state": "open", "total": 1 }');
      blocked = true;
      await Promise.all(sockets.map((socket) => socket.close()));
      const banner = other.getByText("The server does not answer. Retrying… Data may be out of date.");
      await banner.waitFor();
      // Dialogs move down after the bar is shown.
      await other.locator("html[data-offline]").waitFor();
      const [above, below] = [await banner.boundingBox(), await other.getByRole("dialog").boundingBox()];
      assert.ok(above && below && above.y === 0 && below.y >= above.height, "the bar covers no document");
      await other.getByRole("button", { name: "Save", exact: true }).click();
      await other.getByRole("button", { name: "Waiting for the server…" }).waitFor();
      await call("orders:add", { title: "Came meanwhile" });
      blocked = false;
      // Content behind a dialog has no roles.
      await other.locator(".cell", { hasText: "Came meanwhile" }).waitFor();
      await other.locator(".cell", { hasText: "Edited later" }).waitFor();
      await banner.waitFor({ state: "detached" });
      await other.close();
    },
  );

  await t.step("DA17 a view whose script cannot be loaded says why and appears once it can", async () => {
    const other = await context.newPage();
    await other.clock.install();
    await other.goto(`${server.url}/_/#/users`);
    await other.getByRole("heading", { name: "Users" }).waitFor();
    let held = Promise.withResolvers<boolean>();
    await other.route("**/chunks/audit-*.js", async (route) => {
      if (await held.promise) await route.continue();
      else await route.abort();
    });
    await other.getByRole("link", { name: "Audit log" }).click();
    await other.locator(".skeleton").waitFor();
    await other.clock.fastForward(4_000);
    await other.getByText("No answer from the server yet").waitFor();
    const failed = held;
    held = Promise.withResolvers<boolean>();
    failed.resolve(false);
    await other.getByRole("heading", { name: "This view could not be loaded" }).waitFor();
    held.resolve(true);
    await other.clock.fastForward(2_000);
    await other.getByRole("heading", { name: "Audit log" }).waitFor();
    await other.close();
  });

  await t.step("a browser with a wrong clock shows and edits documents", async () => {
    const id = await call("orders:add", { title: "From another day" });
    for (const days of [-1, 1]) {
      const other = await context.newPage();
      await other.clock.setFixedTime(Date.now() + days * 86_400_000);
      await other.goto(`${server.url}/_/#/data/orders/${id}`);
      await editor(other).fill(`{ "title": "From another day", "state": "open", "total": ${days + 1_000} }`);
      await other.getByRole("button", { name: "Save" }).click();
      // Content behind a dialog has no roles.
      await other.locator(".cell", { hasText: new RegExp(`^${days + 1_000}$`) }).first().waitFor();
      const { document } = await asAdmin("_admin/data:get", { id }, "query");
      assert.equal(document.total, days + 1_000);
      await other.close();
    }
  });

  await t.step("a deleted document is shown as not found", async () => {
    const id = await call("orders:add", { title: "Soon gone" });
    await go(`data/orders/${id}`);
    await editor().waitFor();
    await asAdmin("_admin/data:remove", { ids: [id] });
    await waitForText("Document not found");
    await button("Close").click();
  });

  await t.step("a form without edits shows the changes of others", async () => {
    const { ids: [id] } = await asAdmin("_admin/data:insert", {
      table: "customers",
      documents: [{ name: "Ann", tags: ["new"] }],
    });
    await go(`data/customers/${id}`);
    await button("Form").click();
    const [name, tags] = ["name", "tags"].map((field) => page.getByLabel(field, { exact: true }));
    await until(async () => await tags?.inputValue() === '["new"]');
    await asAdmin("_admin/data:patch", { id, set: { name: "Bea", tags: ["new", "loyal"] } });
    await until(async () =>
      await name?.inputValue() === "Bea" && await tags?.inputValue() === '["new","loyal"]'
    );
    await tags?.fill('["loyal"]');
    await button("Save").click();
    await until(async () =>
      (await asAdmin("_admin/data:get", { id }, "query")).document.tags.join() === "loyal"
    );
    await saved();
    await button("JSON").click();
    await button("Close").click();
    await asAdmin("_admin/data:remove", { ids: [id] });
  });

  await t.step("AD15 a viewer reads documents, and cannot change them until the role changes", async () => {
    const id = await call("orders:add", { title: "Read" });
    const email = "vic@example.com";
    const other = await dashboard.openAs({ email, role: "viewer" }, "data/orders");
    const control = (name: string) => other.getByRole("button", { name, exact: true });
    await checkRefused(control("New document"), "editors and owners");
    const row = other.locator(`#row-${id}`);
    await row.hover();
    assert.equal(await row.getByRole("button", { name: "Edit title" }).count(), 0);
    await row.getByRole("checkbox").check();
    await checkRefused(control("Delete 1"), "editors and owners");
    await checkRefused(control("Set field on 1"), "editors and owners");
    await control("More about this table").click();
    for (const name of ["Import…", "Delete all shown…"]) {
      await checkRefused(other.getByRole("menuitem", { name }), "editors and owners");
    }
    await other.keyboard.press("Escape");
    await other.keyboard.press("Control+k");
    await other.getByPlaceholder("Go to a table").fill("orders");
    await other.getByRole("option", { name: "orders", exact: true }).waitFor();
    assert.equal(await other.getByRole("option", { name: "Import into orders…" }).count(), 0);
    await other.keyboard.press("Escape");
    await other.goto(`${server.url}/_/#/data/orders?make=import`);
    await other.locator(".toast", { hasText: "Only editors and owners may do this." }).waitFor();
    assert.equal(await other.getByRole("dialog").count(), 0);
    await other.goto(`${server.url}/_/#/data/orders/${id}`);
    await other.getByText("Read-only: only editors and owners may do this.").waitFor();
    assert.equal(await editor(other).getAttribute("aria-readonly"), "true");
    await editor(other).focus();
    await other.keyboard.press("ControlOrMeta+a");
    await other.keyboard.press("Backspace");
    assert.match(await editor(other).innerText(), /"title": "Read"/);
    for (const name of ["Save", "Delete", "Duplicate"]) {
      await checkRefused(control(name), "editors and owners");
    }
    await control("Form").click();
    assert.ok(await other.getByLabel("title", { exact: true }).isDisabled());
    const administrators = await asAdmin("_admin/administrators:list", {}, "query");
    const { adminId } = administrators.find((admin: { email: string }) => admin.email === email);
    await asAdmin("_admin/administrators:setRole", { adminId, role: "editor" });
    await other.getByLabel("title", { exact: true }).fill("Written");
    await control("Save").click();
    await other.getByText("Saved").waitFor();
    await other.context().close();
    await asAdmin("_admin/data:remove", { ids: [id] });
  });

  await t.step(
    "DA7 axe finds no accessibility violations",
    async () => {
      const [first] = await asAdmin("_admin/data:documents", {
        table: "orders",
        paginationOpts: { numItems: 1, cursor: null },
      }, "query").then(({ page }) => page);
      await checkAppearances(dashboard, ["data/orders", "data?show=schema", `data/orders/${first._id}`]);
    },
  );
});
