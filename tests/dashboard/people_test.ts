/** The dashboard's door, users, administrators, audit log and settings in a browser. */
import assert from "node:assert/strict";
import { admin, checkLooks, testDashboard } from "./support/dashboard_page.ts";

const functions = {
  "accounts.ts": `import { query } from "syncline/server";
export const me = query({ args: {}, handler: (ctx) => ctx.auth.userId() });`,
};

testDashboard("a person looks after people and settings", {
  functions,
  signedIn: false,
  config: { restartExitCode: null },
}, async (dashboard, t) => {
  const { page, context, server, go, told, button, choose, keys, asAdmin } = dashboard;
  const dialog = page.getByRole("dialog");
  const signUp = (email: string) => server.post("/api/auth/signup", { email, password: "a good password" });
  const [, setupToken] = /svc_setup_token=([^&]+)/.exec(server.setupLink ?? "") ?? [];
  const enter = async (email: string, password: string, press: string) => {
    await page.getByLabel("Email address").fill(email);
    await page.getByLabel("Password").fill(password);
    await button(press).click();
  };

  await t.step("DA4 without the setup link nobody is made an administrator", async () => {
    await page.goto(`${server.url}/_/`);
    await told("There is no administrator yet.");
    assert.equal(await button("Create administrator").count(), 0);
  });

  await t.step("DA4 a wrong setup link is refused", async () => {
    await page.goto(`${server.url}/_/?again#svc_setup_token=wrong`);
    await told("Create the first administrator");
    await enter(admin.email, admin.password, "Create administrator");
    await page.getByRole("alert").waitFor();
  });

  await t.step(
    "DA4 the printed link leads to the dashboard, and its token leaves the address at once",
    async () => {
      assert.match(server.setupLink ?? "", /\/_\/#svc_setup_token=/);
      await page.goto("about:blank");
      await page.goto(server.setupLink ?? "");
      await told("Create the first administrator");
      assert.ok(!page.url().includes("svc_setup_token"));
      await enter(admin.email, admin.password, "Create administrator");
      await told("Needs attention");
      const { entries } = await page.evaluate(() => ({
        entries: JSON.stringify(history.state) + location.href,
      }));
      assert.ok(!entries.includes(String(setupToken)));
    },
  );

  await t.step("DA5 what needs attention comes first, with the place to act", async () => {
    await told("There is no backup.");
    await page.getByRole("link", { name: "Back up", exact: true }).click();
    await dialog.getByRole("heading", { name: "Back up now" }).waitFor();
    await button("Cancel").click();
  });

  await t.step("the setup link, used once more, leads to the sign-in", async () => {
    const other = await (await page.context().browser()?.newContext())?.newPage();
    assert.ok(other);
    await other.goto(server.setupLink ?? `${server.url}/_/#svc_setup_token=${setupToken}`);
    await other.getByText("The setup link has been used").waitFor();
    await other.context().close();
  });

  await t.step("an administrator signs out, is refused with a wrong password, and signs in", async () => {
    await button("Sign out").click();
    await told("Your session has ended.");
    await enter(admin.email, "wrong password", "Sign in");
    await page.getByRole("alert").waitFor();
    await enter(admin.email, admin.password, "Sign in");
    await page.locator("#view").waitFor();
  });

  await t.step("by keyboard alone: an administrator signs out and in", async () => {
    await button("Sign out").focus();
    await keys("Enter");
    await told("Your session has ended.");
    await page.locator("input[name=email]:focus").waitFor();
    await page.keyboard.type(admin.email);
    await keys("Tab");
    await page.locator("input[name=password]:focus").waitFor();
    await page.keyboard.type(admin.password);
    await keys("Enter");
    await page.locator("#view").waitFor();
  });

  await t.step("another tab is signed in, and out with this one", async () => {
    const other = await context.newPage();
    await other.goto(`${server.url}/_/#/users`);
    await other.getByRole("heading", { name: "Users" }).waitFor();
    await other.getByRole("button", { name: "Sign out" }).click();
    await told("Sign in to Syncline");
    await other.close();
    await enter(admin.email, admin.password, "Sign in");
    await page.locator("#view").waitFor();
  });

  await t.step("a user is created", async () => {
    await go("users");
    await told("No one has signed up yet");
    await button("New user").click();
    await page.getByLabel("Email address").fill("cleo@example.com");
    await page.getByLabel("Name").fill("Cleo <i>of</i> Egypt");
    await page.getByLabel("Password").fill("a good password");
    await button("Create user").click();
    await told("The user is created.");
    await dialog.getByRole("heading", { name: "Cleo <i>of</i> Egypt" }).waitFor();
    await keys("Escape");
  });

  await t.step("an address that is taken is told", async () => {
    await button("New user").click();
    await page.getByLabel("Email address").fill("cleo@example.com");
    await button("Create user").click();
    await page.locator(".note[data-tone=bad]").waitFor();
    await button("Close this message").last().click();
    await dialog.getByRole("button", { name: "Cancel" }).click();
  });

  await t.step("a user is found by name, and renamed", async () => {
    await signUp("ben@example.com");
    await page.getByRole("link", { name: "ben@example.com" }).waitFor();
    await page.getByLabel("Search users").fill("cleo");
    await page.getByRole("link", { name: "ben@example.com" }).waitFor({ state: "detached" });
    await page.getByRole("link", { name: "cleo@example.com" }).click();
    await dialog.getByLabel("Name").fill("Cleo");
    await button("Save").click();
    await told("The user is saved.");
    await button("Close").click();
    await page.getByLabel("Search users").fill("");
  });

  await t.step("from a user a link leads to the runs of theirs that failed", async () => {
    await page.getByRole("link", { name: "ben@example.com" }).click();
    await dialog.getByRole("link", { name: "those that failed" }).click();
    await button(/^Remove the filter caller: user:/).waitFor();
    await button("Remove the filter outcome: error").waitFor();
    await told("No run is found");
    await go("users");
  });

  await t.step("sessions of a user end one by one and all at once", async () => {
    await server.post("/api/auth/signin", { email: "ben@example.com", password: "a good password" });
    await page.getByRole("link", { name: "ben@example.com" }).click();
    const ends = dialog.getByRole("button", { name: "End", exact: true });
    await ends.nth(1).waitFor();
    await ends.first().click();
    await told("The session has ended.");
    await button("End all").click();
    await told("Not signed in anywhere");
  });

  await t.step("a password is set for a user", async () => {
    await choose("More about this user", "Set a password");
    await page.getByLabel("New password").fill("another password");
    await button("Set password").click();
    await told("The password is set.");
    const { status } = await server.post("/api/auth/signin", {
      email: "ben@example.com",
      password: "another password",
    });
    assert.equal(status, 200);
  });

  await t.step("an administrator signs in as a user in a new window, which says so", async () => {
    const opening = context.waitForEvent("page");
    await button("Sign in as").click();
    const opened = await opening;
    await opened.getByText("You are ben@example.com").waitFor();
    await dialog.getByText("an administrator").waitFor();
    await opened.getByRole("button", { name: "End this session" }).click();
    await opened.getByText("The session has ended.").waitFor();
    await dialog.getByText("an administrator").waitFor({ state: "detached" });
    await opened.close();
  });

  await t.step("a user is deleted", async () => {
    await choose("More about this user", "Delete user");
    await dialog.last().getByRole("button", { name: "Delete user" }).click();
    await told("The user is deleted.");
    await page.getByRole("link", { name: "ben@example.com" }).waitFor({ state: "detached" });
  });

  await t.step("by keyboard alone: a user is looked at", async () => {
    await page.getByRole("link", { name: "cleo@example.com" }).focus();
    await keys("Enter");
    await dialog.waitFor();
    await keys("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  await t.step("a setting is changed, counts at once, and is forgotten again", async () => {
    await go("settings");
    const signups = page.getByLabel("Disable signups", { exact: true });
    await signups.selectOption("true");
    await page.getByRole("form", { name: "Accounts" }).getByRole("button", { name: "Save" }).click();
    await told("The settings are stored and count.");
    assert.equal((await signUp("late@example.com")).status, 403);
    await button("Forget Disable signups").click();
    await button("Forget Disable signups").waitFor({ state: "detached" });
    assert.equal((await signUp("late@example.com")).status, 200);
  });

  await t.step("SE3 a secret is written and never shown", async () => {
    const smtp = page.getByLabel("SMTP URL", { exact: true });
    await smtp.fill("smtp://user:hidden-word@127.0.0.1:1");
    await page.getByLabel("Mail from", { exact: true }).fill("shop@example.com");
    await page.getByRole("form", { name: "Mail" }).getByRole("button", { name: "Save" }).click();
    await page.getByPlaceholder("stored; enter another to replace it").waitFor();
    assert.equal(await smtp.inputValue(), "");
    assert.ok(!(await page.content()).includes("hidden-word"));
  });

  await t.step("a test mail that cannot be sent is told", async () => {
    await button("Send a test mail").click();
    assert.equal(await page.getByLabel("To", { exact: true }).inputValue(), admin.email);
    await button("Send").click();
    await told("The mail server rejected the mail");
    await keys("Escape");
  });

  await t.step("a mail is looked at with the text that is entered, before it is stored", async () => {
    await page.getByLabel("Mail reset", { exact: true }).fill("Subject: Lost it?\n\nHere: {{link}}");
    await button("Preview Mail reset").click();
    await dialog.getByRole("heading", { name: "Lost it?" }).waitFor();
    await dialog.getByText(/^Here: http/).waitFor();
    await keys("Escape");
    await page.getByRole("form", { name: "Mail" }).getByRole("button", { name: "Discard" }).click();
  });

  await t.step("without a place for backups a test of it says so", async () => {
    await button("Test the place of backups").first().click();
    await told("There are no scheduled backups");
    await button("Close this message").last().click();
  });

  await t.step("a setting that does not fit is told at its field, and nothing is stored", async () => {
    await page.getByLabel("Backup every", { exact: true }).fill("now and then");
    await page.getByRole("form", { name: "Scheduled backups" }).getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").waitFor();
    assert.equal(await page.getByLabel("Backup every", { exact: true }).getAttribute("aria-invalid"), "true");
    await button("Discard").click();
    assert.equal(await page.getByLabel("Backup every", { exact: true }).inputValue(), "");
  });

  await t.step("by keyboard alone: a setting is changed", async () => {
    const name = page.getByLabel("App name", { exact: true });
    await name.focus();
    await page.keyboard.type("Lamp shop");
    await keys("Enter");
    await button("Forget App name").waitFor();
    assert.equal(await name.inputValue(), "Lamp shop");
  });

  await t.step("AU1 what was changed is in the audit log, secrets untold", async () => {
    await page.getByRole("link", { name: "Who changed what" }).click();
    await page.getByRole("cell", { name: /appName not set → Lamp shop/ }).waitFor();
    await page.getByRole("cell", { name: /smtpUrl not set → \(secret\)/ }).waitFor();
    await page.getByLabel("Subject").selectOption("_admin/users:");
    await page.getByRole("cell", { name: /appName/ }).waitFor({ state: "detached" });
    await page.getByRole("cell", { name: "_admin/users:edit" }).first().waitFor();
  });

  await t.step("somebody is given access, and signs in", async () => {
    await go("administrators");
    await button("New administrator").click();
    await page.getByLabel("Email address").fill("eve@example.com");
    await page.getByLabel("Password").fill("another password");
    await button("Create administrator").click();
    await told("The administrator can sign in now.");
    await page.getByRole("cell", { name: "eve@example.com", exact: true }).waitFor();
    const { status } = await server.post("/api/auth/admin/signin", {
      email: "eve@example.com",
      password: "another password",
    });
    assert.equal(status, 200);
  });

  await t.step("an administrator's doings are looked up, and their sessions ended", async () => {
    await choose("More about eve@example.com", "End sessions");
    await told("The sessions have ended.");
    await choose("More about eve@example.com", "What they did");
    await told("Nothing is noted");
    await go("administrators");
  });

  await t.step("one's own password is changed", async () => {
    await button("Change my password").click();
    await page.getByLabel("Present password").fill(admin.password);
    await page.getByLabel("New password").fill(`${admin.password} 2`);
    await dialog.getByRole("button", { name: "Change password" }).click();
    await told("Your password is changed.");
    await asAdmin("_admin/administrators:list", {}, "query").catch(() => {});
    const { status } = await server.post("/api/auth/admin/signin", admin);
    assert.notEqual(status, 200);
  });

  await t.step("the palette goes anywhere by a few letters", async () => {
    await keys("Control+k");
    await page.getByPlaceholder("Go to a table").fill("aud");
    await page.getByRole("option", { name: "Audit log" }).waitFor();
    await keys("Enter");
    await page.getByRole("heading", { name: "Audit log" }).waitFor();
  });

  await t.step("the palette finds a user, a setting, and what can be made", async () => {
    const palette = page.getByPlaceholder("Go to a table");
    await keys("Control+k");
    await palette.fill("cleo@");
    await page.getByRole("option", { name: /^cleo@example\.com/ }).click();
    await dialog.getByRole("heading", { name: "Cleo" }).waitFor();
    await keys("Escape");
    await dialog.waitFor({ state: "detached" });
    await keys("Control+k");
    await palette.fill("smtp url");
    await page.getByRole("option", { name: "SMTP URL" }).click();
    await page.locator("#setting-smtpUrl:focus").waitFor();
    await keys("Control+k");
    await palette.fill("new admin");
    await page.getByRole("option", { name: "New administrator" }).click();
    await dialog.getByRole("heading", { name: "New administrator" }).waitFor();
    await keys("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  await t.step("the palette changes between light and dark, which stays", async () => {
    await keys("Control+k");
    await page.getByPlaceholder("Go to a table").fill("light and dark");
    await keys("Enter");
    await page.waitForFunction(() => document.documentElement.dataset["theme"] === "dark");
    await page.reload();
    await page.locator("#view").waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
    await page.evaluate(() => localStorage.removeItem("syncline.theme"));
    await page.reload();
  });

  await t.step("a view that is not there says so", async () => {
    await go("nowhere");
    await told("There is no such view");
  });

  await t.step("on a phone the navigation is opened, used, and gone again", async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    await button("Navigation").click();
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Users" }).click();
    await page.getByRole("heading", { name: "Users" }).waitFor();
    assert.equal(await page.getByRole("navigation", { name: "Views" }).isVisible(), false);
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  await t.step(
    "DA7 nothing that a person with a screen reader or a keyboard would stumble over",
    async () => {
      await checkLooks(dashboard, ["users", "administrators", "audit", "settings"]);
    },
  );

  await t.step("an administrator who is removed is shown the door at once", async () => {
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
    await told("Sign in to Syncline");
    await told("Your session has ended.");
  });
});
