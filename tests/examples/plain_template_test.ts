/** The template without a build step, as a newcomer opens it on a phone. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { startTestServer } from "../auth/server/test_server.ts";
import { projectDir } from "../support/processes/child.ts";
import { inChromium, sharedChromium } from "../support/shared_chromium.ts";

const template = join(projectDir, "templates/plain");

async function filesOf(folder: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for await (const { name } of Deno.readDir(folder)) {
    files[name] = await Deno.readTextFile(join(folder, name));
  }
  return files;
}

Deno.test({
  ...inChromium(
    "NP2 the page of the plain template shows new visitors a sign-in form, and their tasks in each window",
  ),
  async fn() {
    await using server = await startTestServer({
      functions: await filesOf(join(template, "functions")),
      config: { staticDir: join(template, "public") },
    });
    const browser = await sharedChromium();
    try {
      const context = await browser.newContext({ viewport: { width: 375, height: 740 } });
      const [page, other] = [await context.newPage(), await context.newPage()];
      await page.goto(server.url);
      await page.getByLabel("Email").fill("ada@example.com");
      await page.getByLabel("Password").fill("correct horse battery");
      const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
      assert.ok(await fits());
      await page.getByRole("button", { name: "Sign up" }).click();
      await page.getByPlaceholder("What needs to be done?").fill(`Milk ${"x".repeat(150)}`);
      await page.getByRole("button", { name: "Add" }).click();
      await page.getByText("Milk").waitFor();
      assert.ok(await fits());
      await other.goto(server.url);
      await other.getByText("Milk").waitFor();
      await page.getByRole("checkbox").check();
      await other.locator("input:checked").waitFor();
      await other.getByRole("button", { name: "Remove Milk" }).click();
      await page.getByText("Nothing to do").waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByLabel("Email").waitFor();
    } finally {
      await browser.close();
    }
  },
});
