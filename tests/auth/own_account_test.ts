import assert from "node:assert/strict";
import { password, startTestAccounts } from "./support/test_accounts.ts";

const email = "a@example.com";

Deno.test("users read their account and change their name", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken, userId } = await accounts.signUp(email);
  await accounts.call("_auth:setName", { name: "  Ann " }, accessToken);
  const account = {
    userId,
    email,
    emailVerified: false,
    name: "Ann",
    hasPassword: true,
    anonymous: false,
    profile: null,
  };
  assert.deepEqual(await accounts.call("_auth:account", {}, accessToken), account);
  await accounts.call("_auth:setName", { name: "" }, accessToken);
  assert.deepEqual(await accounts.call("_auth:account", {}, accessToken), { ...account, name: null });
  assert.equal(await accounts.call("_auth:account", {}, null), null);
});

Deno.test("users list only their own sessions, newest first", async () => {
  await using accounts = await startTestAccounts();
  await accounts.post("/signup", { email, password }, { headers: { "User-Agent": "Phone" } });
  const { body } = await accounts.post("/signin", { email, password }, {
    headers: { "User-Agent": "x".repeat(500) },
  });
  await accounts.signUp("b@example.com");
  const sessions = await accounts.call("_auth:listSessions", {}, body.accessToken) as Record<
    string,
    unknown
  >[];
  assert.deepEqual(sessions.map(({ current, userAgent }) => [current, userAgent]), [
    [true, "x".repeat(200)],
    [false, "Phone"],
  ]);
  assert.deepEqual(Object.keys(sessions[0] ?? {}).sort(), [
    "browser",
    "createdAt",
    "current",
    "expiresAt",
    "impersonated",
    "refreshedAt",
    "sessionId",
    "system",
    "userAgent",
  ]);
});

Deno.test("users end only their own sessions", async () => {
  await using accounts = await startTestAccounts();
  const first = await accounts.signUp(email);
  const second = (await accounts.post("/signin", { email, password })).body;
  const other = await accounts.signUp("b@example.com");
  const { verify } = { verify: (token: string) => accounts.service.authenticator.verify(token) };
  const sessionIdOf = async (token: string) => (await accounts.identityOf(token)).sessionId;
  const end = (sessionId: unknown) => accounts.call("_auth:signOutSession", { sessionId }, first.accessToken);
  await end(await sessionIdOf(second.accessToken));
  assert.equal((await verify(second.accessToken)).ok, false);
  for (const foreign of [await sessionIdOf(other.accessToken), other.userId, "nonsense"]) {
    await assert.rejects(end(foreign), { message: "session_not_found" });
  }
  assert.equal((await verify(other.accessToken)).ok, true);
  assert.equal((await verify(first.accessToken)).ok, true);
});

for (const keepCurrent of [true, false]) {
  Deno.test(`signing out everywhere ${keepCurrent ? "but here" : "also here"} ends the sessions of the user only`, async () => {
    await using accounts = await startTestAccounts();
    const here = await accounts.signUp(email);
    const there = (await accounts.post("/signin", { email, password })).body;
    const other = await accounts.signUp("b@example.com");
    assert.equal(
      await accounts.call("_auth:signOutEverywhere", { keepCurrent }, here.accessToken),
      keepCurrent ? 1 : 2,
    );
    const valid = async (token: string) => (await accounts.service.authenticator.verify(token)).ok;
    assert.deepEqual(await Promise.all([here, there, other].map(({ accessToken }) => valid(accessToken))), [
      keepCurrent,
      false,
      true,
    ]);
  });
}

Deno.test("a new password requires the old one and ends the other sessions", async () => {
  await using accounts = await startTestAccounts();
  const here = await accounts.signUp(email);
  const there = (await accounts.post("/signin", { email, password })).body;
  const change = (args: Record<string, unknown>) =>
    accounts.call("_auth:changePassword", args, here.accessToken);
  await assert.rejects(change({ newPassword: "new password" }), { message: "invalid_credentials" });
  await assert.rejects(change({ currentPassword: "wrong horse", newPassword: "new password" }), {
    message: "invalid_credentials",
  });
  await assert.rejects(change({ currentPassword: password, newPassword: "short" }), {
    message: "weak_password",
  });
  await assert.rejects(change({ currentPassword: password }), /args/);
  assert.equal(await change({ currentPassword: password, newPassword: "new password" }), null);
  assert.equal((await accounts.service.authenticator.verify(here.accessToken)).ok, true);
  assert.equal((await accounts.service.authenticator.verify(there.accessToken)).ok, false);
  assert.equal((await accounts.post("/signin", { email, password: "new password" })).status, 200);
});

Deno.test("guessing the current password over a socket is limited", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await accounts.signUp(email);
  const errors = new Set<string>();
  for (let i = 0; i < 30; i++) {
    await accounts.call(
      "_auth:changePassword",
      { currentPassword: `guess ${i}`, newPassword: password },
      accessToken,
    )
      .catch((error) => errors.add(error.message));
  }
  assert.deepEqual([...errors], ["invalid_credentials", "rate_limited"]);
});

