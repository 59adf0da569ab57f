/** The account forms in the templates `react` and `showcase`, in a real browser with its virtual authenticator. */
import assert from "node:assert/strict";
import { build, stop } from "esbuild";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BrowserContext, Page } from "playwright-core";
import { packageAliases } from "../../examples/chat/build/npm_packages.ts";
import { startTestServer, type TestServer } from "../auth/server/test_server.ts";
import { startSmtpServer } from "../auth/mail/smtp_server.ts";
import { codeOf, STEP_MS } from "../auth/support/test_factors.ts";
import { testConfig } from "../server/support/fake_backend.ts";
import { checkAccessibility } from "../support/accessibility.ts";
import { stepsOf } from "../support/page_steps.ts";
import { projectDir } from "../support/processes/child.ts";
import { inChromium, sharedChromium } from "../support/shared_chromium.ts";
import { TempFolder } from "../support/temp_folder.ts";

const ada = { email: "ada@example.com", password: "correct horse" };
const ben = { email: "ben@example.com", password: "correct horse" };

/** Builds the page of a template into a folder, as `vite build` does. */
async function buildTemplate(template: string, folder: string): Promise<void> {
  const source = join(projectDir, "templates", template);
  try {
    await build({
      entryPoints: [join(source, "src/main.tsx")],
      outfile: join(folder, "src/main.tsx.js"),
      bundle: true,
      format: "esm",
      jsx: "automatic",
      define: { "process.env.NODE_ENV": '"production"' },
      // `createApi`, without the rest of the API for functions.
      alias: {
        ...packageAliases(),
        "syncline/server": fileURLToPath(import.meta.resolve("syncline/client")),
      },
      logLevel: "error",
    });
  } finally {
    await stop();
  }
  const page = await Deno.readTextFile(join(source, "index.html"));
  await Deno.writeTextFile(join(folder, "index.html"), page.replace("main.tsx", "main.tsx.js"));
  await Deno.copyFile(join(source, "src/style.css"), join(folder, "src/style.css"));
}

async function functionsOf(template: string): Promise<Record<string, string>> {
  const folder = join(projectDir, "templates", template, "functions");
  const files: Record<string, string> = {};
  for await (const { name } of Deno.readDir(folder)) {
    files[name] = await Deno.readTextFile(join(folder, name));
  }
  return files;
}

interface TemplatePage {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly url: string;
  readonly server: TestServer;
  button(name: string | RegExp): ReturnType<Page["getByRole"]>;
  /** Checks the page in light and dark and on a phone. */
  checkLooks(name: string): Promise<void>;
}

/** Opens the page of a template in a separate profile, and closes it after `test`. */
type OpenTemplate = (test: (page: TemplatePage) => Promise<void>) => Promise<void>;

/** Builds and serves a template. */
async function withTemplate(
  template: string,
  use: (open: OpenTemplate) => Promise<void>,
  accounts: Parameters<typeof startTestServer>[0] = {},
): Promise<void> {
  await using folder = new TempFolder();
  await buildTemplate(template, folder.path);
  await using server = await startTestServer({
    ...accounts,
    functions: await functionsOf(template),
    config: { staticDir: folder.path },
  });
  await use(async (test) => {
    const browser = await sharedChromium();
    try {
      const context = await browser.newContext({ viewport: { width: 1000, height: 800 } });
      // A prompt in the field of the form would sign in before the button is clicked. One step below tests it.
      await context.addInitScript(() => {
        if (localStorage.getItem("offersPasskeys") === "true") return;
        PublicKeyCredential.isConditionalMediationAvailable = () => Promise.resolve(false);
      });
      const page = await context.newPage();
      const errors: string[] = [];
      page.on("pageerror", (error) => errors.push(error.message));
      // Passkeys are bound to a host name.
      const url = server.url.replace("127.0.0.1", "localhost");
      await page.goto(url);
      await test({
        page,
        context,
        url,
        server,
        button: (name) => page.getByRole("button", { name, exact: true }),
        checkLooks: (name) => checkAccessibility(page, name),
      });
      assert.deepEqual(errors, []);
    } finally {
      await browser.close();
    }
  });
}

