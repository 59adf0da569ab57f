/** The page of examples/todo lets people sign in with a provider, in a window of its own, against a real one. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { openIdSecret, startOpenIdServer } from "../auth/support/open_id_server.ts";
import { startTestServer } from "../auth/server/test_server.ts";
import { launchChromium } from "../support/chromium.ts";

Deno.test({
  name:
    "OA1 OA10 OA11 the todo page offers the server's providers, signs in with one and tells when that is refused",
  // The browser's driver and the provider keep timers and pipes of their own.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using op = await startOpenIdServer();
    const folder = await Deno.makeTempDir();
    await Deno.writeTextFile(join(folder, "secret"), openIdSecret);
    const work = { preset: "oidc", issuer: op.issuer, clientId: "app", clientSecret: { file: "secret" } };
    const authConfig = join(folder, "auth.json");
    await Deno.writeTextFile(authConfig, JSON.stringify({ providers: { work } }));
    await using server = await startTestServer({
      config: { functionsDir: "examples/todo/functions", staticDir: "examples/todo/public", dev: true },
      accounts: { authConfig },
    });
    op.serve([`${server.url}/api/auth/oauth/work/callback`]);
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      await page.goto(server.url);
      const button = page.getByRole("button", { name: "Sign in with Work" });
      op.person = null;
      await button.click();
      await page.getByRole("alert").filter({ hasText: "The sign-in was refused at the provider" }).waitFor();
      op.person = "ann";
      await button.click();
      await page.getByText("A fresh start.").waitFor();
      await page.getByLabel("Name of a new list").fill("Groceries");
      await page.getByLabel("Name of a new list").press("Enter");
      await page.getByRole("heading", { name: "Groceries" }).waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await button.click();
      await page.getByRole("link", { name: "Groceries" }).or(page.getByRole("heading", { name: "Groceries" }))
        .first().waitFor();
      assert.equal(page.context().pages().length, 1, "the window is closed");
    } finally {
      await browser.close();
      await Deno.remove(folder, { recursive: true });
    }
  },
});
