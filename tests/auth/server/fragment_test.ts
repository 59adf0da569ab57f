/** Tokens in a page's address, in a browser: accepted only if this browser started the sign-in. */
import assert from "node:assert/strict";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { launchChromium } from "../../support/chromium.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { startSmtpServer } from "../mail/smtp_server.ts";
import { startTestServer, type TestServer } from "./test_server.ts";

const password = "correct horse";

const APP = `<!doctype html><title>App</title><p role="status">loading</p><p id="result"></p>
<script type="module">
import { SynclineClient } from "/_/client.js";
const client = window.client = new SynclineClient(location.origin);
const show = () => {
  const { status, userId } = client.authState();
  document.querySelector("[role=status]").textContent = userId ? status + " " + userId : status;
};
client.onAuthState(show);
show();
const result = await client.auth.completeRedirect().catch(({ code }) => ({ type: "error", code }));
window.result = result;
document.querySelector("#result").textContent = result.type;
</script>`;

interface World {
  readonly server: TestServer;
  readonly browser: Browser;
  readonly linkTo: (email: string, count: number) => Promise<string>;
  /** Signs an account in over HTTP. Returns its id and the fragment of a provider's callback. */
  readonly session: (email: string) => Promise<{ readonly userId: string; readonly fragment: string }>;
}

async function withWorld(test: (world: World) => Promise<void>): Promise<void> {
  await using folder = new TempFolder();
  await Deno.writeTextFile(join(folder.path, "index.html"), APP);
  await using smtp = await startSmtpServer();
  await using server = await startTestServer({
    config: { staticDir: folder.path, dev: true },
    accounts: { smtp: { url: `smtp://127.0.0.1:${smtp.port}`, from: "App <no-reply@example.com>" } },
  });
  const browser = await launchChromium();
  try {
    await test({
      server,
      browser,
      linkTo: async (email, count) =>
        /http:\S+/.exec((await smtp.mailTo(email, count)).text ?? "")?.[0] ?? "",
      async session(email) {
        const { body } = await server.post("/api/auth/signup", { email, password });
        const fragment = new URLSearchParams({
          svc_access_token: body.accessToken,
          svc_refresh_token: body.refreshToken,
          svc_expires_in: String(body.expiresIn),
          svc_user_id: body.userId,
        });
        return { userId: body.userId, fragment: fragment.toString() };
      },
    });
  } finally {
    await browser.close();
  }
}

async function open(context: BrowserContext, address: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(address);
  await page.locator("#result").filter({ hasText: /./ }).waitFor();
  return page;
}

const status = (page: Page, text: string) =>
  page.getByRole("status").filter({ hasText: new RegExp(`^${text}$`) }).waitFor();
const typeOf = (page: Page) => page.locator("#result").textContent();

interface Scenario {
  readonly name: string;
  readonly test: (world: World) => Promise<void>;
}