Deno.test("a new address is stored when the email sent to it is used", async () => {
  for (const by of ["token", "code"] as const) {
    await using accounts = await startTestAccounts();
    const { accessToken, userId } = await accounts.signUp(email);
    const change = { email: "New@example.com", password };
    await assert.rejects(
      accounts.call("_auth:changeEmail", { ...change, password: "wrong horse" }, accessToken),
      {
        message: "invalid_credentials",
      },
    );
    await accounts.call("_auth:changeEmail", change, accessToken);
    assert.equal(accounts.port.rows("_users")[0]?.["email"], email);
    const mail = await accounts.mailTo("new@example.com");
    assert.match(mail?.mail.subject ?? "", /new email address/);
    const proof = by === "token" ? { token: mail?.token } : { email: "new@example.com", code: mail?.code };
    assert.equal((await accounts.post("/verify-email/confirm", proof)).status, 200);
    const [user] = accounts.port.rows("_users");
    assert.deepEqual([user?.["_id"], user?.["email"], user?.["emailVerified"]], [
      userId,
      "new@example.com",
      true,
    ]);
    assert.equal((await accounts.post("/signin", { email: "new@example.com", password })).status, 200);
    assert.equal((await accounts.post("/signin", { email, password })).status, 401);
  }
});

Deno.test("a new address of another user is refused, even if that user signed up after the email", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await accounts.signUp(email);
  await accounts.signUp("taken@example.com");
  const change = (to: string) => accounts.call("_auth:changeEmail", { email: to, password }, accessToken);
  await assert.rejects(change("taken@example.com"), { message: "email_in_use" });
  await assert.rejects(change("nonsense"), { message: "invalid_email" });
  await change("free@example.com");
  const mail = await accounts.mailTo("free@example.com");
  await accounts.signUp("free@example.com");
  assert.equal((await accounts.post("/verify-email/confirm", { token: mail?.token })).status, 400);
  const emails = accounts.port.rows("_users").map((user) => user["email"]);
  assert.deepEqual(emails.sort(), [email, "free@example.com", "taken@example.com"]);
});

Deno.test("only the address requested last can become the user's", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await accounts.signUp(email);
  const change = (to: string) => accounts.call("_auth:changeEmail", { email: to, password }, accessToken);
  await change("first@example.com");
  const first = await accounts.mailTo("first@example.com");
  await change("second@example.com");
  assert.equal((await accounts.post("/verify-email/confirm", { token: first?.token })).status, 400);
  const second = await accounts.mailTo("second@example.com");
  assert.equal((await accounts.post("/verify-email/confirm", { token: second?.token })).status, 200);
});

const calls: [udfPath: string, args: Record<string, unknown>][] = [
  ["_auth:listSessions", {}],
  ["_auth:setName", { name: "x" }],
  ["_auth:signOutSession", { sessionId: "x" }],
  ["_auth:signOutEverywhere", {}],
  ["_auth:changePassword", { currentPassword: password, newPassword: "new password" }],
  ["_auth:changeEmail", { email: "new@example.com", password }],
];
for (const [udfPath, args] of calls) {
  Deno.test(`${udfPath} asks a guest to sign in`, async () => {
    await using accounts = await startTestAccounts();
    await assert.rejects(accounts.call(udfPath, args, null), { message: "not_signed_in" });
  });
}

Deno.test("an administrator cannot change sign-in methods during impersonation, but can end it", async () => {
  await using accounts = await startTestAccounts();
  const user = await accounts.signUp(email);
  const admin = await accounts.signInAdmin("admin@example.com");
  const acting = await accounts.service.sessions.impersonate({
    userId: user.userId ?? "",
    adminId: admin.adminId ?? "",
    adminSession: (await accounts.identityOf(admin.accessToken)).sessionId ?? "",
    lifetimeMs: 600_000,
    userAgent: null,
  });
  assert.ok(acting);
  const own = await accounts.identityOf(user.accessToken);
  const forbidden: [string, Record<string, unknown>][] = [
    ["_auth:signOutEverywhere", {}],
    ["_auth:signOutSession", { sessionId: own.sessionId }],
    ["_auth:changePassword", { currentPassword: password, newPassword: "new password" }],
    ["_auth:changeEmail", { email: "new@example.com", password }],
  ];
  for (const [udfPath, args] of forbidden) {
    await assert.rejects(accounts.call(udfPath, args, acting.accessToken), { message: "impersonated" });
  }
  const { sessionId } = await accounts.identityOf(acting.accessToken);
  await accounts.call("_auth:signOutSession", { sessionId }, acting.accessToken);
  assert.equal((await accounts.service.authenticator.verify(acting.accessToken)).ok, false);
  assert.equal((await accounts.service.authenticator.verify(user.accessToken)).ok, true);
});

Deno.test("administrators list and end their own sessions, and have no user account", async () => {
  await using accounts = await startTestAccounts();
  await accounts.signUp(email);
  const admin = await accounts.signInAdmin("admin@example.com");
  assert.equal(await accounts.call("_auth:account", {}, admin.accessToken), null);
  assert.equal((await accounts.call("_auth:listSessions", {}, admin.accessToken) as unknown[]).length, 1);
  assert.equal(await accounts.call("_auth:signOutEverywhere", {}, admin.accessToken), 1);
  assert.equal(accounts.port.rows("_sessions").length, 1);
});
