/** The server's own page for links, in a browser: a link is used only after a click. */
import assert from "node:assert/strict";
import { launchChromium } from "../../support/chromium.ts";
import { testConfig } from "../../server/support/fake_backend.ts";
import { startSmtpServer } from "../mail/smtp_server.ts";
import { startTestServer } from "./test_server.ts";
import { codeOf, STEP_MS } from "../support/test_factors.ts";
import { chromium, needs } from "../../support/services.ts";

const password = "correct horse";

Deno.test({
  ...needs(chromium, "CO5 links of the server's own page work after a click and not before"),
  // The browser's driver keeps its own timers and pipes.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using smtp = await startSmtpServer();
    await using server = await startTestServer({
      accounts: {
        smtp: { url: `smtp://127.0.0.1:${smtp.port}`, from: "App <no-reply@example.com>" },
        // Mails without links are not counted below.
        policy: { ...testConfig({ dataDir: "" }).accounts.policy, deviceMail: false },
      },
    });
    const linkTo = async (email: string, count: number) =>
      /http:\S+/.exec((await smtp.mailTo(email, count)).text ?? "")?.[0] ?? "";
    const browser = await launchChromium();
    try {
      const page = await browser.newPage();
      const requests: string[] = [];
      page.on(
        "request",
        (request) => request.method() === "POST" && requests.push(new URL(request.url()).pathname),
      );
      const open = async (link: string) => {
        await page.goto("about:blank");
        requests.length = 0;
        await page.goto(link);
        await page.waitForLoadState("networkidle");
        assert.deepEqual(requests, [], "a token was used without a click");
        assert.equal(new URL(page.url()).hash, "", "the token stays in the address");
      };
      const message = (text: string) => page.getByRole("status").filter({ hasText: text }).waitFor();

      await server.post("/api/auth/signup", { email: "a@example.com", password });
      const verify = await linkTo("a@example.com", 1);
      await open(verify);
      await page.getByRole("button").click();
      await message("Your address is confirmed.");
      await open(verify);
      await page.getByRole("button").click();
      await message("no longer valid");

      await server.post("/api/auth/reset/request", { email: "a@example.com" });
      await open(await linkTo("a@example.com", 2));
      await page.getByLabel("New password").fill("new password");
      await page.getByRole("button").click();
      await message("Your password is set.");
      assert.deepEqual(requests, ["/api/auth/reset/confirm", "/api/auth/signout"]);
      const again = await server.post("/api/auth/signin", {
        email: "a@example.com",
        password: "new password",
      });
      assert.equal(again.status, 200);

      await server.post("/api/auth/magic/request", { email: "a@example.com" });
      await open(await linkTo("a@example.com", 3));
      await page.getByRole("button").click();
      await page.waitForURL(/\/#svc_access_token=.*&svc_refresh_token=.*&svc_expires_in=900&svc_user_id=/);

      const { body: { accessToken: bearer } } = again;
      const act = async (name: string, args: object) =>
        (await server.post("/api/action", { path: `_auth:${name}`, args }, { bearer })).body.value;
      const { enrolmentId, secret } = await act("startTotp", { password: "new password" });
      const code = codeOf(secret, Date.now(), -STEP_MS);
      const { recoveryCodes } = await act("confirmTotp", { enrolmentId, code });
      await server.post("/api/auth/magic/request", { email: "a@example.com" });
      await open(await linkTo("a@example.com", 4));
      await page.getByRole("button").click();
      await page.getByLabel("Code of your authenticator app").fill("000000");
      await page.getByRole("button").click();
      await message("not valid");
      await page.getByLabel("Code of your authenticator app").fill(recoveryCodes[0]);
      await page.getByRole("button").click();
      await page.waitForURL(/\/#svc_access_token=.*&svc_user_id=/);

      await server.post("/api/auth/reset/request", { email: "a@example.com" });
      await open(await linkTo("a@example.com", 5));
      await page.getByLabel("New password").fill("newest password");
      await page.getByRole("button").click();
      await message("Your password is set.");
      assert.deepEqual(requests, ["/api/auth/reset/confirm"]);

      await open(`${server.url}/_/account.html`);
      await message("Open this page from a link in a mail");
    } finally {
      await browser.close();
    }
  },
});
