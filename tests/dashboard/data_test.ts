/** The dashboard's data view in a browser: what a person does with documents. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { checkLooks, testDashboard } from "./support/dashboard_page.ts";

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
  customers: defineTable({ name: z.string(), parent: id("customers").optional() }),
  wide: defineTable(wide),
  large: defineTable({ name: z.string() }),
});`,
  "orders.ts": `import { mutation } from "syncline/server";
import { z } from "zod";
export const add = mutation({ args: { title: z.string() }, handler: async (ctx, { title }) =>
  await ctx.db.insert("orders", { title, state: "open", total: 1 }) });`,
};

testDashboard("a person looks after documents", { functions }, async (dashboard, t) => {
  const { page, context, server, go, told, button, choose, keys, call, asAdmin } = dashboard;
  const editor = (of = page) => of.getByRole("textbox", { name: "Fields of orders" });
  const cell = (text: string) => page.getByRole("gridcell", { name: text, exact: true });
  const grid = page.getByRole("grid");
  const undo = () => page.getByRole("status").getByRole("button", { name: "Undo" }).last().click();
  const upload = async (text: string, name = "orders.jsonl") => {
    await page.getByLabel("File").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
    await button("Check the file").click();
  };

  await t.step(
    "DA1 a document that does not fit is refused field by field, and is stored when it fits",
    async () => {
      await go("data/orders");
      await button("New document").click();
      await editor().waitFor();
      await editor().fill('{ "title": "Lamp", "state": "open" }');
      await button("Save").click();
      await told("total:");
      await editor().fill('{ "title": "Lamp", "state": "open", "total": 20 }');
      await button("Save").click();
      await told("The document is stored.");
    },
  );

  await t.step("what is no JSON is told and stores nothing", async () => {
    await editor().fill('{ "title": ');
    await button("Save").click();
    await page.getByRole("alert").waitFor();
  });

  await t.step("a document is changed, and the change taken back", async () => {
    await editor().fill('{ "title": "Lamp", "state": "paid", "total": 21 }');
    await button("Save").click();
    // What is behind a dialog has no role meanwhile.
    await page.locator(".cell", { hasText: "paid" }).waitFor();
    await undo();
    await told("It is as it was.");
    await page.locator(".cell", { hasText: "paid" }).waitFor({ state: "detached" });
  });

  await t.step("a document is duplicated", async () => {
    await button("Duplicate").click();
    await told("This is the copy.");
    await button("Close").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await cell("Lamp").nth(1).waitFor();
  });

  await t.step("a document is deleted, and the deletion taken back", async () => {
    await cell("Lamp").first().click();
    await button("Delete").click();
    await told("The document is deleted.");
    await cell("Lamp").nth(1).waitFor({ state: "detached" });
    await undo();
    await cell("Lamp").nth(1).waitFor();
  });

  await t.step("several documents are deleted at once and put back", async () => {
    await page.getByRole("checkbox", { name: "Choose this document" }).first().check();
    await page.getByRole("checkbox", { name: "Choose this document" }).nth(1).check();
    await button("Delete 2").click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await told("No documents");
    await undo();
    await cell("Lamp").nth(1).waitFor();
  });

  await t.step("what others write appears at once", async () => {
    await call("orders:add", { title: "Chair" });
    await cell("Chair").waitFor();
  });

  await t.step("a filter that an index serves does not scan", async () => {
    await page.getByLabel("Field to filter by").selectOption("state");
    await page.getByLabel("Value to compare with").fill("paid");
    await cell("Chair").waitFor({ state: "detached" });
    assert.equal(await page.getByText("No index serves this filter").count(), 0);
  });

  await t.step("a filter that no index serves says that it scans", async () => {
    await page.getByLabel("Field to filter by").selectOption("total");
    await page.getByLabel("How to compare").selectOption("lte");
    await page.getByLabel("Value to compare with").fill("1");
    await told("No index serves this filter");
    await cell("Chair").waitFor();
    await cell("Lamp").first().waitFor({ state: "detached" });
    await page.getByLabel("Field to filter by").selectOption("");
  });

  await t.step("a text is searched for", async () => {
    await page.getByLabel("Search title").fill("chair");
    await cell("Lamp").first().waitFor({ state: "detached" });
    await cell("Chair").waitFor();
    await page.getByLabel("Search title").fill("");
  });

  await t.step("the order is turned around, and the address shares it", async () => {
    await button(/^Descending/).click();
    await page.waitForFunction(() =>
      document.querySelectorAll(".grid-body .grid-row")[0]?.textContent?.includes("Lamp")
    );
    assert.match(page.url(), /order=asc/);
    await button(/^Ascending/).click();
  });

  await t.step("by keyboard alone: a document is opened from the grid and left", async () => {
    await go("data/orders");
    await grid.focus();
    await keys("ArrowDown", "ArrowDown", "ArrowUp", "End", "Home", "Enter");
    await page.getByRole("dialog").waitFor();
    await keys("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  await t.step("by keyboard alone: documents are chosen in the grid", async () => {
    await grid.focus();
    await keys("Home", "Space", "ArrowDown", "Space");
    await button("Delete 2").waitFor();
    await keys("Space", "Home", "Space");
    await button("Delete 2").waitFor({ state: "detached" });
  });

  await t.step("by keyboard alone: a document is made", async () => {
    await button("New document").focus();
    await keys("Enter");
    await editor().focus();
    await keys("Control+a");
    await page.keyboard.insertText('{ "title": "Desk", "state": "open", "total": 3 }');
    await button("Save").focus();
    await keys("Enter");
    await told("The document is stored.");
    await keys("Escape");
    await cell("Desk").waitFor();
  });

  await t.step(
    "by keyboard alone: a field is edited where it stands in the grid, and the edit taken back",
    async () => {
      await grid.focus();
      await keys("Home", "ArrowRight", "ArrowRight", "ArrowRight", "F2");
      await page.getByLabel("New value of title").waitFor();
      await keys("Control+a");
      await page.keyboard.insertText("Standing desk");
      await keys("Enter");
      await cell("Standing desk").waitFor();
      await told("title is saved.");
      await undo();
      await cell("Desk").waitFor();
    },
  );

  await t.step("a field that does not fit is refused where it stands, and Escape leaves it", async () => {
    await cell("Desk").hover();
    const total = page.locator(".grid-body .grid-row").first().getByRole("gridcell").nth(5);
    await total.hover();
    await total.getByRole("button", { name: "Edit total" }).click();
    await page.getByLabel("New value of total").fill('"many"');
    await keys("Enter");
    await page.locator(".note[data-tone=bad]").waitFor();
    await button("Close this message").last().click();
    await total.hover();
    await total.getByRole("button", { name: "Edit total" }).click();
    await page.getByLabel("New value of total").fill("9");
    await keys("Escape");
    assert.equal(await total.innerText(), "3");
  });

  await t.step("SY23 two who edit one document: the second is told, and sees it as it is", async () => {
    await cell("Chair").click();
    await editor().waitFor();
    const other = await context.newPage();
    await other.goto(page.url());
    await editor(other).waitFor();
    await editor(other).fill('{ "title": "Chair", "state": "open", "total": 2 }');
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
    "DA6 names with markup are shown as text, in the grid, the sheet and the tooltip",
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
    await page.getByRole("link", { name: parent }).click();
    await page.locator(".cm-content", { hasText: "Grace" }).waitFor();
    await button("Close").click();
  });

  await t.step("an import is tried out first, and tells row by row what is wrong", async () => {
    await go("data/orders");
    await choose("More about this table", "Import…");
    await upload('{"title":"One","state":"open","total":1}\n{"title":2,"state":"open","total":1}\nnone\n');
    await told("2 rows do not fit. Nothing is stored.");
    const lines = page.getByRole("dialog").locator("tbody tr td:first-child");
    assert.deepEqual(await lines.allTextContents(), ["2", "3"]);
  });

  await t.step("what fits is imported after the dry run", async () => {
    await upload('{"title":"Imported","state":"open","total":1}\n');
    await told("The one row fits. Nothing is stored yet.");
    await button("Import 1 row").click();
    await told("1 document is imported.");
    await cell("Imported").waitFor();
  });

  await t.step("a column that the table does not have is told before anything is stored", async () => {
    await choose("More about this table", "Import…");
    await upload("wrong\na\n", "orders.csv");
    await told(/no field "wrong"/);
    await button("Cancel").click();
  });

  await t.step("DA13 an import says how far it is, and is found again when it was left", async () => {
    const running = { table: "orders", dryRun: false, done: 0, of: 1_000, rows: 0, startedAt: 0 };
    let now: object = { running: { ...running, step: "receiving", done: 250 }, last: null };
    await page.route("**/api/admin/import", (route) => route.fulfill({ json: now }));
    const held = Promise.withResolvers<void>();
    await page.route("**/api/admin/import/orders?**", async (route) => {
      if (!route.request().url().includes("dryRun")) await held.promise;
      await route.continue();
    });
    await choose("More about this table", "Import…");
    await upload(JSON.stringify({ title: "Left", state: "open", total: 1 }));
    await button("Import 1 row").click();
    const strip = page.getByRole("list", { name: "Under way" });
    await strip.getByText("orders: 25 % of the file is sent").waitFor();
    now = { running: { ...running, step: "writing", done: 421, rows: 12_000 }, last: null };
    await strip.getByText("orders: 42 % is imported, 12,000 rows").waitFor();
    held.resolve();
    await told("1 document is imported.");
    await page.reload();
    await strip.getByText("orders: 42 % is imported, 12,000 rows").waitFor();
    now = {
      running: null,
      last: { table: "orders", dryRun: false, endedAt: 0, imported: 28_000, error: null },
    };
    await told("28,000 documents of orders imported.");
    await strip.waitFor({ state: "detached" });
    await page.unrouteAll();
  });

  await t.step("a table is exported", async () => {
    const download = page.waitForEvent("download");
    await choose("More about this table", "Export as JSON lines");
    assert.equal((await download).suggestedFilename(), "orders.jsonl");
  });

  await t.step("DA14 what a filter shows is exported, and nothing else", async () => {
    await go("data/orders?field=title&op=eq&value=Imported");
    await cell("Imported").waitFor();
    const exported = async (format: string) => {
      const download = page.waitForEvent("download");
      await choose("More about this table", `Export what is shown as ${format}`);
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
    // The row that is pointed at has pens in its cells.
    await page.mouse.move(0, 0);
  });

  await t.step("DA14 a field of several documents is set at once, and each gets back its own", async () => {
    await call("orders:add", { title: "First of two" });
    await call("orders:add", { title: "Second of two" });
    const totals = async () =>
      (await asAdmin("_admin/data:documents", {
        table: "orders",
        paginationOpts: { numItems: 2, cursor: null },
      }, "query")).page.map(({ total }: { total: number }) => total);
    await cell("Second of two").waitFor();
    await page.getByRole("checkbox", { name: "Choose this document" }).first().check();
    await page.getByRole("checkbox", { name: "Choose this document" }).nth(1).check();
    await button("Set a field of 2").click();
    await page.getByLabel("Field", { exact: true }).selectOption("total");
    await page.getByLabel("total", { exact: true }).fill("70");
    await button("Set field").click();
    await told("total of 2 documents is saved.");
    assert.deepEqual(await totals(), [70, 70]);
    await undo();
    await told("They are as they were.");
    assert.deepEqual(await totals(), [1, 1]);
    // What another has changed since the dialog was opened is not overwritten unseen.
    await button("Set a field of 2").click();
    await page.getByLabel("Field", { exact: true }).selectOption("total");
    await page.getByLabel("total", { exact: true }).fill("80");
    const { page: [newest] } = await asAdmin("_admin/data:documents", {
      table: "orders",
      paginationOpts: { numItems: 1, cursor: null },
    }, "query");
    const setTotal = (total: number) => asAdmin("_admin/data:patch", { id: newest._id, set: { total } });
    await setTotal(5);
    await button("Set field").click();
    await told('Somebody else has changed "total" meanwhile');
    assert.deepEqual(await totals(), [5, 1]);
    // Behind the dialog, where roles are hidden.
    await page.locator(".grid-row", { hasText: "Second of two" }).getByText("5", { exact: true }).waitFor();
    await button("Set field").click();
    await told("total of 2 documents is saved.");
    await setTotal(6);
    await undo();
    await told('Somebody else has changed "total" meanwhile');
    assert.deepEqual(await totals(), [6, 80]);
    await button("Set a field of 2").click();
    await page.getByLabel("Field", { exact: true }).selectOption("title");
    await page.getByLabel("title", { exact: true }).fill("");
    await keys("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  await t.step("a new document is taken back", async () => {
    await button("New document").click();
    await editor().fill('{ "title": "Not for long", "state": "open", "total": 1 }');
    await button("Save").click();
    await told("The document is stored.");
    await undo();
    await told("It is gone again.");
    await cell("Not for long").waitFor({ state: "detached" });
  });

  await t.step("the schema of a table is shown with its indexes", async () => {
    await choose("More about this table", "Schema and indexes");
    await told("search_title");
    await keys("Escape");
  });

  await t.step("all tables are drawn with their relations, and lead to their documents", async () => {
    await page.getByRole("link", { name: "Schema map" }).click();
    const orders = page.getByRole("region", { name: "orders" });
    await orders.getByText("→ customers").waitFor();
    assert.equal(await page.locator(".schema-plane path").count(), 2, "to another table, and to itself");
    await page.getByRole("region", { name: "customers" }).getByRole("link").click();
    await cell("Grace").waitFor();
  });

  await t.step(`a document of 1 MiB and one of ${WIDE} fields can be looked at`, async () => {
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
    await go(`data/orders/${large}`);
    await page.locator(".cm-content", { hasText: "xxxx" }).waitFor();
    await button("Close").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await asAdmin("_admin/data:remove", { ids: [large] });
  });

  await t.step("many documents of 1 MiB come in short pages, and all of them are there", async () => {
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
      rows.map((row) => Number.parseInt(row.children[2]?.textContent ?? "", 10)).toSorted((a, b) => a - b)
    );
    assert.deepEqual(shown, Array.from({ length: large }, (_, at) => at));
    const { workId } = await asAdmin("_admin/data:deleteWhere", { table: "large" }, "action");
    assert.ok(workId);
    await told("No documents");
  });

  const shown = (position: number) => page.locator(`.grid-row[aria-rowindex="${position}"]`);

  await t.step("DA9 a long table is scrolled, gone to the end of and back, by keyboard too", async () => {
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
    assert.ok(
      await page.locator(".grid-body .grid-row").count() < 100,
      "only rows near the view are in the page",
    );
    await keys("PageUp", "PageUp", "PageUp", "PageUp", "PageUp");
    await page.locator(".grid-row[data-current=true]").getByText("Customer 799").waitFor();
    await grid.evaluate((element) => element.scrollTop = element.scrollHeight / 2);
    await shown(Math.round(last / 2)).waitFor();
    const names = await page.locator(".grid-body .grid-row").evaluateAll((rows) =>
      rows.map((row) => [Number(row.getAttribute("aria-rowindex")), row.children[2]?.textContent] as const)
        .toSorted(([a], [b]) => a - b)
    );
    const numbers = names.map(([, name]) => Number(name?.replace("Customer ", "")));
    assert.deepEqual(numbers, names.map((_, at) => (numbers[0] ?? 0) + at), "no row is missing or twice");
    await grid.focus();
    await keys("Home");
    await shown(2).waitFor();
  });

  await t.step(
    "DA9 where the bar is dragged to, numbers stand at once, and one place at a time is asked for",
    async () => {
      const asked: number[] = [];
      const held = Promise.withResolvers<void>();
      await page.route("**/api/query", async (route) => {
        const { path, args } = route.request().postDataJSON();
        // Pages before the one that was gone to are asked for by that one.
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
      assert.equal(asked.length, 1, "the others wait, and only the newest of them is wanted");
      held.resolve();
      const rested = Math.round(await grid.evaluate(({ scrollTop }) => scrollTop) / 34);
      await shown(rested + 5).waitFor();
      assert.equal(asked.length, 2);
      assert.equal(await page.locator(".grid-pending").count(), 0);
      await page.unrouteAll();
      await grid.focus();
      await keys("Home");
      await shown(2).waitFor();
    },
  );

  await t.step("DA9 a range of an index is a filter that does not scan", async () => {
    await go("data/orders?field=state&op=gte&value=paid");
    await page.locator(".grid").waitFor();
    assert.equal(await page.getByText("No index serves this filter").count(), 0);
  });

  await t.step("all that a filter shows is deleted step by step", async () => {
    await go("data/orders?field=title&op=eq&value=Imported");
    await cell("Imported").waitFor();
    await choose("More about this table", "Delete all that is shown…");
    await button("Delete all").click();
    await told("No documents");
  });

  await t.step(
    "a connection that is lost is told, and what came meanwhile is shown when it is back",
    async () => {
      const other = await context.newPage();
      let blocked = false;
      const sockets: { close(): Promise<void> }[] = [];
      await other.routeWebSocket(/\/api\/sync/, (socket) => {
        if (blocked) return void socket.close();
        socket.connectToServer();
        sockets.push(socket);
      });
      await other.goto(`${server.url}/_/#/data/orders`);
      await other.getByRole("gridcell").first().waitFor();
      blocked = true;
      await Promise.all(sockets.map((socket) => socket.close()));
      await other.getByText("The connection is lost").waitFor();
      await call("orders:add", { title: "Came meanwhile" });
      blocked = false;
      await other.getByRole("gridcell", { name: "Came meanwhile" }).waitFor();
      await other.getByText("The connection is lost").waitFor({ state: "detached" });
      await other.close();
    },
  );

  await t.step("a browser whose clock is a day off shows and changes documents as any other", async () => {
    const id = await call("orders:add", { title: "From another day" });
    for (const days of [-1, 1]) {
      const other = await context.newPage();
      await other.clock.setFixedTime(Date.now() + days * 86_400_000);
      await other.goto(`${server.url}/_/#/data/orders/${id}`);
      await editor(other).fill(`{ "title": "From another day", "state": "open", "total": ${days + 1_000} }`);
      await other.getByRole("button", { name: "Save" }).click();
      // What is behind a dialog has no role meanwhile.
      await other.locator(".cell", { hasText: new RegExp(`^${days + 1_000}$`) }).first().waitFor();
      const { document } = await asAdmin("_admin/data:get", { id }, "query");
      assert.equal(document.total, days + 1_000);
      await other.close();
    }
  });

  await t.step("a document that somebody deletes meanwhile is told to be gone", async () => {
    const id = await call("orders:add", { title: "Soon gone" });
    await go(`data/orders/${id}`);
    await editor().waitFor();
    await asAdmin("_admin/data:remove", { ids: [id] });
    await told("There is no such document any more");
    await button("Close").click();
  });

  await t.step(
    "DA7 nothing that a person with a screen reader or a keyboard would stumble over",
    async () => {
      const [first] = await asAdmin("_admin/data:documents", {
        table: "orders",
        paginationOpts: { numItems: 1, cursor: null },
      }, "query").then(({ page }) => page);
      await checkLooks(dashboard, ["data/orders", "data?show=schema", `data/orders/${first._id}`]);
    },
  );
});