Deno.test(inChromium("the account forms of the template"), (t) =>
  withTemplate("react", async (open) => {
    await t.step(
      "AF1 AF2 a user of the template signs up and in, with a second factor and a passkey",
      (t) => open((page) => signUpAndIn(t, page)),
    );
    await t.step("AF1 the forms show the results of links and of returns from providers", () =>
      open(showReturns));
  }));

async function signUpAndIn(
  t: Deno.TestContext,
  { page, context, button, checkLooks }: TemplatePage,
): Promise<void> {
  const alert = (text: string) => page.getByRole("alert").filter({ hasText: text }).waitFor();
  const signedIn = () => page.getByText("Nothing to do.").waitFor();
  const signIn = async (password = ada.password) => {
    await page.getByLabel("Email address").fill(ada.email);
    await page.getByLabel("Password").fill(password);
    await button("Sign in").click();
  };
  const openAccount = async () => {
    await button("Account").click();
    await page.getByRole("heading", { name: "Where you are signed in" }).waitFor();
  };
  const closeAccount = () => button("Close").click();
  const cdp = await context.newCDPSession(page);
  await cdp.send("WebAuthn.enable", { enableUI: false });
  const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: false,
    },
  });
  const present = (enabled: boolean) =>
    cdp.send("WebAuthn.setAutomaticPresenceSimulation", { authenticatorId, enabled });
  const { step } = stepsOf(t, context);
  let secret = "";

  await step("AF1 sign-up, and an address that is in use", async () => {
    await checkLooks("sign in");
    await button("New here? Create an account").click();
    await page.locator("input[name=email]:focus").waitFor();
    await checkLooks("sign up");
    await page.getByLabel("Email address").fill(ada.email);
    await page.getByLabel("Password").fill(ada.password);
    await button("Create an account").click();
    await signedIn();
    await button("Sign out").click();
    await button("New here? Create an account").click();
    await page.getByLabel("Email address").fill(ada.email);
    await page.getByLabel("Password").fill(ada.password);
    await button("Create an account").click();
    await alert("An account with this email address exists.");
    // The field at fault is marked, described by the error, and has the focus.
    const field = page.locator("input[aria-invalid=true]:focus");
    assert.equal(await field.getAttribute("name"), "email");
    const description = await field.evaluate((element) =>
      document.getElementById(element.getAttribute("aria-describedby") ?? "")?.textContent
    );
    assert.match(description ?? "", /^An account with this email address exists\./);
    await checkLooks("error");
  });

  await step("AF1 sign-in after a wrong password", async () => {
    await button("You have an account? Sign in").click();
    await signIn("wrong horse");
    await alert("The email address or the password is wrong.");
    await signIn();
    await signedIn();
  });

  await step("AF1 the second factor is set up, and sign-ins ask for it", async () => {
    await openAccount();
    await button("Set up an authenticator app").click();
    await page.getByLabel("Password").fill("wrong horse");
    await button("Continue").click();
    await alert("The password is wrong.");
    await page.getByLabel("Password").fill(ada.password);
    await button("Continue").click();
    await page.getByAltText("QR code for an authenticator app").waitFor();
    await checkLooks("QR code");
    secret = await page.locator("code").textContent() ?? "";
    await page.getByLabel("Code that the app shows").fill("123");
    await button("Confirm").click();
    await alert("The code or link is wrong");
    await page.getByLabel("Code that the app shows").fill(codeOf(secret, Date.now(), -STEP_MS));
    await button("Confirm").click();
    const codes = page.getByRole("list", { name: "Your recovery codes" }).getByRole("listitem");
    await codes.first().waitFor();
    assert.equal(await codes.count(), 10);
    await checkLooks("recovery codes");
    const recoveryCode = await codes.first().textContent() ?? "";
    // By the older command, because pages without HTTPS have no clipboard API.
    await page.evaluate(() => document.execCommand = () => false);
    await button("Copy").click();
    const selected = () => page.evaluate(() => String(getSelection()).trim().split(/\s+/));
    assert.deepEqual(await selected(), await codes.allTextContents());
    assert.equal(await button("Copied").count(), 0);
    await page.evaluate(() => Reflect.deleteProperty(document, "execCommand"));
    await button("Copy").click();
    await button("Copied").waitFor();
    await context.grantPermissions(["clipboard-read"]);
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.deepEqual(copied.trim().split(/\s+/), await codes.allTextContents());
    await button("Done").click();
    await page.getByText("You have 10 unused recovery codes.").waitFor();
    await closeAccount();
    await button("Sign out").click();
    await signIn();
    await page.getByLabel("Code of your authenticator app").waitFor();
    await page.locator("input[name=code]:focus").waitFor();
    await checkLooks("second step");
    await page.getByLabel("Code of your authenticator app").fill("123");
    await button("Continue").click();
    await alert("The code or link is wrong");
    await button("Use a recovery code").click();
    await page.getByLabel("Recovery code").fill(recoveryCode);
    await button("Continue").click();
    await signedIn();
  });

  await step("AF1 a passkey is added after a proof of the factor, named, and signs in", async () => {
    await openAccount();
    await button("Sign out").last().waitFor();
    await present(true);
    await button("Add a passkey").click();
    await page.getByLabel("Name of the passkey").fill("Laptop");
    await checkLooks("name of the passkey");
    await button("Save").click();
    const passkeys = page.getByRole("list", { name: "Passkeys" }).getByRole("listitem");
    await passkeys.filter({ hasText: "LaptopNever used" }).waitFor();
    await present(false);
    await closeAccount();
    await button("Sign out").click();
    await button("Sign in with a passkey").waitFor();
    await present(true);
    await button("Sign in with a passkey").click();
    await signedIn();
    await button("Sign out").click();
    await button("Sign in with a passkey").waitFor();
    // The virtual authenticator answers the prompt that waits in the field as soon as it opens.
    await page.evaluate(() => localStorage.setItem("offersPasskeys", "true"));
    await page.reload();
    await signedIn();
    await page.evaluate(() => localStorage.removeItem("offersPasskeys"));
    await present(false);
    await page.reload();
    await signedIn();
    await openAccount();
    await passkeys.filter({ hasText: "LaptopLast used" }).waitFor();
  });

  await step("AF3 the list of sessions names devices, and signs them out", async () => {
    const other = await context.browser()?.newContext({
      userAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    });
    const otherPage = await other?.newPage();
    assert.ok(otherPage);
    await otherPage.goto(page.url());
    await otherPage.getByLabel("Email address").fill(ada.email);
    await otherPage.getByLabel("Password").fill(ada.password);
    await otherPage.getByRole("button", { name: "Sign in", exact: true }).click();
    await otherPage.getByLabel("Code of your authenticator app").fill(codeOf(secret, Date.now()));
    await otherPage.getByRole("button", { name: "Continue" }).click();
    await otherPage.getByText("Nothing to do.").waitFor();
    const sessions = page.getByRole("list", { name: "Where you are signed in" }).getByRole("listitem");
    await sessions.filter({ hasText: "Firefox on Linux" }).waitFor();
    await sessions.filter({ hasText: "This device" }).filter({ hasText: "Chrome on" }).waitFor();
    await checkLooks("settings");
    await button("Sign out Firefox on Linux").click();
    await otherPage.getByLabel("Email address").waitFor();
    await sessions.filter({ hasText: "Firefox" }).waitFor({ state: "detached" });
    await other?.close();
  });

  await step(
    "AF1 the second factor is turned off, and a new one needs a proof of the passkey",
    async () => {
      await button("Turn off").click();
      await button("Set up an authenticator app").waitFor();
      await closeAccount();
      await button("Sign out").click();
      await signIn();
      await openAccount();
      const setUp = async () => {
        await button("Set up an authenticator app").click();
        await page.getByLabel("Password").fill(ada.password);
        await button("Continue").click();
      };
      await setUp();
      await button("Use a passkey").waitFor();
      await checkLooks("proof");
      await present(true);
      // The connection is lost when the change is made again: its error is shown instead of the password step.
      await page.evaluate(`{
            const { send } = WebSocket.prototype;
            WebSocket.prototype.send = function (data) {
              if (!data.includes("_auth:startTotp")) return send.call(this, data);
              WebSocket.prototype.send = send;
              this.close();
            };
          }`);
      await button("Use a passkey").click();
      await alert("The server cannot be reached.");
      await setUp();
      await page.getByAltText("QR code for an authenticator app").waitFor();
      await present(false);
      await button("Cancel").click();
      await page.getByRole("button", { name: /^Sign out Chrome/ }).click();
      await button("New here? Create an account").waitFor();
    },
  );
}

