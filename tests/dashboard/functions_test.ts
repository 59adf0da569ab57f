/** The dashboard's functions and logs in a browser. */
import assert from "node:assert/strict";
import { parse } from "csv-parse/sync";
import { needs, onPath, type Service } from "../support/services.ts";
import { admin, checkAppearances, checkDialog, testDashboard, until } from "./support/dashboard_page.ts";

const functions = {
  "schema.ts": `import { defineSchema, defineTable } from "syncline/server";
import { z } from "zod";
export default defineSchema({
  orders: defineTable({ title: z.string(), state: z.enum(["open", "paid"]), total: z.number() }).index("by_state", ["state"]),
});`,
  "orders.ts":
    `import { untypedAction, untypedInternalMutation, untypedInternalQuery, untypedMutation, untypedQuery } from "syncline/server";
import { z } from "zod";
const state = z.enum(["open", "paid"]);
export const list = untypedQuery({ args: { state }, handler: (ctx, { state }) =>
  ctx.db.query("orders").withIndex("by_state", (q) => q.eq("state", state)).collect() });
export const open = untypedInternalQuery({ args: {}, handler: (ctx) =>
  ctx.db.query("orders").withIndex("by_state", (q) => q.eq("state", "open")).collect() });
/**
 * Adds an order.
 *
 * @param total In euros.
 */
export const add = untypedMutation({
  args: { title: z.string(), state, total: z.number(), rush: z.boolean().optional(), lines: z.array(z.object({ count: z.number() })).optional() },
  handler: async (ctx, { title, state, total, rush, lines }) => {
    ctx.log.info("adding", { title, rush, lines: lines?.length });
    return await ctx.db.insert("orders", { title, state, total });
  },
});
export const whoami = untypedQuery({ args: {}, handler: (ctx) => ctx.auth.userId() ?? ctx.auth.adminId() ?? "nobody" });
export const fail = untypedMutation({ args: {}, handler: (ctx) => {
  ctx.log.warn("about to fail");
  throw new Error("The payment provider did not answer");
} });
export const checkout = untypedAction({ args: { title: z.string() }, handler: async (ctx, { title }) =>
  await ctx.runMutation("orders:add", { title, state: "open", total: 5 }) });
export const tidy = untypedInternalMutation({ args: {}, handler: () => "tidied" });`,
};

const config = { executionLog: { keepMs: 86_400_000, bytesMax: 100_000_000, args: true } } as const;

