import assert from "node:assert/strict";
import type { AccountParts } from "../../mod/auth/accounts.ts";
import { AdminAccounts } from "../../mod/auth/admin/admin_accounts.ts";
import { SystemCalls } from "../../mod/functions/system_calls.ts";
import { password, startTestAccounts, type TestAccounts } from "./support/test_accounts.ts";

const email = "admin@example.com";

const codeOf = ({ status, body }: { status: number; body: { errorData?: { code: string } } }) =>
  status === 200 ? "ok" : `${status} ${body.errorData?.code}`;

async function setupToken(accounts: TestAccounts): Promise<string> {
  const link = await accounts.service.setupLink();
  const token = link?.split("#svc_setup_token=")[1];
  assert.ok(token, "there is no setup link");
  return token;
}

Deno.test("AE14 the setup link creates the first administrator, once", async () => {
  await using accounts = await startTestAccounts();
  assert.deepEqual((await accounts.get("/admin/setup")).body, { needsSetup: true });
  const token = await setupToken(accounts);
  const { status, body } = await accounts.post("/admin/setup", {
    token,
    email: "Admin@Example.com",
    password,
  });
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(body).sort(), ["accessToken", "adminId", "expiresIn", "refreshToken"]);
  assert.equal((await accounts.identityOf(body.accessToken)).adminId, body.adminId);
  assert.deepEqual((await accounts.get("/admin/setup")).body, { needsSetup: false });
  assert.equal(
    codeOf(await accounts.post("/admin/setup", { token, email: "b@example.com", password })),
    "400 setup_done",
  );
  assert.equal(await accounts.service.setupLink(), null);
  assert.equal(codeOf(await accounts.post("/admin/signin", { email, password })), "ok");
});

Deno.test("FA2 anyone may ask whether there is an administrator: that does not run in the writer", async () => {
  const calls = new SystemCalls({
    mutate: () => assert.fail("nothing is changed"),
    query: () => Promise.resolve({ ok: true, value: "true", logLines: [] }),
    queryInWriter: () => assert.fail("the writer must not run it"),
  });
  assert.equal(await new AdminAccounts({ calls } as AccountParts).needsSetup(), true);
});

Deno.test("AE14 a wrong setup token creates no administrator, and invalid account data leave the token valid", async () => {
  await using accounts = await startTestAccounts();
  const token = await setupToken(accounts);
  for (const bad of ["", "x", `${token}x`, token.slice(1)]) {
    const answer = await accounts.post("/admin/setup", { token: bad, email, password });
    assert.equal(codeOf(answer), "401 invalid_setup_token");
  }
  assert.equal(
    codeOf(await accounts.post("/admin/setup", { token, email: "x", password })),
    "400 invalid_email",
  );
  assert.equal(
    codeOf(await accounts.post("/admin/setup", { token, email, password: "short" })),
    "400 weak_password",
  );
  assert.equal(codeOf(await accounts.post("/admin/setup", { token, email, password })), "ok");
});

Deno.test("AE14 of two simultaneous setups with the valid token one succeeds", async () => {
  await using accounts = await startTestAccounts();
  const token = await setupToken(accounts);
  const answers = await Promise.all(
    ["a@example.com", "b@example.com"].map((email) =>
      accounts.post("/admin/setup", { token, email, password })
    ),
  );
  assert.deepEqual(answers.map(codeOf).sort(), ["400 setup_done", "ok"]);
  assert.equal(accounts.port.rows("_admins").length, 1);
});

Deno.test("no token is accepted before the server has printed a setup link", async () => {
  await using accounts = await startTestAccounts();
  assert.equal(
    codeOf(await accounts.post("/admin/setup", { token: "", email, password })),
    "401 invalid_setup_token",
  );
});

Deno.test("an administrator created at the command line ends the setup", async () => {
  await using accounts = await startTestAccounts();
  const token = await setupToken(accounts);
  await accounts.service.admins.create({ email, password });
  const answer = await accounts.post("/admin/setup", { token, email: "b@example.com", password });
  assert.equal(codeOf(answer), "400 setup_done");
});

Deno.test("administrators are created, listed, given new passwords and signed out", async () => {
  await using accounts = await startTestAccounts();
  const { admins } = accounts.service;
  await admins.create({ email: "Admin@example.com", password });
  await assert.rejects(admins.create({ email, password }), { code: "email_in_use" });
  await assert.rejects(admins.create({ email: "b@example.com", password: "short" }), {
    code: "weak_password",
  });
  const { body } = await accounts.post("/admin/signin", { email, password });
  assert.deepEqual((await admins.list()).map(({ email, sessions }) => [email, sessions]), [[email, 1]]);
  assert.deepEqual(await admins.resetPassword({ email, password: "new password" }), {
    ended: 1,
    passkeys: 0,
  });
  assert.deepEqual(await accounts.service.authenticator.verify(body.accessToken), {
    ok: false,
    error: "session has ended",
  });
  assert.equal(codeOf(await accounts.post("/admin/signin", { email, password })), "401 invalid_credentials");
  await accounts.post("/admin/signin", { email, password: "new password" });
  assert.equal(await admins.revokeSessions(email), 1);
  assert.equal(await admins.resetPassword({ email: "nobody@example.com", password }), null);
  assert.equal(await admins.revokeSessions("nobody@example.com"), null);
});

Deno.test("revoking the sessions of an address also ends the sessions of its user", async () => {
  await using accounts = await startTestAccounts();
  const user = await accounts.signUp("both@example.com");
  const admin = await accounts.signInAdmin("both@example.com");
  const bystander = await accounts.signUp("other@example.com");
  assert.equal(await accounts.service.admins.revokeSessions("both@example.com"), 2);
  const valid = async (token: string) => (await accounts.service.authenticator.verify(token)).ok;
  assert.deepEqual(await Promise.all([user, admin, bystander].map(({ accessToken }) => valid(accessToken))), [
    false,
    false,
    true,
  ]);
});
