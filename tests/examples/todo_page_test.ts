/** The page of examples/todo in a real browser: signing up, lists, items, pages, search, and a second tab that follows. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { Child } from "../support/processes/child.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { inChromium, sharedChromium } from "../support/shared_chromium.ts";
import { until } from "../support/waiting.ts";
import { codeOf, STEP_MS } from "../auth/support/test_factors.ts";

Deno.test(
  inChromium("two tabs of one user: lists, items, pages and search stay the same in both"),
  async () => {
    await using dataFolder = new TempFolder();
    const dataDir = dataFolder.path;
    await using server = new Child({
      args: [
        ..."run --quiet --no-prompt -P=serve main.ts --port 0".split(" "),
        ...["--functions", "examples/todo/functions", "--static", "examples/todo/public", "--data", dataDir],
      ],
    });
    const [url] = await server.line(/http:\/\/127\.0\.0\.1:(\d+)/);
    const browser = await sharedChromium();
    try {
      const context = await browser.newContext();
      const errors: string[] = [];
      const open = async () => {
        const page = await context.newPage();
        page.on("pageerror", (error) => errors.push(error.message));
        await page.goto(url);
        return page;
      };
      const one = await open();
      await one.getByRole("button", { name: "Create an account" }).click();
      await one.getByLabel("Email address").fill("ada@example.com");
      await one.getByLabel("Password").fill("correct horse");
      await one.getByRole("button", { name: "Create account", exact: true }).click();
      await one.getByText("A fresh start.").waitFor();

      await one.getByLabel("Name of a new list").fill("Groceries");
      await one.getByLabel("Name of a new list").press("Enter");
      await one.getByRole("heading", { name: "Groceries" }).waitFor();
      const other = await open();
      await other.getByRole("heading", { name: "Groceries" }).waitFor();

      for (let n = 1; n <= 23; n++) await add(one, `item ${n}`);
      await add(one, "oat milk <i>now</i>");
      await row(other, "oat milk <i>now</i>").waitFor();
      assert.equal(await other.locator(".item").count(), 20);
      await other.getByRole("button", { name: "Show more" }).click();
      await row(other, "item 1").waitFor();
      assert.equal(await other.locator(".item").count(), 24);

      await row(one, "item 23").check();
      await other.getByRole("button", { name: "Done", exact: true }).click();
      // The row is in the full list as well.
      await until(async () => await other.locator(".item").count() === 1, { what: "only one item is done" });
      await row(other, "item 23").waitFor();
      await other.getByRole("button", { name: "Delete: item 23" }).click();
      await other.getByText("Nothing is done yet.").waitFor();

      await other.getByLabel("Search in all lists").fill("oat mi");
      await row(other, "oat milk <i>now</i>").waitFor();
      assert.equal(await other.locator(".item").count(), 1);

      await other.getByRole("button", { name: "Sign out" }).click();
      await other.getByRole("button", { name: "Sign in", exact: true }).waitFor();
      await one.getByRole("button", { name: "Sign in", exact: true }).waitFor();
      await one.getByLabel("Email address").fill("ada@example.com");
      await one.getByLabel("Password").fill("wrong password");
      await one.getByRole("button", { name: "Sign in", exact: true }).click();
      await one.getByRole("alert").filter({ hasText: "The email address or the password is wrong" })
        .waitFor();
      await one.getByLabel("Password").fill("correct horse");
      await one.getByRole("button", { name: "Sign in", exact: true }).click();
      await one.getByRole("heading", { name: "Groceries" }).waitFor();

      await one.getByRole("button", { name: "ada@example.com" }).or(one.locator("#me")).first().click();
      await one.getByRole("button", { name: "Set up a second factor" }).click();
      await one.getByLabel("Your password").fill("correct horse");
      await one.getByRole("button", { name: "Continue" }).click();
      await one.getByAltText("QR code for an authenticator app").waitFor();
      const secret = await one.locator("#account code").innerText();
      await one.getByLabel("Code that the app shows").fill(codeOf(secret, Date.now(), -STEP_MS));
      await one.getByRole("button", { name: "Confirm" }).click();
      const shownCodes = one.getByRole("list", { name: "Recovery codes" }).getByRole("listitem");
      await shownCodes.nth(9).waitFor();
      const codes = await shownCodes.allInnerTexts();
      assert.equal(codes.length, 10);
      await one.getByRole("button", { name: "Close" }).click();
      await one.getByRole("button", { name: "Sign out" }).click();
      for (const typed of [codes[0] ?? "", codeOf(secret, Date.now(), STEP_MS)]) {
        await one.getByLabel("Email address").fill("ada@example.com");
        await one.getByLabel("Password").fill("correct horse");
        await one.getByRole("button", { name: "Sign in", exact: true }).click();
        const code = one.getByLabel("Code of your authenticator app, or a recovery code");
        await code.fill("wrong");
        await one.getByRole("button", { name: "Continue" }).click();
        await one.getByRole("alert").filter({ hasText: "not valid" }).waitFor();
        await code.fill(typed);
        await one.getByRole("button", { name: "Continue" }).click();
        await one.getByRole("heading", { name: "Groceries" }).waitFor();
        await one.getByRole("button", { name: "Sign out" }).click();
      }
      assert.deepEqual(errors, []);
    } finally {
      await browser.close();
    }
  },
);

async function add(page: Page, text: string): Promise<void> {
  const box = page.getByLabel("New task");
  await box.fill(text);
  await box.press("Enter");
  await row(page, text).waitFor();
}

function row(page: Page, text: string) {
  return page.getByRole("checkbox", { name: `Done: ${text}`, exact: true });
}
