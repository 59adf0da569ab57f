/** The dashboard's sign-in, users, administrators, audit log and settings in a browser. */
import assert from "node:assert/strict";
import { TestAuthenticator } from "../auth/support/test_authenticator.ts";
import { codeOf, STEP_MS } from "../auth/support/test_factors.ts";
import { defaultOptions } from "../server/support/fake_backend.ts";
import { checkAccessibility, violations as accessibilityViolations } from "../support/accessibility.ts";
import {
  admin,
  checkAppearances,
  checkDialog,
  checkRefused,
  testDashboard,
  until,
} from "./support/dashboard_page.ts";

const functions = {
  "accounts.ts": `import { untypedQuery } from "syncline/server";
export const me = untypedQuery({ args: {}, handler: (ctx) => ctx.auth.userId() });`,
};

testDashboard("users, administrators and settings", {
  functions,
  signedIn: false,
  config: {
    restartExitCode: null,
    explicitOptions: {
      values: { ...defaultOptions(), s3Region: "eu-west-1" },
      explicit: new Map([["s3Region", { by: "flag", text: "eu-west-1" }] as const]),
    },
  },
}, async (dashboard, t) => {
  const { page, context, server, go, waitForText, button, choose, keys, asAdmin, resize } = dashboard;
  const dialog = page.getByRole("dialog");
  const signUp = (email: string) => server.post("/api/auth/signup", { email, password: "a good password" });
  const [, setupToken] = /svc_setup_token=([^&]+)/.exec(server.setupLink ?? "") ?? [];
  const enter = async (email: string, password: string, press: string) => {
    await page.getByLabel("Email address").fill(email);
    await page.getByLabel("Password").fill(password);
    await button(press).click();
  };
  /** Waits until changed settings are saved. The page may show their new values earlier. */
  const settingsSaved = () => page.getByText("unsaved change").first().waitFor({ state: "detached" });

  await t.step("DA4 no administrator can be created without the setup link", async () => {
    await page.goto(`${server.url}/_/`);
    await waitForText("There is no administrator yet.");
    await checkAccessibility(page, "no administrator");
    assert.equal(await button("Create administrator").count(), 0);
  });

  for (const isOpen of [true, false]) {
    const where = isOpen ? "while the dashboard is open" : "from another page";
    await t.step(`DA4 a wrong setup link, opened ${where}, is rejected`, async () => {
      if (!isOpen) await page.goto("about:blank");
      await page.goto(`${server.url}/_/#svc_setup_token=wrong`);
      await waitForText("Create the first administrator");
      await enter(admin.email, admin.password, "Create administrator");
      await page.getByRole("alert").waitFor();
    });
  }

  await t.step(
    "DA4 the printed link opens the dashboard, which removes the token from the address",
    async () => {
      assert.match(server.setupLink ?? "", /\/_\/#svc_setup_token=/);
      await page.goto("about:blank");
      await page.goto(server.setupLink ?? "");
      await waitForText("Create the first administrator");
      assert.ok(!page.url().includes("svc_setup_token"));
      await enter(admin.email, admin.password, "Create administrator");
      await waitForText("Issues");
      const { entries } = await page.evaluate(() => ({
        entries: JSON.stringify(history.state) + location.href,
      }));
      assert.ok(!entries.includes(String(setupToken)));
    },
  );

  await t.step("DA5 issues are listed first with a link to the view that resolves them", async () => {
    await waitForText("There is no backup.");
    await page.getByRole("link", { name: "Back up", exact: true }).click();
    await dialog.getByRole("heading", { name: "Back up now" }).waitFor();
    await button("Cancel").click();
  });

  await t.step("DA19 the first steps are listed until they are hidden, and link to their views", async () => {
    await go("overview");
    await waitForText("First steps: 0 of 7 done");
    await page.getByRole("link", { name: "Create a user" }).click();
    await dialog.getByRole("heading", { name: "New user" }).waitFor();
    await keys("Escape");
    await go("overview");
    await button("Hide").click();
    await page.getByText("First steps").waitFor({ state: "detached" });
    await page.reload();
    await waitForText("Issues");
    // They would appear after the rest of the view.
    await page.getByRole("heading", { name: "Tables" }).waitFor();
    await page.waitForLoadState("networkidle");
    assert.equal(await page.getByText("First steps").count(), 0);
  });

  await t.step("DA19 ? shows the shortcuts and links to the documentation", async () => {
    await keys("?");
    await dialog.getByText("Save the open form").waitFor();
    await checkDialog(dashboard, "help");
    const docs = await dialog.getByRole("link", { name: "Dashboard" }).getAttribute("href");
    assert.equal((await fetch(new URL(docs ?? "", `${server.url}/_/`))).status, 200);
    await keys("Escape");
    await dialog.waitFor({ state: "detached" });
    await button("Help ?").click();
    await dialog.getByRole("heading", { name: "Help" }).waitFor();
    await keys("Escape");
  });

  await t.step("a used setup link leads to the sign-in page", async () => {
    const other = await (await page.context().browser()?.newContext())?.newPage();
    assert.ok(other);
    await other.goto(server.setupLink ?? `${server.url}/_/#svc_setup_token=${setupToken}`);
    await other.getByText("This setup link has already been used").waitFor();
    await other.context().close();
  });

  await t.step("an administrator signs out, is rejected with a wrong password, and signs in", async () => {
    await button("Sign out").click();
    await waitForText("Your session has ended.");
    await enter(admin.email, "wrong password", "Sign in");
    await page.getByRole("alert").waitFor();
    await enter(admin.email, admin.password, "Sign in");
    await page.locator("#view").waitFor();
  });

  await t.step("by keyboard only: an administrator signs out and in", async () => {
    await button("Sign out").focus();
    await keys("Enter");
    await waitForText("Your session has ended.");
    await page.locator("input[name=email]:focus").waitFor();
    await page.keyboard.type(admin.email);
    await keys("Tab");
    await page.locator("input[name=password]:focus").waitFor();
    await page.keyboard.type(admin.password);
    await keys("Enter");
    await page.locator("#view").waitFor();
  });

  await t.step("another tab shares sign-in and sign-out", async () => {
    const other = await context.newPage();
    await other.goto(`${server.url}/_/#/users`);
    await other.getByRole("heading", { name: "Users" }).waitFor();
    await other.getByRole("button", { name: "Sign out" }).click();
    await waitForText("Sign in to Syncline");
    await other.close();
    await enter(admin.email, admin.password, "Sign in");
    await page.locator("#view").waitFor();
  });

  await t.step("a user is created", async () => {
    await go("users");
    await waitForText("No users yet");
    await button("New user").click();
    await checkDialog(dashboard, "new user");
    await page.getByLabel("Email address").fill("cleo@example.com");
    await page.getByLabel("Name").fill("Cleo <i>of</i> Egypt");
    await page.getByLabel("Password").fill("a good password");
    await button("Create user").click();
    await waitForText("User created.");
    await dialog.getByRole("heading", { name: "Cleo <i>of</i> Egypt" }).waitFor();
    await keys("Escape");
  });

  await t.step("a taken address shows an error", async () => {
    await button("New user").click();
    await page.getByLabel("Email address").fill("cleo@example.com");
    await button("Create user").click();
    await page.locator(".toast[data-tone=bad]").waitFor();
    await button("Dismiss").last().click();
    await keys("Escape");
    await button("Discard changes").click();
    await dialog.waitFor({ state: "detached" });
  });

  await t.step("DA16 Cancel asks before it discards edits", async () => {
    await button("New user").click();
    await button("Cancel").click();
    await dialog.waitFor({ state: "detached" });
    await button("New user").click();
    await page.getByLabel("Name", { exact: true }).fill("Lost");
    await button("Cancel").click();
    await button("Keep editing").click();
    assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "Lost");
    await button("Cancel").click();
    await button("Discard changes").click();
    await dialog.waitFor({ state: "detached" });
  });

  await t.step("a user is found by name and renamed", async () => {
    await signUp("ben@example.com");
    await page.getByRole("link", { name: "ben@example.com" }).waitFor();
    await page.getByLabel("Search users").fill("cleo");
    await page.getByRole("link", { name: "ben@example.com" }).waitFor({ state: "detached" });
    await page.getByRole("link", { name: "cleo@example.com" }).click();
    await dialog.getByLabel("Name").fill("Cleo");
    await button("Save").click();
    await waitForText("Saved.");
    await button("Close").click();
    await page.getByLabel("Search users").fill("");
  });

  await t.step("DA16 edits of a user are kept until they are discarded", async () => {
    await page.getByRole("link", { name: "cleo@example.com" }).click();
    await dialog.getByLabel("Name").fill("Cleopatra");
    await keys("Escape");
    await waitForText("Discard unsaved changes?");
    await button("Keep editing").click();
    assert.equal(await dialog.getByLabel("Name").inputValue(), "Cleopatra");
    const here = page.url();
    await dialog.getByRole("link", { name: "Failed" }).click();
    await button("Keep editing").click();
    await page.waitForURL(here);
    // A save loads the stored values, which are normalized.
    await dialog.getByLabel("Email address").fill("CLEO@example.com");
    await button("Save").click();
    await until(async () => await dialog.getByLabel("Email address").inputValue() === "cleo@example.com");
    // A field that is edited during a save keeps its value.
    await dialog.getByLabel("Name").fill("Cleo the first");
    await page.evaluate(() => {
      const save = document.querySelector<HTMLButtonElement>("button[form=user]");
      const name = [...document.querySelectorAll("#user label")].find((label) =>
        label.textContent === "Name"
      );
      const input = document.querySelector<HTMLInputElement>(
        `#${CSS.escape(name?.getAttribute("for") ?? "")}`,
      );
      save?.click();
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")?.set?.call(input, "Cleo");
      input?.dispatchEvent(new Event("input", { bubbles: true }));
    });
    await dialog.getByRole("heading", { name: "Cleo the first" }).waitFor();
    assert.equal(await dialog.getByLabel("Name").inputValue(), "Cleo");
    await button("Save").click();
    await dialog.getByRole("heading", { name: "Cleo", exact: true }).waitFor();
    // The new name arrives a moment before the save ends.
    await dialog.locator("button[form=user]:disabled").waitFor();
    await keys("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  await t.step(
    "OA17 an administrator signs in as a user in a window that recognizes this dashboard",
    async () => {
      await page.getByRole("link", { name: "ben@example.com" }).click();
      const opening = context.waitForEvent("page");
      await dialog.getByRole("button", { name: "Sign in as" }).click();
      const window = await opening;
      await window.getByText("Signed in as ben@example.com by an administrator").waitFor();
      assert.equal(new URL(window.url()).hash, "");
      await window.getByRole("button", { name: "End this session" }).click();
      await window.getByText("ended").waitFor();
      await window.close();
      await button("Close").click();
    },
  );

  await t.step("a user links to their failed runs", async () => {
    await page.getByRole("link", { name: "ben@example.com" }).click();
    await dialog.getByRole("heading", { name: "Sessions" }).waitFor();
    await checkDialog(dashboard, "user");
    await dialog.getByRole("link", { name: "Failed" }).click();
    await button(/^Remove filter user: /).waitFor();
    await button("Remove filter outcome: any failure").waitFor();
    await waitForText("No matching runs");
    await go("users");
  });

  await t.step("sessions of a user are ended one by one and all together", async () => {
    await server.post("/api/auth/signin", { email: "ben@example.com", password: "a good password" });
    await page.getByRole("link", { name: "ben@example.com" }).click();
    const ends = dialog.getByRole("button", { name: "End", exact: true });
    await ends.nth(1).waitFor();
    await ends.first().click();
    await waitForText("Session ended.");
    await button("End all").click();
    await waitForText("No sessions");
  });

  await t.step("a password is set for a user", async () => {
    await choose("More about this user", "Set a password");
    await checkDialog(dashboard, "set a password");
    await page.getByLabel("New password").fill("another password");
    await button("Set password").click();
    await waitForText("Password set.");
    const { status } = await server.post("/api/auth/signin", {
      email: "ben@example.com",
      password: "another password",
    });
    assert.equal(status, 200);
  });

  await t.step("an administrator signs in as a user in a new window with a banner", async () => {
    const opening = context.waitForEvent("page");
    await button("Sign in as").click();
    const opened = await opening;
    await opened.getByText("Signed in as ben@example.com").waitFor();
    await dialog.getByText("impersonation").waitFor();
    await opened.getByRole("button", { name: "End this session" }).click();
    await opened.getByText("Session ended.").waitFor();
    await dialog.getByText("impersonation").waitFor({ state: "detached" });
    await opened.close();
  });

  await t.step("a user is deleted", async () => {
    await choose("More about this user", "Delete user");
    await dialog.last().getByRole("button", { name: "Delete user" }).click();
    await waitForText("User deleted.");
    await page.getByRole("link", { name: "ben@example.com" }).waitFor({ state: "detached" });
  });

  await t.step("by keyboard only: a user is opened", async () => {
    await page.getByRole("link", { name: "cleo@example.com" }).focus();
    await keys("Enter");
    await dialog.waitFor();
    await keys("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  await t.step("a setting is changed, applied immediately and reset", async () => {
    await go("settings");
    const signups = page.getByRole("switch", { name: "Allow sign-ups" });
    await signups.click();
    assert.equal(await signups.getAttribute("aria-checked"), "false");
    await page.getByRole("form", { name: "Accounts" }).getByRole("button", { name: "Save" }).click();
    await waitForText("Settings saved.");
    assert.equal((await signUp("late@example.com")).status, 403);
    await button("Reset Allow sign-ups").click();
    await button("Reset Allow sign-ups").waitFor({ state: "detached" });
    await page.getByRole("form", { name: "Accounts" }).locator("[aria-busy]").waitFor({ state: "detached" });
    assert.equal((await signUp("late@example.com")).status, 200);
  });

  await t.step("SE3 a secret is written and never shown", async () => {
    await page.getByLabel("Mail server", { exact: true }).fill("127.0.0.1");
    await page.getByLabel("Port", { exact: true }).fill("1");
    await page.getByLabel("User name", { exact: true }).fill("user");
    const password = page.getByRole("form", { name: "Mail", exact: true }).getByLabel("Password");
    await password.fill("hidden-word");
    await page.getByLabel("Sender", { exact: true }).fill("shop@example.com");
    await page.getByRole("form", { name: "Mail", exact: true }).getByRole("button", { name: "Save" }).click();
    await page.getByPlaceholder("stored; enter a new one to replace it").waitFor();
    await settingsSaved();
    assert.equal(await password.inputValue(), "");
    assert.ok(!(await page.content()).includes("hidden-word"));
  });

  await t.step("a test email that cannot be sent shows an error", async () => {
    await button("Send a test mail").click();
    await checkDialog(dashboard, "test mail");
    assert.equal(await page.getByLabel("To", { exact: true }).inputValue(), admin.email);
    await button("Send").click();
    await waitForText("The mail server rejected the mail");
    await keys("Escape");
  });

  await t.step("AL6 AL7 a webhook for alerts is stored, hidden and tested", async () => {
    const received: string[] = [];
    await using receiver = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
      received.push(await request.text());
      return new Response();
    });
    const host = `127.0.0.1:${receiver.addr.port}`;
    await button("Send a test alert").click();
    // The error disappears when another view is shown, and with the next action.
    const error = page.locator(".toast", { hasText: "Alerts have no recipients." });
    await error.waitFor();
    await page.getByRole("link", { name: "Users", exact: true }).click();
    await error.waitFor({ state: "detached" });
    await go("settings");
    await button("Send a test alert").click();
    await error.waitFor();
    const webhooks = page.getByLabel("Webhooks", { exact: true });
    await webhooks.fill(`http://${host}/hidden-path`);
    // A URL can be checked while it is entered. The stored one is hidden.
    assert.equal(await webhooks.getAttribute("type"), "text");
    const form = page.getByRole("form", { name: "Alerts" });
    await form.getByRole("button", { name: "Save" }).click();
    await error.waitFor({ state: "detached" });
    await form.getByPlaceholder("stored; enter a new value to replace it").waitFor();
    await settingsSaved();
    assert.ok(!(await page.content()).includes("hidden-path"));
    await button("Send a test alert").click();
    await waitForText(`Test alert sent to ${host} (json).`);
    assert.match(received[0] ?? "", /This is a test alert/);
    await receiver.shutdown();
    await button("Send a test alert").click();
    await waitForText(`${host} (json): Cannot connect`);
    await button("Dismiss").last().click();
    await page.getByLabel("Quiet hours", { exact: true }).fill("at night");
    await form.getByRole("button", { name: "Save" }).click();
    await form.getByRole("alert").waitFor();
    await form.getByRole("button", { name: "Discard" }).click();
  });

  await t.step("an email template is previewed before it is saved", async () => {
    await page.getByLabel("Password reset", { exact: true }).fill("Subject: Lost it?\n\nHere: {{link}}");
    await button("Preview Password reset").click();
    await dialog.getByRole("heading", { name: "Lost it?" }).waitFor();
    await checkDialog(dashboard, "mail preview");
    await dialog.getByText(/^Here: http/).waitFor();
    await keys("Escape");
    await page.getByRole("form", { name: "Mail templates" }).getByRole("button", { name: "Discard" }).click();
  });

  await t.step("testing the backup target without one shows an error", async () => {
    await button("Test backup target").first().click();
    await waitForText("Scheduled backups are off");
    await button("Dismiss").last().click();
  });

  await t.step("an invalid setting shows an error at its field and is not saved", async () => {
    await page.getByLabel("Interval", { exact: true }).fill("now and then");
    await page.getByRole("form", { name: "Scheduled backups" }).getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").waitFor();
    assert.equal(await page.getByLabel("Interval", { exact: true }).getAttribute("aria-invalid"), "true");
    await button("Discard").click();
    assert.equal(await page.getByLabel("Interval", { exact: true }).inputValue(), "");
  });

  await t.step("by keyboard only: a setting is changed", async () => {
    const name = page.getByLabel("App name", { exact: true });
    await name.focus();
    await page.keyboard.type("Lamp shop");
    await keys("Enter");
    await button("Reset App name").waitFor();
    await settingsSaved();
    assert.equal(await name.inputValue(), "Lamp shop");
  });

  await t.step("DA16 unsaved settings are kept until they are discarded, and Ctrl+S saves", async () => {
    const name = page.getByLabel("App name", { exact: true });
    await name.fill("Chair shop");
    await page.getByRole("link", { name: "Users", exact: true }).click();
    await button("Keep editing").click();
    await page.waitForURL(/settings$/);
    assert.equal(await name.inputValue(), "Chair shop");
    await keys("Control+s");
    await settingsSaved();
    await waitForText("Settings saved.");
    await name.fill("Lost");
    await page.getByRole("link", { name: "Users", exact: true }).click();
    await button("Discard changes").click();
    await page.getByRole("heading", { name: "Users" }).waitFor();
    await go("settings");
    await name.fill("Lamp shop");
    await keys("Enter");
    await settingsSaved();
  });

  await t.step("DA19 the sidebar shows the name and color of the environment", async () => {
    await page.getByLabel("Environment", { exact: true }).fill("Production");
    await page.getByLabel("Environment color", { exact: true }).selectOption("red");
    await page.getByRole("form", { name: "App" }).getByRole("button", { name: "Save" }).click();
    await page.locator(".side .environment[data-color=red]").getByText("Production").waitFor();
    await settingsSaved();
    const hidden = await page.getByRole("navigation", { name: "Views" }).evaluate((views) =>
      views.scrollHeight - views.clientHeight
    );
    assert.equal(hidden, 0, "the sidebar cuts off views");
    await resize(390);
    const badge = await page.locator(".top .environment").boundingBox();
    const title = await page.getByRole("heading", { level: 1 }).boundingBox();
    assert.ok(
      badge !== null && title !== null && badge.y + badge.height <= title.y,
      "the name covers the title",
    );
    await resize(1280);
  });

  await t.step("a setting that a flag overrides is locked and names the flag", async () => {
    const region = page.getByLabel("Region", { exact: true });
    assert.equal(await region.isDisabled(), true);
    assert.equal(await region.inputValue(), "eu-west-1");
    await waitForText("Set by --s3-region.");
  });

  await t.step("AU1 the audit log contains changes without secrets", async () => {
    await page.getByRole("link", { name: "Change history" }).click();
    await page.getByRole("cell", { name: /changed settings: App name.*App name not set → Lamp shop/ })
      .waitFor();
    await page.getByRole("cell", { name: /Mail server not set → \(secret\)/ }).waitFor();
    await page.getByLabel("Search entries").fill("lamp SHOP");
    await page.getByRole("cell", { name: /Mail server/ }).first().waitFor({ state: "detached" });
    await page.getByRole("cell", { name: /not set → Lamp shop/ }).waitFor();
    await page.getByLabel("Search entries").fill("");
    await page.getByLabel("Subject").selectOption("_admin/users:");
    await page.getByRole("cell", { name: /App name/ }).first().waitFor({ state: "detached" });
    await page.getByRole("cell", { name: /changed the user/ }).first().waitFor();
  });

  await t.step("a new administrator is created and signs in", async () => {
    await go("administrators");
    await button("New administrator").click();
    await checkDialog(dashboard, "new administrator");
    await page.getByLabel("Email address").fill("eve@example.com");
    await page.getByLabel("Password").fill("another password");
    await dialog.getByText("At least 8 characters.").waitFor();
    // Without a chosen role, the form is not sent.
    await button("Create administrator").click();
    await page.locator("select[name=role]:invalid:focus").waitFor();
    await page.getByLabel("Role", { exact: true }).selectOption("viewer");
    await button("Create administrator").click();
    await waitForText("Administrator created.");
    await page.getByRole("cell", { name: "eve@example.com", exact: true }).waitFor();
    const { status } = await server.post("/api/auth/admin/signin", {
      email: "eve@example.com",
      password: "another password",
    });
    assert.equal(status, 200);
  });

  await t.step("AD15 controls are disabled for a viewer until an owner changes the role", async () => {
    const other = await (await page.context().browser()?.newContext())?.newPage();
    assert.ok(other);
    const open = async (view: string) => {
      await other.goto(`${server.url}/_/#/${view}`);
      await other.locator(`nav a[aria-current=page][href="#/${view.split("?")[0]}"]`).waitFor();
    };
    const control = (name: string) => other.getByRole("button", { name, exact: true });
    await other.goto(`${server.url}/_/#/users`);
    await other.getByLabel("Email address").fill("eve@example.com");
    await other.getByLabel("Password").fill("another password");
    await control("Sign in").click();
    await other.locator(".account").getByText("eve@example.com").waitFor();
    assert.equal(await other.locator(".account .badge").innerText(), "viewer");
    await checkRefused(control("New user"), "editors and owners");
    await other.getByRole("link", { name: "cleo@example.com" }).click();
    await other.getByText("Read-only: only editors and owners may do this.").waitFor();
    assert.ok(await other.getByLabel("Name", { exact: true }).isDisabled());
    await checkRefused(control("Sign in as"), "editors and owners");
    assert.deepEqual(await accessibilityViolations(other), []);
    await control("More about this user").click();
    await checkRefused(other.getByRole("menuitem", { name: "Delete user" }), "editors and owners");
    await open("administrators");
    await checkRefused(control("New administrator"), "owners");
    await open("deploying");
    for (const name of ["New API key", "New deploy key", "New variable"]) {
      await checkRefused(control(name), "owners");
    }
    await checkRefused(control("Run a migration…"), "editors and owners");
    await other.getByText("Variables are hidden").waitFor();
    assert.equal(await other.locator(".toast").count(), 0);
    await open("settings");
    await other.getByText("Read-only: only owners may do this.").waitFor();
    assert.ok(await other.getByLabel("App name", { exact: true }).isDisabled());
    assert.ok(await other.getByRole("switch", { name: "Allow sign-ups" }).isDisabled());
    await checkRefused(control("Send a test mail"), "owners");
    await checkRefused(control("Reset App name"), "owners");
    // An address that opens a dialog explains why it does not.
    await other.goto(`${server.url}/_/#/users?make=true`);
    await other.locator(".toast", { hasText: "Only editors and owners may do this." }).waitFor();
    assert.equal(await other.getByRole("dialog").count(), 0);
    await other.keyboard.press("Control+k");
    const palette = other.getByPlaceholder("Go to a table");
    await palette.fill("new");
    await other.getByText("No results.").or(other.getByRole("option").first()).waitFor();
    assert.equal(await other.getByRole("option", { name: /^New / }).count(), 0);
    await palette.fill("sign out");
    await other.getByRole("option", { name: "Sign out" }).waitFor();
    await other.keyboard.press("Escape");
    await other.getByRole("dialog").waitFor({ state: "detached" });
    // The server refuses what the page does not offer.
    const { body: { accessToken: bearer } } = await server.post("/api/auth/admin/signin", {
      email: "eve@example.com",
      password: "another password",
    });
    const refused = await server.post("/api/action", {
      path: "_admin/users:create",
      args: { email: "made@example.com" },
    }, { bearer });
    assert.equal(refused.body.errorMessage, "Only editors and owners may do this");
    await page.getByLabel("Role of eve@example.com").selectOption("editor");
    await waitForText("eve@example.com is now an editor.");
    await other.locator(".account .badge", { hasText: "editor" }).waitFor();
    await control("New user").click();
    await other.getByLabel("Email address").fill("made@example.com");
    await control("Create user").click();
    await other.getByText("User created.").waitFor();
    await other.context().close();
  });

  await t.step("an administrator's change history is opened, and their sessions ended", async () => {
    await choose("More about eve@example.com", "End sessions");
    await waitForText("Sessions ended.");
    await choose("More about eve@example.com", "Change history");
    await page.getByRole("cell", { name: "created the user made@example.com" }).waitFor();
    await go("administrators");
  });

  await t.step("MF8 an administrator sets up a second factor and signs in with it", async () => {
    await button("My second factor").click();
    await checkDialog(dashboard, "second factor");
    await page.getByLabel("Password").fill(admin.password);
    await button("Continue").click();
    await page.getByAltText(/^QR code for otpauth:/).waitFor();
    const secret = await dialog.locator("code").innerText();
    await page.getByLabel("Code").fill(codeOf(secret, Date.now(), -STEP_MS));
    await button("Confirm").click();
    const shownCodes = page.getByRole("list", { name: "Recovery codes" }).getByRole("listitem");
    await shownCodes.nth(9).waitFor();
    const recoveryCodes = await shownCodes.allInnerTexts();
    assert.equal(recoveryCodes.length, 10);
    const written = () => page.evaluate(() => navigator.clipboard.readText());
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await button("Copy").click();
    await waitForText("Recovery codes copied.");
    assert.equal(await written(), `${recoveryCodes.join("\n")}\n`);
    // As on a page without HTTPS.
    await page.evaluate(async () => {
      await navigator.clipboard.writeText("");
      Object.defineProperty(navigator.clipboard, "writeText", { value: undefined, configurable: true });
    });
    await button("Copy").click();
    await until(async () => await written() === `${recoveryCodes.join("\n")}\n`);
    const [download] = await Promise.all([page.waitForEvent("download"), button("Download").click()]);
    assert.equal(download.suggestedFilename(), "syncline-recovery-codes.txt");
    assert.equal(await Deno.readTextFile(await download.path()), `${recoveryCodes.join("\n")}\n`);
    await button("I have stored them").click();
    await page.getByRole("cell", { name: "authenticator app" }).waitFor();

    await button("Sign out").click();
    await enter(admin.email, admin.password, "Sign in");
    await waitForText("Enter your code");
    await page.getByLabel("Code").fill("aaaaa-aaaaa");
    await button("Continue").click();
    await page.getByRole("alert").filter({ hasText: "not valid" }).waitFor();
    await page.getByLabel("Code").fill(codeOf(secret, Date.now(), STEP_MS));
    await button("Continue").click();
    await page.locator("#view").waitFor();

    await go("administrators");
    await button("My second factor").click();
    await dialog.getByText("10 left").waitFor();
    await button("Remove second factor").click();
    await waitForText("Remove your second factor?");
    await button("Cancel").click();
    await dialog.getByText("10 left").waitFor();
    await button("Remove second factor").click();
    await button("Remove").click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("cell", { name: "authenticator app" }).waitFor({ state: "detached" });
  });

  await t.step("MF8 an administrator removes the second factor of a user", async () => {
    const { body } = await server.post("/api/auth/signup", {
      email: "dora@example.com",
      password: "a good password",
    });
    const act = async (name: string, args: object) =>
      (await server.post("/api/action", { path: `_auth:${name}`, args }, { bearer: body.accessToken })).body;
    await asAdmin("_admin/users:edit", { userId: body.userId, emailVerified: true });
    const { value: { enrolmentId, secret } } = await act("startTotp", { password: "a good password" });
    await act("confirmTotp", { enrolmentId, code: codeOf(secret, Date.now()) });
    const authenticator = new TestAuthenticator({ origin: server.url.replace("127.0.0.1", "localhost") });
    const { value: { options } } = await act("startPasskey", {});
    await act("addPasskey", { name: "Phone", response: authenticator.create(options) });
    // In another session, the administrator sets up a factor, which this session has not proved.
    const elsewhere = (await server.post("/api/auth/admin/signin", admin)).body.accessToken;
    const own = async (name: string, args: object) =>
      (await server.post("/api/action", { path: `_admin/administrators:${name}`, args }, {
        bearer: elsewhere,
      })).body.value;
    const started = await own("startTotp", { password: admin.password });
    const codeAt = (offMs: number) => codeOf(started.secret, Date.now(), offMs);
    await own("confirmTotp", { enrolmentId: started.enrolmentId, code: codeAt(-STEP_MS) });
    await go("users");
    await page.getByRole("link", { name: "dora@example.com" }).click();
    await dialog.getByText("authenticator app").waitFor();
    await dialog.getByRole("button", { name: "Remove Phone" }).click();
    await dialog.last().getByRole("button", { name: "Remove passkey" }).click();
    await page.getByLabel("Your code").fill(codeAt(0));
    await button("Continue").click();
    await waitForText("Passkey removed.");
    await choose("More about this user", "Remove second factor");
    await dialog.last().getByRole("button", { name: "Remove second factor" }).click();
    await waitForText("Second factor removed.");
    await own("removeTotp", {});
    await keys("Escape");
    await go("audit");
    await page.getByRole("cell", { name: "removed the second factor of dora@example.com" }).waitFor();
    await page.getByRole("cell", { name: "set up their own second factor" }).first().waitFor();
    await page.getByRole("cell", { name: /removed a passkey of dora@example.com failed: factor_required/ })
      .waitFor();
    await page.getByRole("cell", {
      name: "ada@example.com removed a passkey of dora@example.com",
      exact: true,
    }).waitFor();
    assert.equal(await page.getByText(secret).count(), 0);
    await go("administrators");
  });

  await t.step(
    "PK9 an administrator adds a passkey, and signs in with it from the button and the field",
    async () => {
      // Passkeys need a domain.
      const at = `${server.url.replace("127.0.0.1", "localhost")}/_/`;
      const other = await context.browser()?.newContext();
      assert.ok(other);
      // A prompt in the field would sign in before the button is clicked. It is offered at the end.
      await other.addInitScript(() => {
        if (localStorage.getItem("offersPasskeys") === "true") return;
        PublicKeyCredential.isConditionalMediationAvailable = () => Promise.resolve(false);
      });
      const own = await other.newPage();
      const press = (name: string) => own.getByRole("button", { name, exact: true }).click();
      const cdp = await other.newCDPSession(own);
      await cdp.send("WebAuthn.enable", { enableUI: false });
      const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", {
        options: {
          protocol: "ctap2",
          transport: "internal",
          hasResidentKey: true,
          hasUserVerification: true,
          isUserVerified: true,
          automaticPresenceSimulation: true,
        },
      });
      await own.goto(`${at}#/administrators`);
      await own.getByLabel("Email address").fill(admin.email);
      await own.getByLabel("Password").fill(admin.password);
      await press("Sign in");
      await press("My passkeys");
      await own.getByText("You have no passkeys.").waitFor();
      await press("Add passkey");
      await own.getByRole("textbox", { name: "Name" }).fill("Laptop");
      await own.getByLabel("Your password").fill("wrong password");
      await press("Continue");
      await own.locator(".toast[data-tone=bad]").waitFor();
      await own.getByLabel("Your password").fill(admin.password);
      await press("Continue");
      await own.getByText("Passkey added.").waitFor();
      await own.getByRole("cell", { name: "Laptop", exact: true }).waitFor();
      // The device has one already.
      await press("Add passkey");
      await own.getByRole("textbox", { name: "Name" }).fill("Again");
      await press("Continue");
      await own.getByText("This device has a passkey of your account already.").waitFor();
      await own.keyboard.press("Escape");
      await press("Discard changes");
      await press("Rename Laptop");
      await own.getByRole("textbox", { name: "Name" }).fill("Phone");
      await press("Save");
      await own.getByRole("cell", { name: "Phone", exact: true }).waitFor();
      await own.keyboard.press("Escape");
      await own.getByRole("cell", { name: "passkey", exact: true }).waitFor();

      await press("Sign out");
      await press("Sign in with a passkey");
      await own.getByRole("heading", { name: "Administrators" }).waitFor();
      await own.evaluate(() => localStorage.setItem("offersPasskeys", "true"));
      await press("Sign out");
      await own.getByText("Sign in to Syncline").waitFor();
      await own.reload();
      // The virtual authenticator answers the prompt in the field as soon as it opens.
      await own.getByRole("heading", { name: "Administrators" }).waitFor();
      await own.evaluate(() => localStorage.setItem("offersPasskeys", "false"));
      await own.reload();

      // A session without a proof confirms the removal with the passkey.
      await press("Sign out");
      await own.getByLabel("Email address").fill(admin.email);
      await own.getByLabel("Password").fill(admin.password);
      await press("Sign in");
      await press("My passkeys");
      await press("Remove Phone");
      await press("Remove passkey");
      await own.getByRole("heading", { name: "Confirm that it is you" }).waitFor();
      await press("Use a passkey");
      await own.getByText("Passkey removed.").waitFor();
      await own.getByText("You have no passkeys.").waitFor();
      await cdp.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId });
      await other.close();
      await go("audit");
      await page.getByRole("cell", { name: "ada@example.com added a passkey Laptop" }).waitFor();
      await page.getByRole("cell", { name: "ada@example.com removed a passkey of their own" }).first()
        .waitFor();
      await go("administrators");
    },
  );

  await t.step("the administrator changes their password", async () => {
    await button("Change my password").click();
    await checkDialog(dashboard, "change my password");
    await page.getByLabel("Current password").fill(admin.password);
    await page.getByLabel("New password").fill(`${admin.password} 2`);
    await dialog.getByRole("button", { name: "Change password" }).click();
    await waitForText("Password changed.");
    await asAdmin("_admin/administrators:list", {}, "query").catch(() => {});
    const { status } = await server.post("/api/auth/admin/signin", admin);
    assert.notEqual(status, 200);
  });

  await t.step("the palette opens a view by a few letters", async () => {
    const palette = page.getByPlaceholder("Go to a table");
    await keys("Control+k");
    await palette.fill("aud");
    await page.getByRole("option", { name: "Audit log" }).waitFor();
    await checkDialog(dashboard, "command palette");
    await keys("Enter");
    await page.getByRole("heading", { name: "Audit log" }).waitFor();
    await page.locator("#view:focus").waitFor();
    // Keys that are typed before it has opened are kept.
    await page.keyboard.press("Control+k");
    await page.keyboard.type("sched");
    await page.getByRole("option", { name: "Schedule", exact: true, selected: true }).waitFor();
    await keys("Enter");
    await page.getByRole("heading", { name: "Schedule", exact: true }).waitFor();
    // Without a jump, the focus returns to where it was.
    await button(/^Go to…/).focus();
    await keys("Control+k");
    await palette.waitFor();
    await keys("Escape");
    await page.locator(".nav-button:focus", { hasText: "Go to…" }).waitFor();
    // A match of the name precedes views that match by a keyword.
    await keys("Control+k");
    await page.getByPlaceholder("Go to a table").fill("errors");
    await page.getByRole("option", { selected: true }).filter({ hasText: "Errors in the last 24 hours" })
      .waitFor();
    await keys("Enter");
    await button("Remove filter outcome: error, timeout or refused").waitFor();
  });

  await t.step("the palette finds a user, a setting and a command", async () => {
    const palette = page.getByPlaceholder("Go to a table");
    await keys("Control+k");
    await palette.fill("cleo@example.com");
    await page.getByRole("option", { name: /^cleo@example\.com/, selected: true }).waitFor();
    await keys("Enter");
    await dialog.getByRole("heading", { name: "Cleo" }).waitFor();
    await keys("Escape");
    await dialog.waitFor({ state: "detached" });
    // A key after the palette was closed is not kept for it. No text field has the focus, so it opens the help.
    await keys("Control+k");
    await palette.waitFor();
    await keys("Control+k");
    await palette.waitFor({ state: "detached" });
    await keys("?");
    await page.getByRole("dialog").getByRole("heading", { name: "Help" }).waitFor();
    await keys("Escape");
    await dialog.waitFor({ state: "detached" });
    await keys("Control+k");
    await palette.fill("smtp");
    await page.getByRole("option", { name: "Mail server" }).click();
    await page.locator("#setting-smtpUrl:focus").waitFor();
    // Each word may match another word of the entry.
    for (
      const [search, entry] of [
        ["google sign", "Sign-in providers"],
        ["rotate deploy key", "Rotate a deploy key or API key"],
        ["deploy key", "Rotate a deploy key or API key"],
        ["who deleted", "Find who changed or deleted a document"],
        ["undo edit", "Undo a wrong edit of a document"],
        ["slow query", "Slow queries and missing indexes"],
        ["age of backups", "Alerts"],
        ["export", "Export runs and errors"],
        ["restore table", "Restore one table or everything"],
        ["missing index", "Functions"],
        ["failed week", "Errors in the last 7 days"],
        // No entry has both words.
        ["failed parcel", "Errors in the last 24 hours"],
      ] as const
    ) {
      await keys("Control+k");
      await palette.fill(search);
      await page.getByRole("option", { name: entry, exact: true }).waitFor();
      await keys("Escape");
    }
    // Words of one or two characters count.
    await keys("Control+k");
    await palette.fill("24 parcel");
    await page.getByRole("option", { name: "Errors in the last 24 hours", exact: true }).waitFor();
    await page.getByRole("option").nth(1).waitFor({ state: "detached" });
    // Words of titles have twice the weight of keywords.
    await palette.fill("mail parcel");
    await page.getByRole("option").first().filter({ hasText: "Mail" }).waitFor();
    // A word of a description finds its setting only if the whole search matches.
    await palette.fill("sidebar");
    await page.getByRole("option", { name: "App: Environment", exact: true }).waitFor();
    await palette.fill("sidebar parcel");
    await waitForText("No results.");
    await keys("Escape");
    await keys("Control+k");
    await palette.fill("new admin");
    await page.getByRole("option", { name: "New administrator" }).click();
    await dialog.getByRole("heading", { name: "New administrator" }).waitFor();
    await keys("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  await t.step("the palette switches the theme, which is kept", async () => {
    await keys("Control+k");
    await page.getByPlaceholder("Go to a table").fill("theme");
    await page.getByRole("option", { name: "Switch theme", selected: true }).waitFor();
    await keys("Enter");
    await page.waitForFunction(() => document.documentElement.dataset["theme"] === "dark");
    await page.reload();
    await page.locator("#view").waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
    await page.evaluate(() => localStorage.removeItem("syncline.theme"));
    await page.reload();
  });

  await t.step("by keyboard only: the first key of a page skips the navigation", async () => {
    await page.reload();
    await page.locator("#view").waitFor();
    await keys("Tab");
    await page.getByRole("button", { name: "Skip to content" }).and(page.locator(":focus")).waitFor();
    await keys("Enter");
    await page.locator("#view:focus").waitFor();
  });

  await t.step("an unknown view shows an error", async () => {
    await page.goto(`${server.url}/_/#/nowhere`);
    await waitForText("This page does not exist");
  });

  await t.step("on a phone the navigation is opened, used and closed", async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    await button("Navigation").click();
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Users" }).click();
    await page.getByRole("heading", { name: "Users" }).waitFor();
    await page.getByRole("navigation", { name: "Views" }).waitFor({ state: "hidden" });
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  await t.step(
    "DA7 axe finds no accessibility violations",
    async () => {
      await checkAppearances(dashboard, ["users", "administrators", "audit", "settings"]);
    },
  );

  await t.step("a removed administrator is signed out immediately", async () => {
    await go("administrators");
    await page.getByLabel("Role of eve@example.com").selectOption("owner");
    await waitForText("eve@example.com is now an owner.");
    await go("overview");
    const { body } = await server.post("/api/auth/admin/signin", {
      email: "eve@example.com",
      password: "another password",
    });
    const bearer = body.accessToken;
    const list = await server.post(
      "/api/query",
      { path: "_admin/administrators:list", args: {} },
      { bearer },
    );
    const { adminId } = list.body.value.find(({ email }: { email: string }) => email === admin.email);
    await server.post("/api/mutation", { path: "_admin/administrators:remove", args: { adminId } }, {
      bearer,
    });
    await waitForText("Sign in to Syncline");
    await waitForText("Your session has ended.");
  });
});
