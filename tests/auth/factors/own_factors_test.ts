/** Setting up, proving and removing second factors, and functions that need one. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { TotpApps } from "../../../mod/auth/factors/totp_apps.ts";
import { createFunctions } from "../../../mod/functions/api/mod.ts";
import { anonymous } from "../../../mod/functions/identity.ts";
import { password, startTestAccounts, type TestAccounts } from "../support/test_accounts.ts";
import {
  challenge,
  codeIn,
  codeOf,
  email,
  enroll,
  enrolledAdmin,
  enrolledUser,
  STEP_MS,
  verifiedUser,
  wrongCode,
} from "../support/test_factors.ts";
import { TestAuthenticator } from "../support/test_authenticator.ts";
import { passkeyUser } from "../support/test_passkeys.ts";

interface Started {
  readonly enrolmentId: string;
  readonly secret: string;
  readonly uri: string;
  readonly qrCode: string;
}

const start = async (accounts: TestAccounts, accessToken: string, args: object = { password }) =>
  await accounts.call("_auth:startTotp", { ...args }, accessToken) as Started;

Deno.test("MF7 an authenticator app is set up with the password and its first code", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await verifiedUser(accounts);
  for (const args of [{}, { password: "wrong horse" }]) {
    await assert.rejects(start(accounts, accessToken, args), { message: "invalid_credentials" });
  }
  const { enrolmentId, secret, uri, qrCode } = await start(accounts, accessToken);
  assert.match(secret, /^[A-Z2-7]{32}$/);
  assert.ok(uri.startsWith("otpauth://totp/Test:a%40example.com?"), uri);
  assert.ok(uri.includes(`secret=${secret}`));
  assert.match(qrCode, /^<svg [^]*<\/svg>$/);
  const factors = () => accounts.call("_auth:listFactors", {}, accessToken);
  assert.deepEqual(await factors(), { totp: null, recoveryCodes: 0, provedAt: null });
  const wrong = wrongCode(secret, accounts.clock.now);
  const confirm = (code: string) => accounts.call("_auth:confirmTotp", { enrolmentId, code }, accessToken);
  await assert.rejects(confirm(wrong), { message: "invalid_code" });
  assert.equal((await accounts.post("/signin", { email, password })).status, 200, "not confirmed yet");
  const code = codeOf(secret, accounts.clock.now);
  await confirm(code);
  const { now } = accounts.clock;
  const { totp, ...rest } = await factors() as { totp: { lastUsedAt: number } };
  assert.equal(totp.lastUsedAt, now);
  assert.deepEqual(rest, { recoveryCodes: 10, provedAt: now });
  await assert.rejects(confirm(code), { message: "invalid_enrolment" });
  await assert.rejects(start(accounts, accessToken), { message: "factor_exists" });
  // The code of the enrolment is used, too.
  const again = await accounts.post("/mfa/verify", { challenge: await challenge(accounts), code });
  assert.equal(codeIn(again), "invalid_code");
  assert.equal(await accounts.call("_auth:listFactors", {}, null), null);
});

Deno.test("MF7 an account whose address is not verified sets up no factor, unless the server sends no mail", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await accounts.signUp(email);
  await assert.rejects(start(accounts, accessToken), { message: "email_not_verified" });
  await accounts.post("/verify-email/confirm", { token: (await accounts.mailTo(email))?.token });
  assert.match((await start(accounts, accessToken)).enrolmentId, /./);
  await using silent = await startTestAccounts({ mail: false });
  assert.match((await start(silent, (await silent.signUp(email)).accessToken)).enrolmentId, /./);
});

Deno.test("MF7 an account without a password sets up a factor only soon after a sign-in", async () => {
  await using accounts = await startTestAccounts();
  const signIn = async () => {
    await accounts.post("/magic/request", { email });
    return (await accounts.post("/magic/verify", { token: (await accounts.mailTo(email))?.token })).body;
  };
  const { accessToken, refreshToken } = await signIn();
  accounts.clock.now += 10 * 60_000 - 1;
  assert.match((await start(accounts, accessToken, {})).enrolmentId, /./);
  accounts.clock.now += 2;
  await assert.rejects(start(accounts, accessToken, {}), { message: "confirmation_required" });
  // A refresh is no sign-in.
  const { body: refreshed } = await accounts.post("/refresh", { refreshToken });
  await assert.rejects(start(accounts, refreshed.accessToken, {}), { message: "confirmation_required" });
  assert.match((await start(accounts, (await signIn()).accessToken, {})).enrolmentId, /./);
});

Deno.test("MF7 the newer of two enrolments is valid, and two concurrent confirmations create one factor", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await verifiedUser(accounts);
  const older = await start(accounts, accessToken);
  const newer = await start(accounts, accessToken);
  const confirm = ({ enrolmentId, secret }: Started) =>
    accounts.call(
      "_auth:confirmTotp",
      { enrolmentId, code: codeOf(secret, accounts.clock.now) },
      accessToken,
    );
  await assert.rejects(confirm(older), { message: "invalid_enrolment" });
  const both = await Promise.allSettled([confirm(newer), confirm(newer)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  assert.equal(accounts.port.rows("_totp").length, 1);
  assert.equal(accounts.port.rows("_recovery_codes").length, 10);
});

Deno.test("MF7 an enrolment of another user or from ten minutes ago cannot be confirmed", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await verifiedUser(accounts);
  const other = await accounts.signUp("b@example.com");
  const { enrolmentId, secret } = await start(accounts, accessToken);
  const confirm = (token: string) =>
    accounts.call("_auth:confirmTotp", { enrolmentId, code: codeOf(secret, accounts.clock.now) }, token);
  await assert.rejects(confirm(other.accessToken), { message: "invalid_enrolment" });
  accounts.clock.now += 10 * 60_000;
  await assert.rejects(confirm(accessToken), { message: "invalid_enrolment" });
  await accounts.service.sweep();
  assert.equal(accounts.port.rows("_totp_enrolments").length, 0);
});

Deno.test("MF7 factors are removed and recovery codes renewed only soon after a proof", async () => {
  await using accounts = await startTestAccounts();
  const { secret, accessToken, recoveryCodes: [old = ""] } = await enrolledUser(accounts);
  accounts.clock.now += 10 * 60_000;
  const late = (path: string) =>
    assert.rejects(accounts.call(path, {}, accessToken), { message: "factor_required" });
  await late("_auth:removeTotp");
  await late("_auth:renewRecoveryCodes");
  await assert.rejects(
    accounts.call("_auth:proveFactor", { code: wrongCode(secret, accounts.clock.now) }, accessToken),
    { message: "invalid_code" },
  );
  await accounts.call("_auth:proveFactor", { code: codeOf(secret, accounts.clock.now) }, accessToken);
  const { recoveryCodes } = await accounts.call("_auth:renewRecoveryCodes", {}, accessToken) as {
    recoveryCodes: string[];
  };
  const verify = async (recoveryCode = "") =>
    await accounts.post("/mfa/verify", { challenge: await challenge(accounts), recoveryCode });
  assert.equal(codeIn(await verify(old)), "invalid_code");
  assert.equal((await verify(recoveryCodes[0])).status, 200);
  await accounts.call("_auth:removeTotp", {}, accessToken);
  assert.equal((await accounts.post("/signin", { email, password })).status, 200);
  assert.deepEqual(
    ["_totp", "_recovery_codes"].flatMap((table) => accounts.port.rows(table)),
    [],
  );
  assert.ok(accounts.port.rows("_sessions").every(({ factorAt }) => factorAt === undefined));
});

Deno.test("MF9 guesses in a session are limited, and do not lock out sign-ins", async () => {
  await using accounts = await startTestAccounts();
  const { secret, accessToken } = await enrolledUser(accounts);
  const prove = (code: string) => accounts.call("_auth:proveFactor", { code }, accessToken);
  for (let i = 0; i < 10; i++) {
    await assert.rejects(prove(wrongCode(secret, accounts.clock.now)), { message: "invalid_code" });
  }
  await assert.rejects(prove(codeOf(secret, accounts.clock.now)), { message: "rate_limited" });
  const code = codeOf(secret, accounts.clock.now);
  const answer = await accounts.post("/mfa/verify", { challenge: await challenge(accounts), code });
  assert.equal(answer.status, 200);
});

Deno.test("MF7 a guest, an impersonating administrator and a disabled setting set up nothing", async () => {
  await using accounts = await startTestAccounts({ totp: false });
  const { accessToken, userId = "" } = await accounts.signUp(email);
  await assert.rejects(start(accounts, accessToken), { message: "totp_disabled" });
  const admin = await accounts.signInAdmin("root@example.com");
  // Administrators are not affected by the setting for users.
  await enroll(accounts, {
    accessToken: admin.accessToken,
    owner: admin.adminId ?? "",
    base: "_admin/administrators",
  });
  await using open = await startTestAccounts();
  const user = await enrolledUser(open);
  const root = await open.signInAdmin("root@example.com");
  const { sessionId } = await open.identityOf(root.accessToken);
  const tokens = await open.service.sessions.impersonate({
    userId: user.owner,
    adminId: root.adminId ?? "",
    adminSession: sessionId ?? "",
    lifetimeMs: 900_000,
    userAgent: null,
  });
  assert.ok(tokens && userId);
  for (const path of ["startTotp", "removeTotp", "renewRecoveryCodes"]) {
    const impersonated = open.call(`_auth:${path}`, {}, tokens.accessToken);
    await assert.rejects(impersonated, { message: "impersonated" }, path);
    await assert.rejects(open.call(`_auth:${path}`, {}, null), { message: "not_signed_in" }, path);
  }
  const code = codeOf(user.secret, open.clock.now);
  const proved = open.call("_auth:proveFactor", { code }, tokens.accessToken);
  await assert.rejects(proved, { message: "impersonated" });
});

Deno.test("MF5 proving the ownership of an unverified account's address removes the factors of its creator", async () => {
  await using accounts = await startTestAccounts();
  const { owner } = await enrolledUser(accounts);
  const { accessToken } = await accounts.signInAdmin("root@example.com");
  await accounts.call("_admin/users:edit", { userId: owner, emailVerified: false }, accessToken);
  await accounts.post("/magic/request", { email });
  const { status } = await accounts.post("/magic/verify", { token: (await accounts.mailTo(email))?.token });
  assert.equal(status, 200);
  assert.equal(accounts.port.rows("_totp").length, 0);
  assert.equal(accounts.port.rows("_recovery_codes").length, 0);
});

Deno.test("MF5 no data about the factors of a deleted user or administrator remains", async () => {
  await using accounts = await startTestAccounts();
  const { owner } = await enrolledUser(accounts);
  const other = await verifiedUser(accounts, "b@example.com");
  await start(accounts, other.accessToken);
  await challenge(accounts);
  const admin = await enrolledAdmin(accounts, "root@example.com");
  const last = await accounts.signInAdmin("last@example.com");
  await accounts.call("_admin/users:remove", { userId: owner }, admin.accessToken);
  await accounts.call("_admin/users:remove", { userId: other.userId }, admin.accessToken);
  await accounts.call("_admin/administrators:remove", { adminId: admin.owner }, last.accessToken);
  for (const table of ["_totp", "_totp_enrolments", "_recovery_codes", "_sign_in_challenges"]) {
    assert.deepEqual(accounts.port.rows(table), [], table);
  }
});

Deno.test("MF8 administrators remove the factors of others, not their own without a proof", async () => {
  await using accounts = await startTestAccounts();
  const { owner } = await enrolledUser(accounts);
  const admin = await enrolledAdmin(accounts, "root@example.com");
  const other = await enrolledAdmin(accounts, "other@example.com");
  const list = async () =>
    (await accounts.call("_admin/administrators:list", {}, admin.accessToken) as { secondFactor: boolean }[])
      .map(({ secondFactor }) => secondFactor);
  assert.deepEqual(await list(), [true, true]);
  const remove = (adminId: string) =>
    accounts.call("_admin/administrators:removeFactors", { adminId }, admin.accessToken);
  await assert.rejects(remove(admin.owner), { message: "own_factors" });
  await remove(other.owner);
  assert.deepEqual(await list(), [true, false]);
  const get = () => accounts.call("_admin/users:get", { userId: owner }, admin.accessToken);
  assert.equal((await get() as { secondFactor: boolean }).secondFactor, true);
  await accounts.call("_admin/users:removeFactors", { userId: owner }, admin.accessToken);
  assert.equal((await get() as { secondFactor: boolean }).secondFactor, false);
  assert.equal((await accounts.post("/signin", { email, password })).status, 200);
  assert.equal(await accounts.service.admins.removeFactors("ROOT@example.com"), true);
  assert.equal(await accounts.service.admins.removeFactors("nobody@example.com"), false);
  assert.deepEqual(await list(), [false, false]);
});

Deno.test("MF8 administrators remove the factors of others only soon after a confirmation of their identity", async () => {
  await using accounts = await startTestAccounts();
  const { owner } = await enrolledUser(accounts);
  const { owner: otherAdmin } = await enrolledAdmin(accounts, "other@example.com");
  const plain = await accounts.signInAdmin("plain@example.com");
  const secured = await enrolledAdmin(accounts, "root@example.com");
  const { userId, passkeyId } = await passkeyUser(accounts, new TestAuthenticator(), "p@example.com");
  const removals = {
    "_admin/users:removeFactors": { userId: owner },
    "_admin/administrators:removeFactors": { adminId: otherAdmin },
    "_admin/users:removePasskey": { userId, passkeyId },
  };
  const remove = async (accessToken: string, path: keyof typeof removals) =>
    await accounts.call(path, removals[path], accessToken);
  const refused = async (accessToken: string, message: string) => {
    for (const path of Object.keys(removals) as (keyof typeof removals)[]) {
      await assert.rejects(remove(accessToken, path), { message }, path);
    }
  };
  accounts.clock.now += 10 * 60_000;
  await refused(plain.accessToken, "confirmation_required");
  await refused(secured.accessToken, "factor_required");
  const confirm = (accessToken: string, given: string) =>
    accounts.call("_admin/administrators:confirmPassword", { password: given }, accessToken);
  await assert.rejects(confirm(plain.accessToken, "wrong horse"), { message: "invalid_credentials" });
  await refused(plain.accessToken, "confirmation_required");
  await confirm(plain.accessToken, password);
  // The password is not sufficient for users with a factor.
  await confirm(secured.accessToken, password);
  await refused(secured.accessToken, "factor_required");
  assert.equal(accounts.port.rows("_totp").length, 3);
  await remove(plain.accessToken, "_admin/users:removeFactors");
  await remove(plain.accessToken, "_admin/administrators:removeFactors");
  assert.equal(accounts.port.rows("_totp").length, 1);
  await accounts.call(
    "_admin/administrators:proveFactor",
    { code: codeOf(secured.secret, accounts.clock.now) },
    secured.accessToken,
  );
  for (const path of Object.keys(removals) as (keyof typeof removals)[]) {
    await remove(secured.accessToken, path);
  }
  assert.equal(accounts.port.rows("_passkeys").length, 0);
  // Users have no such function, and an ended session confirms nothing.
  const user = await accounts.signUp("b@example.com");
  await assert.rejects(confirm(user.accessToken, password));
});

Deno.test("MF8 administrators change their factors only by the audited functions", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken, secret } = await enrolledAdmin(accounts);
  const code = codeOf(secret, accounts.clock.now);
  const changes = { startTotp: { password }, proveFactor: { code }, renewRecoveryCodes: {}, removeTotp: {} };
  for (const [name, args] of Object.entries({ ...changes, confirmTotp: { enrolmentId: "x", code } })) {
    const call = accounts.call(`_auth:${name}`, args, accessToken);
    await assert.rejects(call, { message: "not_signed_in" }, name);
  }
  // The proof is still valid, and nothing was removed.
  for (const name of ["proveFactor", "renewRecoveryCodes", "removeTotp"] as const) {
    await accounts.call(`_admin/administrators:${name}`, changes[name], accessToken);
  }
});

const { query, mutation } = createFunctions({ tables: {} });
const app = {
  tables: {},
  functions: {
    "pay:read": query({
      args: {},
      handler: async (ctx) => {
        await ctx.auth.requireFactor();
        return "secret";
      },
    }),
    "pay:send": mutation({
      args: {},
      handler: async (ctx) => {
        await ctx.auth.requireFactor({ withinMinutes: 5 });
        return "sent";
      },
    }),
    "pay:never": mutation({
      args: {},
      handler: async (ctx) => await ctx.auth.requireFactor({ withinMinutes: 0 }),
    }),
  },
};

Deno.test("MF6 a function that requires a factor runs in sessions with a proved, or recently proved, one", async () => {
  await using accounts = await startTestAccounts({ app });
  const plain = await verifiedUser(accounts);
  const refused = async (path: string, token: string | null, data?: object) => {
    const call = {
      udfPath: path,
      args: {},
      identity: await identityOf(accounts, token),
      origin: "client",
    } as const;
    const outcome = path === "pay:read"
      ? await accounts.port.query(call)
      : (await accounts.port.mutate(call)).outcome;
    assert.ok(!outcome.ok);
    assert.deepEqual(outcome.error.data, data ?? null);
  };
  const needed = (enrolled: boolean, withinMinutes: number | null) => ({
    code: "factor_required",
    data: { enrolled, withinMinutes },
  });
  await refused("pay:read", null, { code: "not_signed_in", data: null });
  await refused("pay:read", plain.accessToken, needed(false, null));
  const { accessToken, secret } = await enroll(accounts, {
    accessToken: plain.accessToken,
    owner: plain.userId ?? "",
  });
  assert.equal(await accounts.call("pay:read", {}, accessToken), "secret");
  assert.equal(await accounts.call("pay:send", {}, accessToken), "sent");
  accounts.clock.now += 5 * 60_000;
  assert.equal(await accounts.call("pay:read", {}, accessToken), "secret");
  await refused("pay:send", accessToken, needed(true, 5));
  await accounts.call("_auth:proveFactor", { code: codeOf(secret, accounts.clock.now) }, accessToken);
  assert.equal(await accounts.call("pay:send", {}, accessToken), "sent");
  await accounts.call("_auth:removeTotp", {}, accessToken);
  await refused("pay:read", accessToken, needed(false, null));
  await assert.rejects(accounts.call("pay:never", {}, accessToken), /withinMinutes/);
});

Deno.test("MF3 the secret of another account or of another key is of no use", async () => {
  const apps = new TotpApps(randomBytes(32));
  const now = Date.UTC(2030, 0, 1);
  const { encrypted, secret } = await apps.create({ owner: "a", issuer: "A: shop", label: "x" });
  const code = codeOf(secret, now);
  const stepOf = (from: TotpApps, owner: string, typed = code) =>
    from.stepOf({ owner, encrypted, code: typed, now });
  assert.equal(await stepOf(apps, "a"), now / STEP_MS);
  assert.equal(await stepOf(apps, "a", `${code.slice(0, 3)} ${code.slice(3)}`), now / STEP_MS);
  assert.equal(await stepOf(apps, "b"), null);
  assert.equal(await stepOf(new TotpApps(randomBytes(32)), "a"), null);
  for (const typed of ["", "12345", "1234567", "abcdef", `-${code}x`]) {
    assert.equal(await stepOf(apps, "a", typed), null, typed);
  }
});

async function identityOf(accounts: TestAccounts, token: string | null) {
  return token === null ? anonymous : await accounts.identityOf(token);
}
