/** The dashboard's forms of settings in a browser: identity providers, the mail server and buckets, each with its test. */
import assert from "node:assert/strict";
import { startSmtpServer } from "../auth/mail/smtp_server.ts";
import { openIdSecret, startOpenIdServer } from "../auth/support/open_id_server.ts";
import { FakeBucket } from "../ops/scheduled/fake_bucket.ts";
import { defaultOptions } from "../server/support/fake_backend.ts";
import {
  admin,
  checkAppearances,
  checkDialog,
  checkRefused,
  testDashboard,
  until,
} from "./support/dashboard_page.ts";

const flag = { by: "flag", text: "Flagged" } as const;

testDashboard("forms of settings", {
  config: {
    explicitOptions: {
      values: { ...defaultOptions(), appName: "Flagged" },
      explicit: new Map([["appName", flag]]),
    },
  },
}, async (dashboard, t) => {
  const { page, server, go, waitForText, button, keys, asAdmin, violations } = dashboard;
  const dialog = page.getByRole("dialog");
  const setting = async (wanted: string) =>
    (await asAdmin("_admin/settings:list", {}, "query")).find(({ name }: { name: string }) =>
      name === wanted
    );
  const form = (name: string) => page.getByRole("form", { name, exact: true });
  const save = async (name: string) => {
    await form(name).getByRole("button", { name: "Save" }).click();
    await waitForText("Settings saved.");
    // The message can appear before the form shows the saved values.
    await form(name).locator('button:disabled:text-is("Save")').waitFor();
    await button("Dismiss").last().click();
  };

  await t.step("errors name settings by their labels", async () => {
    await go("settings/alerts");
    const alerts = form("Alerts");
    await alerts.getByLabel("Email addresses").fill("ops@example.com");
    await alerts.getByRole("button", { name: "Save" }).click();
    await waitForText("“Email addresses” needs a mail server: set “Mail server”");
    await alerts.getByRole("button", { name: "Discard" }).click();
  });

  await t.step("thresholds are entered one by one, and empty ones keep their defaults", async () => {
    const thresholds = form("Alerts").getByRole("group", { name: "Thresholds" });
    assert.equal(
      await thresholds.getByLabel("Replication lag").getAttribute("placeholder"),
      "Default: 1m",
    );
    await thresholds.getByLabel("Failed calls of a function").fill("5%");
    await thresholds.getByLabel("Free disk space").fill("lots");
    await form("Alerts").getByRole("button", { name: "Save" }).click();
    await form("Alerts").getByRole("alert").getByText('expected a percentage such as 5%, received "lots"')
      .waitFor();
    await thresholds.getByLabel("Free disk space").fill("");
    await save("Alerts");
    assert.equal((await setting("alertWhen")).text, "error-rate=5%");
    // The next change is added to the stored value, which arrives on its own.
    await button("Reset Thresholds").waitFor();
    await thresholds.getByLabel("Replication lag").fill("2m");
    await save("Alerts");
    assert.equal((await setting("alertWhen")).text, "error-rate=5%,lag=2m");
    await button("Reset Thresholds").click();
    await until(async () => await thresholds.getByLabel("Replication lag").inputValue() === "");
  });

  await t.step("a switch without effect says that it needs a mail server", async () => {
    const note = form("Accounts").getByText("The server sends no mail until a mail server is set.");
    await note.first().waitFor();
    assert.equal(await note.count(), 2);
    assert.equal((await (await fetch(`${server.url}/api/auth/providers`)).json()).magicLink, false);
  });

  await t.step("DA30 the mail server is set up in fields, and its password is not shown again", async () => {
    const logins: string[] = [];
    await using mail = await startSmtpServer({
      allowInsecureAuth: true,
      onAuth({ username, password }, _session, done) {
        logins.push(`${username} ${password}`);
        done(null, { user: username });
      },
    });
    await go("settings/mail");
    const fields = form("Mail");
    await fields.getByLabel("Mail server", { exact: true }).fill("127.0.0.1");
    await fields.getByLabel("Port").fill("1");
    await fields.getByLabel("User name").fill("ada@mail");
    await fields.getByLabel("Password").fill("s3cret/@:");
    await fields.getByLabel("Sender", { exact: true }).fill("App <app@example.com>");
    await save("Mail");
    await fields.getByPlaceholder("stored; enter a new one to replace it").waitFor();
    // The password is kept for another port of the same host and user.
    assert.equal(await fields.getByLabel("Password").inputValue(), "");
    await fields.getByLabel("Port").fill(String(mail.port));
    await save("Mail");
    await button("Send a test mail").click();
    await dialog.getByLabel("To").fill("bob@example.com");
    await dialog.getByRole("button", { name: "Send" }).click();
    await waitForText("The mail server accepted the mail to bob@example.com.");
    assert.equal((await mail.mailTo("bob@example.com")).from?.address, "app@example.com");
    assert.deepEqual(logins, ["ada@mail s3cret/@:"]);
    assert.equal(await page.getByText("The server sends no mail until").count(), 0);
    assert.equal((await setting("smtpUrl")).text, `smtp://ada%40mail@127.0.0.1:${mail.port}`);
    await fields.getByLabel("Mail server", { exact: true }).fill("mail.example.com");
    await waitForText("The stored password is only kept for the same host and user name.");
    await fields.getByRole("button", { name: "Discard" }).click();
    assert.equal(await fields.getByLabel("Mail server", { exact: true }).inputValue(), "127.0.0.1");
    await page.reload();
    await fields.getByPlaceholder("stored; enter a new one to replace it").waitFor();
    assert.equal(await page.getByText("s3cret").count(), 0);
  });

  await using openId = await startOpenIdServer();
  const callback = `${server.url}/api/auth/oauth/work/callback`;
  openId.serve([callback]);

  await t.step(
    "DA30 a provider is added with its callback address, and tested with the reason of a failure",
    async () => {
      await go("settings/providers");
      await waitForText("No providers");
      const shadowOf = (section: string) =>
        page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: section, exact: true })
          .evaluate((link) => getComputedStyle(link).boxShadow);
      assert.notEqual(await shadowOf("Sign-in providers"), await shadowOf("Mail"));
      await button("Add a provider").click();
      await checkDialog(dashboard, "provider");
      await dialog.getByLabel("Provider").selectOption("OpenID Connect");
      await dialog.getByLabel("Name").fill("work");
      assert.equal(await dialog.getByLabel("Callback address").inputValue(), callback);
      await dialog.getByLabel("Issuer").fill("http://127.0.0.1:1");
      await dialog.getByLabel("Client ID").fill("nobody");
      await dialog.getByLabel("Client secret").fill("wrong");
      assert.deepEqual(await violations(), []);
      await button("Save and test").click();
      await dialog.getByText("127.0.0.1:1: the request failed").waitFor();
      const json = form("Sign-in providers").getByLabel("Sign-in providers as JSON", { exact: true });
      const correct = async (label: string, text: string) => {
        await keys("Escape");
        await dialog.waitFor({ state: "detached" });
        // The dialog starts with the stored values. Wait until the page has received them.
        await until(async () => await json.inputValue() === (await setting("authConfig")).text);
        await button("Edit work").click();
        await dialog.getByLabel(label).fill(text);
        await button("Save and test").click();
      };
      await correct("Issuer", openId.issuer);
      await dialog.getByText("providers.work.clientSecret: enter the secret again").waitFor();
      await dialog.getByLabel("Client secret").fill("wrong");
      await button("Save and test").click();
      await dialog.getByText("status 400: check the client ID and the callback address").waitFor();
      await correct("Client ID", "app");
      await dialog.getByText("The provider responds with invalid_client").waitFor();
      await correct("Client secret", openIdSecret);
      await dialog.getByText("The provider accepts the client secret").waitFor();
      assert.deepEqual(await violations(), []);
      await keys("Escape");
      await page.getByText(callback).waitFor();
      const { text } = await setting("authConfig");
      assert.ok(!text.includes(openIdSecret));
      assert.deepEqual((await (await fetch(`${server.url}/api/auth/providers`)).json()).oauth, ["work"]);
    },
  );

  await t.step(
    "DA30 unsaved JSON keeps the list of providers from being changed, and a provider is removed",
    async () => {
      const json = form("Sign-in providers").getByLabel("Sign-in providers as JSON", { exact: true });
      await json.fill("{}");
      await waitForText("Save or discard the JSON first.");
      assert.ok(await button("Remove work").isDisabled());
      await form("Sign-in providers").getByRole("button", { name: "Discard" }).click();
      await button("Remove work").click();
      await button("Remove provider").click();
      await waitForText("Provider removed.");
      await waitForText("No providers");
      assert.equal((await setting("authConfig")).set, false);
    },
  );

  await t.step("DA30 a bucket is tested step by step with the saved access keys", async () => {
    await using bucket = new FakeBucket();
    const { endpoint, accessKeyId, secretAccessKey } = bucket.location();
    const changes = { s3Endpoint: endpoint, s3AccessKeyId: accessKeyId, s3SecretAccessKey: secretAccessKey };
    await go("settings/storage");
    await button("Test a bucket").click();
    await dialog.getByLabel("Bucket").fill("s3://files/tests");
    await button("Test").click();
    await dialog.getByText("need access keys").waitFor();
    await checkDialog(dashboard, "test of a bucket");
    await asAdmin("_admin/settings:set", { changes }, "action");
    await button("Test").click();
    await dialog.getByText("Remove", { exact: true }).waitFor();
    assert.deepEqual(bucket.objects.size, 0);
    assert.ok(bucket.requests.some(({ method, key }) => method === "PUT" && key.startsWith("tests/")));
    bucket.fault = ({ method }) => method === "PUT" ? bucket.refusal("AccessDenied", 403) : null;
    await button("Test").click();
    await dialog.getByText(/Cannot write: /).waitFor();
    await keys("Escape");
  });

  await t.step("DA30 tests are for owners, and are in the audit log", async () => {
    const email = "vic@example.com";
    await asAdmin(
      "_admin/administrators:create",
      { email, password: admin.password, role: "viewer" },
      "action",
    );
    const signedIn = await server.post("/api/auth/admin/signin", { email, password: admin.password });
    const bearer = signedIn.body.accessToken;
    const calls = [["testBucket", { location: "s3://files" }], ["testProvider", {
      name: "work",
      origin: server.url,
    }]] as const;
    for (const [name, args] of calls) {
      const { body } = await server.post("/api/action", { path: `_admin/settings:${name}`, args }, {
        bearer,
      });
      assert.equal(body.errorData.code, "role_required");
    }
    await go("audit");
    await page.getByRole("cell", { name: "tested the sign-in provider work" }).first().waitFor();
    await page.getByRole("cell", { name: "tested the bucket s3://files/tests" }).first().waitFor();
  });

  await t.step("AD15 a viewer ends their other sessions in the dashboard", async () => {
    const email = "vic@example.com";
    const { body } = await server.post("/api/auth/admin/signin", { email, password: admin.password });
    const other = await (await page.context().browser()?.newContext())?.newPage();
    assert.ok(other);
    await other.goto(`${server.url}/_/#/administrators`);
    await other.getByLabel("Email address").fill(email);
    await other.getByLabel("Password").fill(admin.password);
    await other.getByRole("button", { name: "Sign in", exact: true }).click();
    await other.getByRole("button", { name: `More about ${email}` }).click();
    await other.getByRole("menuitem", { name: "End my other sessions" }).click();
    await other.getByText("Sessions ended.").waitFor();
    await other.getByRole("button", { name: `More about ${admin.email}` }).click();
    await checkRefused(other.getByRole("menuitem", { name: "End sessions" }), "owners");
    const me = { path: "_admin/administrators:me", args: {} };
    const { status } = await server.post("/api/query", me, { bearer: body.accessToken });
    assert.notEqual(status, 200);
    await other.context().close();
  });

  await t.step("a setting of a flag is locked and names the flag", async () => {
    await go("settings/app");
    assert.ok(await page.getByLabel("App name").isDisabled());
    await waitForText("--app-name");
  });

  await t.step("DA7 axe finds no accessibility violations", async () => {
    await asAdmin("_admin/settings:set", {
      changes: {
        authConfig: JSON.stringify({
          providers: { google: { clientId: "app.apps.example.com", clientSecret: { secret: "x" } } },
        }),
      },
    }, "action");
    await checkAppearances(dashboard, ["settings"]);
  });
});