/** Addresses that links and providers return to, without `svc_state`, and the text of the page then. */
const RETURNS: readonly (readonly [fields: Record<string, string>, text: string])[] = [
  [
    { svc_error: "access_denied", svc_error_description: "Denied" },
    "The sign-in was canceled at the provider.",
  ],
  [{ svc_error: "not_invited", svc_error_description: "Ask for an invitation" }, "Ask for an invitation"],
  [{ svc_verify_token: "wrong" }, "The code or link is wrong"],
  [{ svc_reset_token: "wrong" }, "Reset your password"],
  [{ svc_magic_token: "wrong" }, "This link was requested in another browser."],
  [{ svc_access_token: "a", svc_refresh_token: "b" }, "This sign-in was not started in this browser."],
];

async function showReturns({ page, context, url, button }: TemplatePage): Promise<void> {
  let opened = 0;
  const open = async (fields: Record<string, string>, at = page) => {
    // Another query loads the page again.
    await at.goto(`${url}/?${++opened}#${new URLSearchParams(fields)}`);
  };
  /** The return of a provider's sign-in of this browser that needs a second step, which has ended. */
  const openChallenge = async (at = page) => {
    const state = crypto.randomUUID();
    await page.evaluate((state) => {
      localStorage.setItem(`syncline-flow ${state}`, String(Date.now() + 60_000));
    }, state);
    const challenge = JSON.stringify({ challenge: "ended", expiresIn: 60 });
    await open({ svc_state: state, svc_error: "mfa_required", svc_error_data: challenge }, at);
  };
  const tooLong = page.getByRole("alert").filter({ hasText: "This took too long. Start again." });
  for (const [fields, text] of RETURNS) {
    await open(fields);
    await page.getByText(text).waitFor();
    assert.equal(new URL(page.url()).hash, "");
  }
  await open({ svc_magic_token: "wrong" });
  await button("Sign in").click();
  await page.getByRole("alert").filter({ hasText: "The code or link is wrong" }).waitFor();
  await button("Cancel").click();
  await page.getByLabel("Password").waitFor();

  await openChallenge();
  await page.getByLabel("Code of your authenticator app").fill("123456");
  await button("Back").click();
  await page.getByLabel("Password").waitFor();
  await openChallenge();
  await page.getByLabel("Code of your authenticator app").fill("123456");
  await button("Continue").click();
  await tooLong.waitFor();
  await page.getByLabel("Password").waitFor();

  // Another tab reports the second step to any form.
  await button("Forgot your password?").click();
  await button("Send a mail").waitFor();
  await openChallenge(await context.newPage());
  await page.getByLabel("Code of your authenticator app").fill("123456");
  await button("Continue").click();
  await tooLong.waitFor();
  await button("Send a mail").waitFor();

  // A sign-in ends the display of an error.
  await page.evaluate(async (account) => {
    const headers = { "Content-Type": "application/json" };
    await fetch("/api/auth/signup", { method: "POST", headers, body: JSON.stringify(account) });
  }, ben);
  await open({ svc_error: "access_denied", svc_error_description: "Denied" });
  await page.getByRole("alert").filter({ hasText: "canceled at the provider" }).waitFor();
  await page.getByLabel("Email address").fill(ben.email);
  await page.getByLabel("Password").fill(ben.password);
  await button("Sign in").click();
  await page.getByText("Nothing to do.").waitFor();
  await button("Sign out").click();
  await page.getByLabel("Password").waitFor();
  assert.equal(await page.locator("form [role=alert]").textContent(), "");
}

