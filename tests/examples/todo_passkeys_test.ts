/** Passkeys of examples/todo in a real browser, with its virtual authenticator. */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { stepsOf } from "../support/page_steps.ts";
import { Child } from "../support/processes/child.ts";
import { inChromium, sharedChromium } from "../support/shared_chromium.ts";
import { TempFolder } from "../support/temp_folder.ts";

/** The part of the DevTools protocol that is used. */
interface Credential {
  readonly credentialId: string;
  readonly isResidentCredential: boolean;
  readonly rpId?: string;
  readonly privateKey: string;
  readonly userHandle?: string;
  readonly signCount: number;
}

Deno.test(inChromium("PK1 a user adds passkeys and signs in with them in a browser"), async (t) => {
  await using dataFolder = new TempFolder();
  await using server = new Child({
    args: [
      ..."run --quiet --no-prompt -P=serve main.ts --port 0".split(" "),
      ...["--functions", "examples/todo/functions", "--static", "examples/todo/public"],
      ...["--data", dataFolder.path, "--anonymous-sign-in"],
    ],
  });
  const [, port] = await server.line(/http:\/\/127\.0\.0\.1:(\d+)/);
  const url = `http://localhost:${port}`;
  const browser = await sharedChromium();
  try {
    const context = await browser.newContext();
    // A prompt in the field of the form would sign in before the button is clicked. One step below tests it.
    await context.addInitScript(() => {
      if (localStorage.getItem("offersPasskeys") === "true") return;
      PublicKeyCredential.isConditionalMediationAvailable = () => Promise.resolve(false);
    });
    const page = await context.newPage();
    const errors: string[] = [];
    page.on("pageerror", (error) => errors.push(error.message));
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
    const credentials = async () =>
      (await cdp.send("WebAuthn.getCredentials", { authenticatorId })).credentials as Credential[];
    const button = (name: string) => page.getByRole("button", { name, exact: true });
    const entries = page.getByRole("list", { name: "Passkeys" }).getByRole("listitem");
    const openAccount = () => page.locator("#me").click();
    const { step } = stepsOf(t, context);

    await step("PK6 a user adds a passkey with the password", async () => {
      await page.goto(url);
      await button("New here? Create an account").click();
      await page.getByLabel("Email address").fill("ada@example.com");
      await page.getByLabel("Password").fill("correct horse");
      await button("Create account").click();
      await page.getByText("A fresh start.").waitFor();
      await openAccount();
      await page.getByText("Your password. Link").waitFor();
      await present(true);
      await button("Add a passkey").click();
      await page.getByLabel("Your password, to add a passkey").fill("wrong password");
      await button("Continue").click();
      await page.locator(".passkeys [role=alert]").filter({ hasText: "password is wrong" }).waitFor();
      await page.getByLabel("Your password, to add a passkey").fill("correct horse");
      await button("Continue").click();
      await entries.filter({ hasText: "never used" }).waitFor();
      const [credential, ...more] = await credentials();
      assert.deepEqual([credential?.rpId, credential?.isResidentCredential, more], ["localhost", true, []]);
      await present(false);
    });

    await step("PK6 the device refuses a second passkey for the account", async () => {
      await present(true);
      await button("Add a passkey").click();
      await page.locator(".passkeys [role=alert]").filter({ hasText: /./ }).waitFor();
      assert.equal((await credentials()).length, 1);
      await present(false);
    });

    const signOut = async () => {
      await button("Close").click();
      await button("Sign out").click();
      await button("Sign in with a passkey").waitFor();
    };
    const signIn = async () => {
      await present(true);
      await button("Sign in with a passkey").click();
    };

    await step("PK1 the passkey signs in from the button, without an address", async () => {
      await signOut();
      await signIn();
      await page.getByText("A fresh start.").waitFor();
      await present(false);
      await openAccount();
      await entries.filter({ hasText: "last used" }).waitFor();
    });

    await step("PK1 the passkey is renamed", async () => {
      await button("Rename").click();
      await page.getByLabel("New name").fill("Laptop");
      await button("Save").click();
      await entries.filter({ hasText: "Laptop" }).waitFor();
    });

    await step("PK2 a passkey without user verification does not sign in", async () => {
      await signOut();
      await cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false });
      await signIn();
      await page.waitForTimeout(300);
      await button("Sign in with a passkey").waitFor();
      // Ends an attempt that still runs, which would succeed from now on.
      await page.reload();
      await cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: true });
      await signIn();
      await page.getByText("A fresh start.").waitFor();
      await present(false);
    });

    await step("PK4 a copy of the authenticator with an older counter is refused", async () => {
      await openAccount();
      await signOut();
      const [original] = await credentials();
      assert.ok(original && original.signCount > 1);
      const replace = async (credential: Credential) => {
        await cdp.send("WebAuthn.clearCredentials", { authenticatorId });
        await cdp.send("WebAuthn.addCredential", { authenticatorId, credential });
      };
      await replace({ ...original, signCount: 0 });
      await signIn();
      await problem(page, "a copy of it may have been used");
      await replace({ ...original, signCount: original.signCount + 10 });
      await signIn();
      await page.getByText("A fresh start.").waitFor();
      await present(false);
    });

    await step("PK1 the field of the form offers the passkey", async () => {
      await openAccount();
      await signOut();
      await present(true);
      await page.evaluate(() => localStorage.setItem("offersPasskeys", "true"));
      // The virtual authenticator answers the prompt that waits in the field as soon as it opens.
      await page.reload();
      await page.getByText("A fresh start.").waitFor();
      await page.evaluate(() => localStorage.removeItem("offersPasskeys"));
      await present(false);
      await page.reload();
    });

    await step("PK5 a removed passkey signs in no more", async () => {
      await openAccount();
      await button("Remove").click();
      await entries.first().waitFor({ state: "detached" });
      await signOut();
      await signIn();
      await problem(page, "not registered here, or was removed");
      await present(false);
    });

    await step("AN2 a visitor without an account signs up with a passkey and keeps the lists", async () => {
      await cdp.send("WebAuthn.clearCredentials", { authenticatorId });
      await page.reload();
      await button("Try it without an account").click();
      await page.getByText("A fresh start.").waitFor();
      await page.getByLabel("Name of a new list").fill("Groceries");
      await button("Create the list").click();
      const list = page.getByRole("navigation", { name: "Lists" }).getByText("Groceries");
      await list.waitFor();
      await openAccount();
      const note = page.getByText("You have no account yet");
      await note.waitFor();
      await present(true);
      await button("Add a passkey").click();
      await entries.filter({ hasText: "never used" }).waitFor();
      await note.waitFor({ state: "hidden" });
      assert.equal(
        await page.getByText("Your password. Link").isVisible(),
        false,
        "the user has no password",
      );
      await present(false);
      await signOut();
      await signIn();
      await list.waitFor();
      await present(false);
    });
    assert.deepEqual(errors, []);
  } finally {
    await browser.close();
  }
});

async function problem(page: Page, text: string): Promise<void> {
  await page.locator("#sign-in-problem").filter({ hasText: text }).waitFor();
}