testDashboard("functions and logs", { functions, config }, async (dashboard, t) => {
  const { page, server, go, waitForText, button, choose, keys, call, asAdmin } = dashboard;
  const result = page.locator("pre.result").first();
  const search = page.getByLabel("Search log lines and errors");
  const row = (name: string) => page.getByRole("button", { name, exact: true });
  const add = (title: string) => call("orders:add", { title, state: "open", total: 1 });
  const { body: { accessToken } } = await server.post("/api/auth/admin/signin", admin);
  /** Waits until runs are in the log, which stores them a moment after they end. */
  const loggedRuns = (filter: Record<string, string>) =>
    until(async () => {
      const response = await fetch(`${server.url}/api/admin/logs?${new URLSearchParams(filter)}`, {
        headers: { Authorization: `Bearer ${accessToken}` },
      });
      return (await response.json()).runs.length > 0;
    });

  await t.step(
    "a form generated from the argument schema runs a mutation and shows result and log lines",
    async () => {
      await go("functions/orders%3Aadd");
      const doc = page.locator(".doc");
      await doc.getByText("Adds an order.", { exact: true }).waitFor();
      assert.equal(await doc.getByRole("term").innerText(), "total");
      assert.equal(await doc.getByRole("definition").innerText(), "In euros.");
      await page.getByLabel("title").fill("<b>Sofa</b>");
      await page.getByLabel("state").selectOption("open");
      await page.getByLabel("total").fill("12.5");
      await page.getByLabel("rush").selectOption("true");
      await page.getByLabel("lines").fill('[{"count": 2}]');
      await button("Run").click();
      await waitForText("success");
      await waitForText(/\[INFO\] adding title=.*rush=true.*lines=1/);
    },
  );

  await t.step("form and JSON editor stay in sync", async () => {
    await button("JSON").click();
    const editor = page.getByRole("textbox", { name: "Arguments" });
    await editor.waitFor();
    assert.deepEqual(JSON.parse(await editor.innerText()), {
      title: "<b>Sofa</b>",
      state: "open",
      total: 12.5,
      rush: true,
      lines: [{ count: 2 }],
    });
    await dashboard.fillEditor(editor, '{ "title": "Rug", "state": "paid", "total": 1 }');
    await button("Form").click();
    assert.equal(await page.getByLabel("title").inputValue(), "Rug");
    assert.equal(await page.getByLabel("rush").inputValue(), "");
  });

  await t.step("DA16 edited arguments are kept while another function is shown", async () => {
    const list = page.getByRole("navigation", { name: "Functions" });
    await list.getByRole("link", { name: "whoami" }).click();
    await waitForText("No arguments.");
    await list.getByRole("link", { name: "add" }).click();
    assert.equal(await page.getByLabel("title").inputValue(), "Rug");
  });

  await t.step(
    "DA18 a function shows its types, and code that calls it with the entered arguments",
    async () => {
      const types = await page.getByLabel("Types", { exact: true }).innerText();
      assert.match(
        types,
        /^\(args: \{\n {2}title: string;\n {2}state: "open" \| "paid";\n {2}total: number;/,
      );
      assert.match(types, /rush\?: boolean;\n {2}lines\?: \{\n {4}count: number;\n {2}\}\[\];\n\}\) => any$/);
      const code = page.getByLabel("Code", { exact: true });
      assert.match(await code.innerText(), /^curl http:.*\/api\/mutation/);
      assert.match(await code.innerText(), /"path":"orders:add","args":\{"title":"Rug"/);
      await button("Client").click();
      await code.getByText('await client.mutation("orders:add", { title: "Rug", state: "paid", total: 1 })')
        .waitFor();
      await button("React").click();
      await code.getByText('const run = useMutation("orders:add");').waitFor();
      await page.locator(".card", { hasText: "/api/openapi.json" }).getByRole("link", { name: "API key" })
        .waitFor();
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        button("Download openapi.json").click(),
      ]);
      assert.match(await Deno.readTextFile(await download.path()), /"openapi": ?"3\.1/);
    },
  );

  await t.step("DA18 code has an example while no arguments are entered", async () => {
    await go("functions/orders%3Acheckout");
    await page.getByLabel("Code", { exact: true }).getByText(
      '{"path":"orders:checkout","args":{"title":"text"}}',
    )
      .waitFor();
    await go("functions");
    await waitForText("POST http");
    await waitForText("/api/openapi.json");
    await go("functions/orders%3Aadd");
  });

  const programs = [["curl", "sh"], ["Python", "python3"]].map(([tab = "", program = ""]) => {
    const names = [...new Set([tab.toLowerCase().replace("python", "python3"), program])];
    return [
      tab,
      program,
      names.map((name): Service => ({ name, find: () => onPath(name), hint: "a package of the system" })),
    ] as const;
  });
  for (const [tab, program, services] of programs) {
    await t.step({
      ...needs(services, `DA18 the code for ${tab} calls the function with the entered arguments`),
      async fn() {
        const title = `${tab}: "Léa's" \\ 🛋 $HOME \`x\``;
        const args = { title, state: "paid", total: 1.5, rush: true, lines: [] };
        await go(`functions/orders%3Aadd?args=${encodeURIComponent(JSON.stringify(args))}`);
        await button(tab).click();
        const code = page.getByLabel("Code", { exact: true });
        // The arguments of the program before may still be shown.
        await until(async () => (await code.innerText()).includes(`${tab}: `));
        const { body } = await server.post("/api/auth/signup", {
          email: `${program}@example.com`,
          password: "a good password",
        });
        const { success, stdout, stderr } = await new Deno.Command(program, {
          args: ["-c", await code.innerText()],
          env: { ACCESS_TOKEN: body.accessToken },
        }).output();
        assert.ok(success, new TextDecoder().decode(stderr));
        const orders = await call("orders:list", { state: "paid" }, "query");
        const added = orders.find((order: { readonly title: string }) => order.title === title);
        assert.equal(added?.total, 1.5);
        assert.match(new TextDecoder().decode(stdout), new RegExp(added._id));
      },
    });
  }

  await t.step("DA18 a run is repeated with its arguments", async () => {
    await page.getByLabel("title").fill("Bench");
    await button("Run").click();
    await waitForText("Your recent runs");
    await page.getByLabel("title").fill("Other");
    const past = page.getByRole("row", { name: /Bench/ });
    await past.first().getByRole("button", { name: "Run again" }).click();
    await past.nth(1).waitFor();
    assert.equal(await page.getByLabel("title").inputValue(), "Bench");
    const args = JSON.stringify({ title: "From a link", state: "open", total: 3 });
    await go(`functions/orders%3Aadd?args=${encodeURIComponent(args)}`);
    await page.waitForFunction(() =>
      [...document.querySelectorAll("input")].some(({ value }) => value === "From a link")
    );
    // Filtering the list keeps the arguments of the link.
    await page.getByLabel("Filter functions").fill("add");
    await page.getByRole("link", { name: "whoami" }).waitFor({ state: "detached" });
    assert.equal(await page.getByLabel("title").inputValue(), "From a link");
    await page.getByLabel("Filter functions").fill("");
    await page.getByLabel("title").fill("Rug");
  });

  await t.step("functions are filtered by kind", async () => {
    const list = page.getByRole("navigation", { name: "Functions" });
    await page.getByLabel("Kind", { exact: true }).selectOption("internal");
    await list.getByRole("link", { name: "tidy" }).waitFor();
    await list.getByRole("link", { name: "whoami" }).waitFor({ state: "detached" });
    await list.getByRole("link", { name: "tidy" }).click();
    const code = page.getByLabel("Code", { exact: true });
    await until(async () => /^npx syncline run orders:tidy '\{\}'/.test(await code.innerText()));
    await page.getByLabel("Kind", { exact: true }).selectOption("");
    await list.getByRole("link", { name: "whoami" }).waitFor();
    await go("functions/orders%3Aadd");
  });

  await t.step("the server rejects invalid arguments", async () => {
    await page.getByLabel("total").fill("");
    await button("Run").click();
    await waitForText(/total/);
    await page.locator(".badge[data-tone=bad]").first().waitFor();
  });

  await t.step("DA22 Run shows the duration of a query, Explain its reads", async () => {
    await call("orders:list", { state: "paid" }, "query");
    await loggedRuns({ function: "orders:list" });
    await go("users");
    await go("functions/orders%3Alist");
    // A query begins with the arguments of its slowest recent run.
    await waitForText("These are the arguments of the slowest recent run");
    assert.equal(await page.getByLabel("state").inputValue(), '"paid"');
    await page.getByLabel("state").selectOption("open");
    await page.getByText("These are the arguments of").waitFor({ state: "detached" });
    await button("Run").click();
    await waitForText(/ms, at commit/);
    await waitForText("Read orders by_state.");
    await button("Explain").click();
    const row = page.getByRole("row", { name: /^orders by_state 1 1 1 state/ });
    await row.waitFor();
    await waitForText(/1 document read, at commit/);
    await button("Run").click();
    await row.waitFor({ state: "detached" });
  });

  await t.step("DA6 a query is watched live, and its result is shown as text", async () => {
    await button("Watch live").click();
    await waitForText("<b>Sofa</b>");
    await add("Stool");
    await waitForText("Stool");
    assert.equal(await page.locator("b", { hasText: "Sofa" }).count(), 0, "markup was rendered");
    await button("Stop watching").click();
    await page.getByText(/\d+ results?/).waitFor({ state: "detached" });
  });

  await t.step("SY29 an internal query is watched as the administrator", async () => {
    await go("functions/orders%3Aopen");
    await button("Watch live").click();
    await waitForText("Internal queries run as you");
    await waitForText("<b>Sofa</b>");
    await add("Footstool");
    await waitForText("Footstool");
    await button("Stop watching").click();
  });

  await t.step("SY26 a function is run as a user found by email", async () => {
    const { body } = await server.post("/api/auth/signup", {
      email: "ben@example.com",
      password: "a good password",
    });
    await go("functions/orders%3Awhoami");
    await button("Run").click();
    await result.getByText("nobody").waitFor();
    await page.getByLabel("Run as").selectOption("user");
    await page.getByLabel("User", { exact: true }).fill("ben@example.com");
    await page.locator(`datalist option[value="ben@example.com"]`).waitFor({ state: "attached" });
    await button("Run").click();
    await result.getByText(body.userId).waitFor();
    await page.locator(".card", { hasText: "success" }).first().waitFor();
    await button("Watch live").click();
    await page.locator(".card", { hasText: /\d+ results?/ }).getByText(body.userId).waitFor();
    await button("Stop watching").click();
    // Watching has ended, and so has its session.
    const sessions = () => asAdmin("_admin/users:get", { userId: body.userId }, "query");
    await until(async () =>
      (await sessions()).list.every(({ impersonatedBy }: { impersonatedBy: string | null }) =>
        impersonatedBy === null
      )
    );
    // If the session ends earlier, the signed-out result must not be shown as the user's.
    await button("Watch live").click();
    const live = page.locator(".card", { hasText: /\d+ results?/ });
    await live.getByText(body.userId).waitFor();
    await asAdmin("_admin/users:endSessions", { userId: body.userId });
    await live.getByText("Session ended").waitFor();
    await button("Stop watching").click();
  });

  await t.step("a function is run as the administrator", async () => {
    await page.getByLabel("Run as").selectOption("me");
    const before = await result.textContent();
    await button("Run").click();
    await page.waitForFunction((before) => {
      const text = document.querySelector("pre.result")?.textContent ?? "";
      return text !== "" && text !== before && text !== '"nobody"';
    }, before);
  });

  await t.step("an unknown user shows an error", async () => {
    await page.getByLabel("Run as").selectOption("user");
    await page.getByLabel("User", { exact: true }).fill("nobody-at-all");
    await button("Run").click();
    await waitForText("Account not found");
  });

  await t.step("an internal function is run too", async () => {
    await go("functions/orders%3Atidy");
    await waitForText("No arguments.");
    await button("Run").click();
    await result.getByText("tidied").waitFor();
  });

  await t.step("a failure is shown with the stack in the author's files", async () => {
    await go("functions/orders%3Afail");
    await button("Run").click();
    await result.getByText(/The payment provider did not answer[^]*orders\.ts/).waitFor();
  });

  await t.step("a function shows its performance and recent errors", async () => {
    await call("orders:gone");
    await go("overview");
    await go("functions/orders%3Afail");
    await waitForText("100%");
    await waitForText("Recent errors");
  });

  await t.step("all functions are sorted by a column", async () => {
    await go("functions");
    const first = page.locator("tbody tr").first();
    await first.getByRole("link", { name: /^orders:/ }).waitFor();
    await button("Errors").click();
    await first.getByRole("link", { name: "orders:fail" }).waitFor();
    await page.getByLabel("Time range").selectOption("day");
    await first.getByRole("link", { name: "orders:fail" }).waitFor();
  });

  await t.step("functions that do not exist are explained, and lead to their calls", async () => {
    const unknown = page.getByRole("row", { name: /^Functions that do not exist mutation/ });
    assert.equal(await page.getByText("(unknown)").count(), 0);
    await unknown.getByRole("link", { name: "logs" }).click();
    await row("orders:gone").waitFor();
    // A rejected call has the color of the histogram.
    const rejected = page.getByRole("row", { name: /orders:gone/ }).getByText("rejected");
    const colors = [rejected, page.locator(".outcome[data-outcome=user_error]")];
    assert.deepEqual(
      await Promise.all(
        colors.map((one) =>
          one.evaluate((element) =>
            element.classList.contains("badge")
              ? element.getAttribute("data-tone")
              : getComputedStyle(element).getPropertyValue("--tone") ===
                  getComputedStyle(element).getPropertyValue("--warn") && "warn"
          )
        ),
      ),
      ["warn", "warn"],
    );
  });

  await t.step("by keyboard only: a function is found by its name and run", async () => {
    await go("functions");
    await page.getByLabel("Filter functions").focus();
    await page.keyboard.type("tid");
    await page.getByRole("navigation", { name: "Functions" }).getByRole("link").nth(1).waitFor({
      state: "detached",
    });
    // Sorted by kind first.
    await keys("Tab", "Tab");
    await page.locator("nav a:focus", { hasText: "tid" }).waitFor();
    await keys("Enter");
    await waitForText("No arguments.");
    await button("Run").focus();
    await keys("Enter");
    await result.getByText("tidied").waitFor();
  });

  await t.step("a run is found by text in its log lines", async () => {
    await go("logs");
    // The rows without a filter first: a click while they are replaced may have no effect.
    await row("orders:tidy").first().waitFor();
    await search.fill("Sofa");
    await row("orders:tidy").first().waitFor({ state: "detached" });
    await row("orders:add").first().click();
    await page.getByRole("dialog").getByText(/\[INFO\] adding title=/).waitFor();
    await button("Close").click();
  });

  await t.step("new runs appear while the log is live, and not while it is paused", async () => {
    const stream = /\/logs\/stream\?.*text=Desk/;
    // The list is empty. This run ends before the stream begins.
    await page.route(stream, async (route) => {
      await add("Desk");
      await route.continue();
    });
    const desks = page.getByRole("row").filter({ hasText: "Desk" });
    await search.fill("Desk");
    await desks.first().waitFor();
    await page.unroute(stream);
    await add("Desk");
    await desks.nth(1).waitFor();
    assert.equal(await desks.count(), 2);
    await button("Live").click();
    await button("Paused").click();
    await button("Live").waitFor();
  });

  await t.step("filters are removed by their chips", async () => {
    await button(/^Remove filter text:/).click();
    await page.getByLabel("Outcome", { exact: true }).selectOption("error");
    await row("orders:add").first().waitFor({ state: "detached" });
    await row("orders:fail").first().waitFor();
    await button(/^Remove filter outcome:/).click();
    await row("orders:add").first().waitFor();
  });

  await t.step("an error is opened with its stack and log lines", async () => {
    await go("logs?outcome=error");
    // A click while the rows are replaced may have no effect.
    await row("orders:add").first().waitFor({ state: "detached" });
    await row("orders:fail").first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("[WARN] about to fail").waitFor();
    await dialog.getByRole("link", { name: /^orders\.ts:\d+:\d+$/ }).first().click();
    await page.locator(".code [aria-current=true]", { hasText: 'throw new Error("The payment provider' })
      .waitFor();
    await page.goBack();
    // The version of a run leads to the declaration of the function.
    await dialog.getByRole("link", { name: /^[0-9a-f]{7}$/ }).click();
    await page.locator(".code [aria-current=true]", { hasText: "export const fail" }).waitFor();
    await go("logs?outcome=error");
  });

  await t.step("EL20 a run shows its arguments, which its function is opened with", async () => {
    // No other run has this text, and the log contains the run a moment after it ends.
    await add("Armchair");
    await go("logs?text=Armchair");
    await row("orders:fail").first().waitFor({ state: "detached" });
    await row("orders:add").first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Arguments").getByText('"title": "Armchair"').waitFor();
    await dialog.getByRole("link", { name: "Run with these arguments" }).click();
    await page.getByRole("heading", { name: /orders:add/ }).waitFor();
    assert.equal(await page.getByLabel("title").inputValue(), "Armchair");
    await go("logs?outcome=error");
  });

  await t.step("the address names the open run, and a link to it opens it", async () => {
    await row("orders:fail").first().click();
    await page.getByRole("dialog").waitFor();
    await page.waitForURL(/run=\d+/);
    await checkDialog(dashboard, "run");
    const other = await dashboard.context.newPage();
    await other.goto(page.url().replace("outcome=error&", ""));
    await other.getByRole("dialog").getByRole("heading", { name: "orders:fail" }).waitFor();
    await other.goto(page.url().replace(/run=\d+/, "run=999999"));
    await other.getByText("This run is not in the log").waitFor();
    await other.close();
    await button("Close").click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.waitForURL((url) => !url.hash.includes("run="));
  });

  await t.step("runs are filtered by any failure, duration and user, and exported", async () => {
    const email = "logan@example.com";
    const { body } = await server.post("/api/auth/signup", { email, password: "a good password" });
    const bearer = body.accessToken;
    await server.post("/api/mutation", { path: "orders:fail", args: {} }, { bearer });
    await go("logs");
    await page.getByLabel("Outcome", { exact: true }).selectOption({ label: "any failure" });
    // The list may also contain a rejected run of orders:add.
    await page.getByRole("cell", { name: "success", exact: true }).first().waitFor({ state: "detached" });
    await page.getByRole("cell", { name: email }).waitFor();
    await page.getByRole("cell", { name: "anonymous" }).first().waitFor();
    await page.getByLabel("User", { exact: true }).fill("unknown@example.com");
    await keys("Enter");
    await waitForText("User not found");
    await page.getByLabel("User", { exact: true }).fill("logan");
    await keys("Enter");
    await button(`Remove filter user: ${email}`).waitFor();
    await page.getByRole("cell", { name: "anonymous" }).first().waitFor({ state: "detached" });
    const exported = async (format: string) => {
      const download = page.waitForEvent("download");
      await choose("Export", `As ${format}`);
      const file = await download;
      await waitForText(`1 run saved in ${file.suggestedFilename()}.`);
      return await Deno.readTextFile(await file.path());
    };
    const run = JSON.parse(await exported("NDJSON"));
    assert.deepEqual([run.function, run.outcome, run.user], ["orders:fail", "error", email]);
    assert.equal(run.time, new Date(run.at).toISOString());
    const rows: string[][] = parse(await exported("CSV"));
    const cell = (name: string) => rows[1]?.[rows[0]?.indexOf(name) ?? -1];
    assert.equal(rows.length, 2);
    assert.deepEqual([cell("time"), cell("user"), cell("outcome")], [run.time, email, "error"]);
    assert.equal(cell("stack"), run.error.stack);
    await page.getByLabel("Duration", { exact: true }).selectOption("10000");
    await waitForText("No matching runs");
  });

  await t.step("EL5 an action's run lists the runs it called and opens them", async () => {
    await call("orders:checkout", { title: "Bench" }, "action");
    await go("logs?function=orders%3Acheckout");
    await row("orders:checkout").first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Runs of this request").waitFor();
    await dialog.getByRole("button", { name: /orders:add/ }).click();
    await dialog.getByRole("heading", { name: "orders:add" }).waitFor();
    await dialog.getByText(/adding title=.*Bench/).waitFor();
    await button("Close").click();
  });

  await t.step("the histogram shows each outcome, and deploys as links to their version", async () => {
    const deployedAt = Date.now() - 600_000;
    const hash = "a1b2c3d4e5f6";
    const served = { hash, from: deployedAt, to: null, by: "key", message: null };
    const before = { ...served, hash: "b1b2b3b4b5b6", from: deployedAt - 1_000, to: deployedAt };
    await page.route(
      "**/api/admin/functions/versions",
      (route) => route.fulfill({ json: { pinned: false, versions: [], history: [served, before] } }),
    );
    await go("users");
    await go("logs");
    await page.locator(".outcome[data-outcome=error]").waitFor();
    await page.locator(".outcome[data-outcome=success]").waitFor();
    const slider = page.getByRole("slider", { name: /^Runs over time/ });
    assert.match(await slider.getAttribute("aria-valuetext") ?? "", /^\d+ runs, .*\d+ error/);
    assert.ok(await page.locator(".bar > [data-outcome=error]").count() > 0);
    // The earlier deploy has a line, but no space for its name.
    const deploys = page.getByRole("list", { name: "Deploys" });
    await deploys.getByRole("link", { name: "a1b2c3d +1" }).waitFor();
    assert.equal(await deploys.getByRole("listitem").count(), 2);
    await page.unrouteAll();
    // Runs of other days have a date.
    const times = page.locator("td time");
    assert.match(await times.first().innerText(), /^\d\d:\d\d:\d\d\.\d{3}$/);
    await page.route("**/api/admin/logs?*", async (route) => {
      const response = await route.fetch();
      const { runs, ...page } = await response.json();
      const earlier = runs.map((run: { at: number }) => ({ ...run, at: run.at - 2 * 86_400_000 }));
      await route.fulfill({ json: { ...page, runs: earlier } });
    });
    await go("users");
    await go("logs");
    assert.match(await times.first().innerText(), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/);
    await page.unrouteAll();
  });

  await t.step("dragging over the histogram sets the time filter", async () => {
    await go("logs");
    const bars = page.getByRole("slider", { name: /^Runs over time/ });
    const box = await bars.boundingBox();
    assert.ok(box);
    await page.mouse.move(box.x + box.width * 0.2, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.4, box.y + 20);
    await page.mouse.up();
    await button(/^Remove filter from:/).waitFor();
    await waitForText("No matching runs");
    const time = page.getByLabel("Time", { exact: true });
    assert.equal(await time.inputValue(), "chosen");
    await button(/^Remove filter from:/).click();
    await button(/^Remove filter until:/).click();
    assert.equal(await time.inputValue(), "");
    await row("orders:checkout").first().waitFor();
  });

  await t.step("by keyboard only: a histogram range sets the time filter", async () => {
    await page.getByRole("slider", { name: /^Runs over time/ }).focus();
    await keys("End", "Shift+ArrowLeft", "Shift+ArrowLeft", "Shift+ArrowLeft", "Enter");
    await button(/^Remove filter from:/).waitFor();
    await row("orders:checkout").first().waitFor();
  });

  await t.step("a link shares the filter", async () => {
    const other = await dashboard.context.newPage();
    await other.goto(page.url());
    await other.getByRole("button", { name: /^Remove filter from:/ }).waitFor();
    await other.close();
    await button("Copy link").click();
    await waitForText(/Link copied|Copy the link from the address bar/);
  });

  await t.step("runs are requested again when the log was not available", async () => {
    // Failed requests on this page are faults.
    const other = await dashboard.context.newPage();
    let requests = 0;
    await other.route("**/api/admin/logs?*", async (route) => {
      if (requests++ > 0) return await route.continue();
      const errorMessage = "The execution log restarts";
      const json = { status: "error", errorMessage, errorData: { code: "unavailable" } };
      await route.fulfill({ status: 503, json });
    });
    await other.goto(`${server.url}/_/#/logs`);
    await other.getByRole("button", { name: "orders:checkout", exact: true }).first().waitFor();
    assert.ok(requests > 1);
    await other.close();
  });

  await t.step("the log is filtered by time, kind and level", async () => {
    await go("logs");
    const time = page.getByLabel("Time", { exact: true });
    await time.selectOption({ label: "Last hour" });
    await button("Remove filter time: Last hour").waitFor();
    assert.match(page.url(), /last=3600000/);
    assert.equal(
      await time.evaluate((select: HTMLSelectElement) => select.selectedOptions[0]?.text),
      "Last hour",
    );
    await page.getByLabel("Kind", { exact: true }).selectOption("action");
    await row("orders:add").first().waitFor({ state: "detached" });
    await page.getByLabel("Kind", { exact: true }).selectOption("");
    await page.getByLabel("Level", { exact: true }).selectOption("warn");
    await row("orders:checkout").first().waitFor({ state: "detached" });
    await row("orders:fail").first().waitFor();
  });

  await t.step(
    "DA7 axe finds no accessibility violations",
    async () => {
      await checkAppearances(dashboard, [
        "functions",
        "functions/orders%3Aadd",
        "logs",
        "logs?outcome=error",
      ]);
    },
  );
});
