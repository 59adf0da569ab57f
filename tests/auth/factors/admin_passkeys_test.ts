/** Passkeys of administrators: the same rules as for users, on the server's own pages. */
import assert from "node:assert/strict";
import { rateLimits } from "../../../mod/auth/limits.ts";
import { password, startTestAccounts, type TestAccounts } from "../support/test_accounts.ts";
import { type PasskeyOptions, TestAuthenticator } from "../support/test_authenticator.ts";
import { codeIn, codeOf } from "../support/test_factors.ts";
import { act, passkeyUser, startRegistration, startSignIn, verify } from "../support/test_passkeys.ts";

const root = "root@example.com";

/** Runs an action of the administrator's own account. */
const own = async <Result>(accounts: TestAccounts, name: string, args: object, token: string) =>
  await accounts.call(`_admin/administrators:${name}`, { ...args }, token) as Result;

const start = async (accounts: TestAccounts, token: string, args: object = { password }) =>
  (await own<{ options: PasskeyOptions }>(accounts, "startPasskey", args, token)).options;

const startProof = async (accounts: TestAccounts, token: string) =>
  (await own<{ options: PasskeyOptions }>(accounts, "startPasskeyProof", {}, token)).options;

const verifyAdmin = (accounts: TestAccounts, response: object, from = "203.0.113.1") =>
  accounts.post("/admin/passkey/verify", { response }, { from });

/** Creates an administrator with a passkey. */
async function passkeyAdmin(accounts: TestAccounts, authenticator: TestAuthenticator, email = root) {
  const { accessToken, adminId = "" } = await accounts.signInAdmin(email, password);
  const response = authenticator.create(await start(accounts, accessToken));
  const { passkeyId } = await own<{ passkeyId: string }>(
    accounts,
    "addPasskey",
    { response, name: "Laptop" },
    accessToken,
  );
  return { accessToken, adminId, passkeyId };
}

const signIn = async (accounts: TestAccounts, authenticator: TestAuthenticator, invalid = {}) =>
  await verifyAdmin(accounts, authenticator.get(await startSignIn(accounts), invalid));

Deno.test("PK9 an administrator adds, sees, renames and removes passkeys, which sign in without a second step", async () => {
  await using accounts = await startTestAccounts({ passkeys: false });
  const authenticator = new TestAuthenticator();
  const { accessToken, adminId, passkeyId } = await passkeyAdmin(accounts, authenticator);
  const listed = () => act<Record<string, unknown>[]>(accounts, "listPasskeys", {}, accessToken);
  assert.deepEqual((await listed()).map(({ name, lastUsedAt }) => [name, lastUsedAt]), [["Laptop", null]]);
  await accounts.call("_admin/administrators:renamePasskey", { passkeyId, name: "Phone" }, accessToken);
  const { enrolmentId, secret } = await own<{ enrolmentId: string; secret: string }>(
    accounts,
    "startTotp",
    { password },
    accessToken,
  );
  await own(accounts, "confirmTotp", { enrolmentId, code: codeOf(secret, accounts.clock.now) }, accessToken);
  // A password still takes the second step.
  assert.equal(codeIn(await accounts.post("/admin/signin", { email: root, password })), "mfa_required");
  const { status, body } = await signIn(accounts, authenticator);
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual([body.adminId, body.userId], [adminId, undefined]);
  assert.deepEqual((await listed()).map(({ name, lastUsedAt }) => [name, lastUsedAt]), [
    ["Phone", accounts.clock.now],
  ]);
  const [me] = await accounts.call("_admin/administrators:list", {}, body.accessToken) as Record<
    string,
    unknown
  >[];
  assert.deepEqual([me?.["secondFactor"], me?.["passkeys"]], [true, 1]);
  const { admins } = accounts.service;
  // A new password keeps the passkey, so the operator must be informed.
  assert.deepEqual(await admins.resetPassword({ email: root, password: "new password" }), {
    ended: 2,
    passkeys: 1,
  });
  const again = await signIn(accounts, authenticator);
  assert.equal(again.status, 200);
  await own(accounts, "removePasskey", { passkeyId }, again.body.accessToken);
  assert.deepEqual(accounts.port.rows("_passkeys"), []);
  assert.equal(codeIn(await signIn(accounts, authenticator)), "unknown_passkey");
});

