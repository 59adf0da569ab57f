/** The page of examples/todo signs users in with a provider in a popup window, against a real server. */
import { join } from "node:path";
import type { Page } from "playwright-core";
import { openIdSecret, startOpenIdServer } from "../auth/support/open_id_server.ts";
import { startTestServer } from "../auth/server/test_server.ts";
import { testConfig } from "../server/support/fake_backend.ts";
import { TempFolder } from "../support/temp_folder.ts";
import { inChromium, sharedChromium } from "../support/shared_chromium.ts";
import { until } from "../support/waiting.ts";

Deno.test({
  ...inChromium(
    "OA1 OA10 OA11 OK1 OK4 PF1 PF2 a person signs in on the todo page with a provider, links, unlinks, and signs out in two tabs",
  ),
  async fn() {
    await using op = await startOpenIdServer();
    await using folder = new TempFolder();
    await Deno.writeTextFile(join(folder.path, "secret"), openIdSecret);
    const provider = { preset: "oidc", issuer: op.issuer, clientId: "app", clientSecret: { file: "secret" } };
    const authConfig = join(folder.path, "auth.json");
    await Deno.writeTextFile(authConfig, JSON.stringify({ providers: { work: provider, home: provider } }));
    await using server = await startTestServer({
      config: { functionsDir: "examples/todo/functions", staticDir: "examples/todo/public", dev: true },
      accounts: {
        authConfig: { kind: "file", path: authConfig },
        // Otherwise a mail would be another sign-in method.
        policy: { ...testConfig({ dataDir: "" }).accounts.policy, magicLink: false },
      },
    });
    op.serve(["work", "home"].map((name) => `${server.url}/api/auth/oauth/${name}/callback`));
    const browser = await sharedChromium();
    try {
      const context = await browser.newContext();
      const [page, other] = [await context.newPage(), await context.newPage()];
      for (const tab of [page, other]) {
        await tab.goto(server.url);
      }
      const signIn = (tab: Page) => tab.getByRole("button", { name: "Sign in with Work" });
      const me = (tab: Page) => tab.getByRole("button", { name: "Your account" });

      // Refused: reported with the provider's own text, in the other tab too.
      op.person = null;
      await signIn(page).click();
      for (const tab of [page, other]) {
        await tab.getByRole("alert").filter({ hasText: "The sign-in was refused at the provider" }).waitFor();
      }

      op.person = "ann";
      await signIn(page).click();
      for (const tab of [page, other]) await me(tab).filter({ hasText: "ANN" }).waitFor();
      await page.getByLabel("Name of a new list").fill("Groceries");
      await page.getByLabel("Name of a new list").press("Enter");
      await other.getByRole("link", { name: "Groceries" }).waitFor();
      // The picture that the provider has of her is the profile's.
      await me(page).locator("img[src='https://pictures.example.com/ann.png']").waitFor();

      // Out in both tabs, and in again as the same.
      await page.getByRole("button", { name: "Sign out" }).click();
      for (const tab of [page, other]) await signIn(tab).waitFor();
      await signIn(other).click();
      for (const tab of [page, other]) await tab.getByRole("link", { name: "Groceries" }).waitFor();
      await until(() => context.pages().length === 2, { what: "the window is closed" });

      op.person = "ann at home";
      const linked = (tab: Page) => tab.getByRole("list", { name: "Linked accounts" }).getByRole("listitem");
      await me(page).click();
      await page.getByRole("button", { name: "Link Home" }).click();
      await page.waitForURL((url) => url.origin === server.url && url.hash === "");
      await me(page).click();
      await linked(page).filter({ hasText: "Home" }).waitFor();
      await linked(page).filter({ hasText: "Home" }).getByRole("button", { name: "Unlink" }).click();
      await page.getByRole("button", { name: "Link Home" }).waitFor();
      // The last sign-in method cannot be removed.
      await linked(page).filter({ hasText: "Work" }).getByRole("button", { name: "Unlink" }).click();
      await page.getByRole("alert").filter({ hasText: "Set a password or link another identity first" })
        .waitFor();
      await page.getByRole("button", { name: "Close" }).click();

      await other.getByRole("button", { name: "Sign out" }).click();
      for (const tab of [page, other]) await signIn(tab).waitFor();
    } finally {
      await browser.close();
    }
  },
});