/** Each uses separate accounts. */
const scenarios: readonly Scenario[] = [
  {
    name: "OA17 a link with tokens of another account signs no one in",
    test: async ({ server, browser, session }) => {
      const attacker = await session("mallory@example.com");
      const context = await browser.newContext();

      const guest = await open(context, `${server.url}/#${attacker.fragment}`);
      assert.equal(await typeOf(guest), "ignored");
      await status(guest, "signedOut");
      assert.equal(new URL(guest.url()).hash, "", "the tokens stay in the address");

      const { body: victim } = await server.post("/api/auth/signup", {
        email: "victim@example.com",
        password,
      });
      await guest.evaluate(
        ([email, password]) => (globalThis as unknown as PageGlobals).client.auth.signIn({ email, password }),
        ["victim@example.com", password] as const,
      );
      await status(guest, `signedIn ${victim.userId}`);
      for (const state of ["", "&svc_state=", "&svc_state=guessed", `&svc_state=${crypto.randomUUID()}`]) {
        const page = await open(context, `${server.url}/?app#${attacker.fragment}${state}`);
        assert.equal(await typeOf(page), "ignored", state);
        await status(page, `signedIn ${victim.userId}`);
        assert.equal(new URL(page.url()).hash, "");
        await page.close();
      }
      await status(guest, `signedIn ${victim.userId}`);

      // A started sign-in is useless to others too, because they do not know its state.
      const address = await guest.evaluate(() =>
        (globalThis as unknown as PageGlobals).client.auth.oauthAddress("github", location.href)
      );
      const state = new URL(address).searchParams.get("app_state") ?? "";
      assert.match(state, /^[\da-f-]{36}$/);
      const lured = await open(context, `${server.url}/#${attacker.fragment}`);
      assert.equal(await typeOf(lured), "ignored");
      const own = await open(context, `${server.url}/#${attacker.fragment}&svc_state=${state}`);
      assert.equal(await typeOf(own), "signedIn");
      const again = await open(context, `${server.url}/#${attacker.fragment}&svc_state=${state}`);
      assert.equal(await typeOf(again), "ignored", "a state was taken twice");
      await context.close();
    },
  },
  {
    name:
      "CO6 a sign-in link signs in immediately in the browser that requested it, and after a confirmation in others",
    test: async (world) => {
      const { server, browser, linkTo } = world;
      const asked = await browser.newContext();
      const page = await open(asked, server.url);
      const request = (email: string) =>
        page.evaluate(
          ([email]) =>
            (globalThis as unknown as PageGlobals).client.auth.requestMagicLink({
              email,
              redirectTo: `${location.origin}/`,
            }),
          [email] as const,
        );
      await request("ann@example.com");
      const here = await open(asked, await linkTo("ann@example.com", 1));
      assert.equal(await typeOf(here), "signedIn");
      assert.equal(new URL(here.url()).hash, "");
      await asked.close();

      const elsewhere = await browser.newContext();
      const other = await open(elsewhere, server.url);
      await server.post("/api/auth/magic/request", {
        email: "eve@example.com",
        redirectTo: `${server.url}/`,
      });
      const link = await linkTo("eve@example.com", 1);
      assert.match(new URL(link).hash, /^#svc_magic_token=[\w-]{43}$/);
      const opened = await open(elsewhere, link);
      assert.equal(await typeOf(opened), "magicLink");
      await status(opened, "signedOut");
      await status(other, "signedOut");
      assert.equal(new URL(opened.url()).hash, "");
      await opened.evaluate(() => {
        const { client, result } = globalThis as unknown as PageGlobals;
        return client.auth.signInWithMagic({ token: result.token });
      });
      await status(opened, "signedIn \\S+");
      await elsewhere.close();
    },
  },
  {
    name: "CO6 the server's own page for links hands the sign-in to the app",
    test: async ({ server, browser, linkTo }) => {
      const context = await browser.newContext();
      const page = await context.newPage();
      await server.post("/api/auth/magic/request", { email: "bob@example.com" });
      await page.goto(await linkTo("bob@example.com", 1));
      await page.getByRole("button").click();
      await page.locator("#result").filter({ hasText: "signedIn" }).waitFor();
      await status(page, "signedIn \\S+");
      await context.close();
    },
  },
  {
    name: "OA17 the page for impersonation believes no link but the dashboard's",
    test: async ({ server, browser, session }) => {
      const attacker = await session("trudy@example.com");
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(`${server.url}/_/as.html#as=ann&${attacker.fragment}`);
      await page.getByRole("status").filter({ hasText: "Open this page from a user in the dashboard" })
        .waitFor();
      assert.equal(await page.locator("iframe").count(), 0);
      assert.equal(new URL(page.url()).hash, "");
      const app = await open(context, server.url);
      await status(app, "signedOut");
      // The dashboard has the same origin and records that it opens the window.
      const state = crypto.randomUUID();
      const note = (key: string) => localStorage.setItem(key, String(Date.now() + 60_000));
      await app.evaluate(note, `syncline-flow ${state}`);
      await page.goto("about:blank");
      await page.goto(`${server.url}/_/as.html#as=ann&${attacker.fragment}&svc_state=${state}`);
      await page.getByRole("status").filter({ hasText: "Signed in as ann by an administrator" }).waitFor();
      await page.frameLocator("iframe").getByRole("status").filter({ hasText: `signedIn ${attacker.userId}` })
        .waitFor();
      await context.close();
    },
  },
];

Deno.test({
  name: "tokens in a page's address",
  // The browser's driver keeps its own timers and pipes.
  sanitizeOps: false,
  sanitizeResources: false,
  fn: (t) =>
    withWorld(async (world) => {
      for (const { name, test } of scenarios) await t.step(name, () => test(world));
    }),
});

interface PageGlobals {
  readonly client: {
    readonly auth: {
      signIn(credentials: { readonly email: string; readonly password: string }): Promise<void>;
      oauthAddress(provider: string, redirectTo: string): string;
      requestMagicLink(request: { readonly email: string; readonly redirectTo: string }): Promise<void>;
      signInWithMagic(proof: { readonly token: string }): Promise<void>;
    };
  };
  readonly result: { readonly token: string };
}