Deno.test("PK9 a passkey of a user signs no administrator in, and that of an administrator no user", async () => {
  await using accounts = await startTestAccounts();
  const [ofUser, ofAdmin] = [new TestAuthenticator(), new TestAuthenticator()];
  // One address for both.
  await passkeyUser(accounts, ofUser, root);
  await passkeyAdmin(accounts, ofAdmin);
  const sessions = accounts.port.rows("_sessions").length;
  for (
    const answer of [
      await signIn(accounts, ofUser),
      await verify(accounts, ofAdmin.get(await startSignIn(accounts))),
    ]
  ) assert.deepEqual([answer.status, codeIn(answer)], [401, "unknown_passkey"]);
  assert.equal(accounts.port.rows("_sessions").length, sessions);
  assert.equal((await signIn(accounts, ofAdmin)).status, 200);
});

Deno.test("PK9 passkeys of administrators are used on the server's own pages only", async () => {
  const page = "https://app.example.com";
  await using accounts = await startTestAccounts({
    publicUrl: "https://example.com",
    redirectUrls: [`${page}/`],
  });
  const ownPage = new TestAuthenticator({ origin: "https://example.com" });
  const { accessToken } = await passkeyAdmin(accounts, ownPage);
  // The page may use passkeys of users.
  await passkeyUser(accounts, new TestAuthenticator({ origin: page }));
  assert.equal(codeIn(await signIn(accounts, ownPage, { origin: page })), "invalid_passkey");
  const proof = ownPage.get(await startProof(accounts, accessToken), { origin: page });
  await assert.rejects(own(accounts, "provePasskey", { response: proof }, accessToken), {
    message: "invalid_passkey",
  });
  const response = new TestAuthenticator({ origin: page }).create(await start(accounts, accessToken, {}));
  await assert.rejects(own(accounts, "addPasskey", { response }, accessToken), {
    message: "invalid_passkey",
  });
  assert.equal((await signIn(accounts, ownPage)).status, 200);
});

Deno.test("PK9 a passkey of an administrator is added with the password, and further changes need a proof", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  const first = await accounts.signInAdmin(root, password);
  for (const args of [{}, { password: "wrong horse" }]) {
    await assert.rejects(start(accounts, first.accessToken, args), { message: "invalid_credentials" });
  }
  const response = authenticator.create(await start(accounts, first.accessToken));
  const added = await own<{ passkeyId: string }>(accounts, "addPasskey", { response }, first.accessToken);
  // Another session with the password only, as of a person who knows it.
  const { accessToken } = (await accounts.post("/admin/signin", { email: root, password })).body;
  await assert.rejects(start(accounts, accessToken), { message: "factor_required" });
  await assert.rejects(own(accounts, "startTotp", { password }, accessToken), { message: "factor_required" });
  await assert.rejects(own(accounts, "removePasskey", added, accessToken), { message: "factor_required" });
  const other = await accounts.signInAdmin("other@example.com", password);
  const { userId } = await accounts.signUp("user@example.com");
  // Confirming the password does not replace the proof.
  await own(accounts, "confirmPassword", { password }, accessToken);
  const removeOthers = () => accounts.call("_admin/users:removeFactors", { userId }, accessToken);
  await assert.rejects(removeOthers(), { message: "factor_required" });
  const foreign = authenticator.get(await startProof(accounts, accessToken));
  await assert.rejects(own(accounts, "provePasskey", { response: foreign }, other.accessToken), {
    message: "invalid_challenge",
  });
  const stranger = new TestAuthenticator();
  const theirs = stranger.create(await start(accounts, other.accessToken));
  await own(accounts, "addPasskey", { response: theirs }, other.accessToken);
  await assert.rejects(own(accounts, "removePasskey", added, other.accessToken), {
    message: "passkey_not_found",
  });
  const wrong = stranger.get(await startProof(accounts, accessToken));
  await assert.rejects(own(accounts, "provePasskey", { response: wrong }, accessToken), {
    message: "unknown_passkey",
  });
  await own(accounts, "provePasskey", {
    response: authenticator.get(await startProof(accounts, accessToken)),
  }, accessToken);
  await removeOthers();
  await own(accounts, "removePasskey", added, accessToken);
});