Deno.test({
  ...inChromium("AF1 AF2 codes and links in mails sign in, verify and reset in the template"),
  async fn() {
    await using smtp = await startSmtpServer();
    const mail = { url: `smtp://127.0.0.1:${smtp.port}`, from: "App <no-reply@example.com>" };
    const codeIn = async (count: number) =>
      /\b\d{6}\b/.exec((await smtp.mailTo(ada.email, count)).text ?? "")?.[0] ?? "";
    await withTemplate("showcase", (open) =>
      open(async ({ page, button, checkLooks }) => {
        await button("Email me a code").waitFor();
        await button("New here? Create an account").click();
        await page.getByLabel("Email address").fill(ben.email);
        await page.getByLabel("Password").fill(ada.password);
        await button("Create an account").click();
        await page.getByRole("status").filter({ hasText: `a mail to ${ben.email}` }).waitFor();
        await button("You have an account? Sign in").click();
        await page.getByLabel("Email address").fill(ben.email);
        await page.getByLabel("Password").fill(ada.password);
        await button("Sign in").click();
        await page.getByRole("alert").filter({ hasText: "Confirm your email address first" }).waitFor();
        await button("Send the mail again").click();
        await page.getByRole("status").filter({ hasText: "Open its link, then sign in." }).waitFor();
        await smtp.mailTo(ben.email, 2);

        await button("New here? Create an account").click();
        await page.getByLabel("Email address").fill(ada.email);
        await page.getByLabel("Password").fill(ada.password);
        await button("Create an account").click();
        await page.getByRole("status").filter({ hasText: `a mail to ${ada.email}` }).waitFor();
        await checkLooks("verification");
        await page.getByLabel("Code from the mail").fill(await codeIn(1));
        await button("Confirm").click();
        await button("Start 5 minutes").waitFor();
        await checkLooks("board");
        await button("Sign out").click();

        await page.getByLabel("Email address").fill(ada.email);
        await button("Email me a code").click();
        await page.getByLabel("Code from the mail").fill("000000");
        await button("Sign in").click();
        await page.getByRole("alert").filter({ hasText: "The code or link is wrong" }).waitFor();
        await page.getByLabel("Code from the mail").fill(await codeIn(2));
        await button("Sign in").click();
        await button("Start 5 minutes").waitFor();
        await button("Sign out").click();

        await button("Forgot your password?").click();
        await checkLooks("reset");
        await page.getByLabel("Email address").fill(ada.email);
        await button("Send a mail").click();
        await page.getByLabel("Code from the mail").fill(await codeIn(3));
        await page.getByLabel("New password").fill("newer horse");
        await button("Set the new password").click();
        await button("Start 5 minutes").waitFor();
        await page.locator("header").getByRole("button", { name: "Account" }).click();
        await page.getByRole("heading", { name: "Where you are signed in" }).waitFor();
        await checkLooks("settings");
      }), {
      accounts: {
        smtp: mail,
        policy: { ...testConfig({ dataDir: "" }).accounts.policy, requireVerification: true },
      },
    });
  },
});