Deno.test("PK9 PK4 a copied, replayed or expired passkey signs no administrator in", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  await passkeyAdmin(accounts, authenticator);
  assert.equal((await signIn(accounts, authenticator, { counter: 10 })).status, 200);
  assert.equal(codeIn(await signIn(accounts, authenticator, { counter: 10 })), "passkey_copied");
  const used = authenticator.get(await startSignIn(accounts), { counter: 11 });
  const twice = await Promise.all([verifyAdmin(accounts, used), verifyAdmin(accounts, used)]);
  assert.deepEqual(twice.map(({ status }) => status).sort(), [200, 401]);
  for (const invalid of [{ forged: true }, { userVerified: false }, { rpId: "example.org" }]) {
    assert.equal(
      codeIn(await signIn(accounts, authenticator, { ...invalid, counter: 20 })),
      "invalid_passkey",
    );
  }
  const options = await startSignIn(accounts);
  accounts.clock.now += 5 * 60_000;
  const late = await verifyAdmin(accounts, authenticator.get(options, { counter: 21 }));
  assert.equal(codeIn(late), "invalid_challenge");
});

const removals: readonly (readonly [
  name: string,
  remove: (accounts: TestAccounts, admin: { adminId: string; passkeyId: string }) => Promise<unknown>,
])[] = [
  ["an operator removes the factors", (accounts) => accounts.service.admins.removeFactors(root)],
  ["another owner removes the factors", async (accounts, { adminId }) => {
    const { accessToken } = await accounts.signInAdmin("other@example.com");
    await own(accounts, "removeFactors", { adminId }, accessToken);
  }],
  ["another owner removes the administrator", async (accounts, { adminId }) => {
    const { accessToken } = await accounts.signInAdmin("other@example.com");
    await accounts.call("_admin/administrators:remove", { adminId }, accessToken);
  }],
  ["the administrator's row is deleted", (accounts, { adminId }) => accounts.port.deleteRow(adminId)],
];
for (const [name, remove] of removals) {
  Deno.test(`PK9 an open sign-in of an administrator is refused when ${name}`, async () => {
    await using accounts = await startTestAccounts();
    const authenticator = new TestAuthenticator();
    const admin = await passkeyAdmin(accounts, authenticator);
    const response = authenticator.get(await startSignIn(accounts));
    await remove(accounts, admin);
    const refused = await verifyAdmin(accounts, response);
    assert.deepEqual([refused.status, codeIn(refused)], [401, "unknown_passkey"]);
    const left = accounts.port.rows("_sessions").filter((session) => session["admin"] === admin.adminId);
    if (!name.endsWith("row is deleted")) {
      assert.deepEqual(accounts.port.rows("_passkeys"), []);
      assert.ok(left.every(({ factorAt }) => factorAt === undefined));
    }
  });
}

Deno.test("PK9 PK7 sign-ins of administrators with passkeys are limited, and do not lock out their owner", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  await passkeyAdmin(accounts, authenticator);
  const home = "198.51.100.7";
  const right = authenticator.get(await startSignIn(accounts));
  assert.equal((await verifyAdmin(accounts, right, home)).status, 200);
  for (let i = 0; i < rateLimits.credentialsPerClient.burst; i++) {
    await verifyAdmin(accounts, { ...right, id: "unknown", rawId: "unknown" }, "198.51.100.9");
  }
  assert.equal((await verifyAdmin(accounts, right, "198.51.100.9")).status, 429);
  const attempt = async (from: string, given: string) =>
    (await accounts.post("/admin/signin", { email: root, password: given }, { from })).status;
  for (let i = 0; i < rateLimits.failuresPerAccount.burst; i++) {
    assert.equal(await attempt(`203.0.113.${Math.floor(i / 10)}`, "wrong guess"), 401);
  }
  assert.equal(await attempt("198.51.100.8", password), 429);
  assert.equal(await attempt(home, password), 200);
});

Deno.test("PK9 functions for users add and prove no passkey of an administrator, and impersonation none of either", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  const { accessToken, adminId, passkeyId } = await passkeyAdmin(accounts, authenticator);
  await assert.rejects(startRegistration(accounts, accessToken), { message: "not_signed_in" });
  for (
    const [name, args] of Object.entries({
      startPasskeyProof: {},
      removePasskey: { passkeyId },
      renamePasskey: { passkeyId, name: "x" },
    })
  ) await assert.rejects(act(accounts, name, args, accessToken), { message: "not_signed_in" }, name);
  const { userId = "" } = await accounts.signUp("user@example.com");
  const { sessionId } = await accounts.identityOf(accessToken);
  const impersonation = await accounts.service.sessions.impersonate({
    userId,
    adminId,
    adminSession: sessionId ?? "",
    lifetimeMs: 900_000,
    userAgent: null,
  });
  const acting = impersonation?.accessToken ?? "";
  assert.deepEqual(await act(accounts, "listPasskeys", {}, acting), [], "those of the user");
  await assert.rejects(startRegistration(accounts, acting, {}), { message: "impersonated" });
});
