/** Registering and removing passkeys. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { authLimits } from "../../../mod/auth/limits.ts";
import { password, startTestAccounts, type TestAccounts } from "../support/test_accounts.ts";
import { type InvalidValues, TestAuthenticator } from "../support/test_authenticator.ts";
import { codeIn, email, enroll, verifiedUser } from "../support/test_factors.ts";
import {
  act,
  passkeyUser,
  signIn,
  startProof,
  startRegistration,
  startSignIn,
  verify,
} from "../support/test_passkeys.ts";

const removals: readonly (readonly [
  name: string,
  remove: (accounts: TestAccounts, user: Awaited<ReturnType<typeof passkeyUser>>) => Promise<unknown>,
])[] = [
  [
    "its user removes it",
    (accounts, { accessToken, passkeyId }) => act(accounts, "removePasskey", { passkeyId }, accessToken),
  ],
  ["an administrator removes it", async (accounts, { userId, passkeyId }) => {
    const { accessToken } = await accounts.signInAdmin("root@example.com");
    await accounts.call("_admin/users:removePasskey", { userId, passkeyId }, accessToken);
  }],
  ["an administrator removes all factors", async (accounts, { userId }) => {
    const { accessToken } = await accounts.signInAdmin("root@example.com");
    await accounts.call("_admin/users:removeFactors", { userId }, accessToken);
  }],
  ["an operator removes all factors", (accounts) => accounts.service.admins.removeFactors(email)],
  ["the user is deleted", async (accounts, { userId }) => {
    const { accessToken } = await accounts.signInAdmin("root@example.com");
    await accounts.call("_admin/users:remove", { userId }, accessToken);
  }],
  ["the user's row is deleted", (accounts, { userId }) => accounts.port.deleteRow(userId)],
  ["the owner of the unverified address arrives", async (accounts, { userId }) => {
    const { accessToken } = await accounts.signInAdmin("root@example.com");
    await accounts.call("_admin/users:edit", { userId, emailVerified: false }, accessToken);
    await accounts.post("/magic/request", { email });
    await accounts.post("/magic/verify", { token: (await accounts.mailTo(email))?.token });
  }],
];
for (const [name, remove] of removals) {
  Deno.test(`PK5 an open sign-in with a passkey is refused when ${name}`, async () => {
    await using accounts = await startTestAccounts();
    const authenticator = new TestAuthenticator();
    const user = await passkeyUser(accounts, authenticator);
    const options = await startSignIn(accounts);
    await remove(accounts, user);
    const refused = await verify(accounts, authenticator.get(options));
    assert.deepEqual([refused.status, codeIn(refused)], [401, "unknown_passkey"]);
    const users = new Set(accounts.port.rows("_users").map(({ _id }) => _id));
    const left = accounts.port.rows("_sessions").filter((session) => users.has(session["user"]));
    assert.ok(left.every(({ factorAt }) => factorAt === undefined));
  });
}

Deno.test("PK5 a passkey is removed only soon after a proof, and never as the last sign-in method", async () => {
  await using accounts = await startTestAccounts({ magicLink: false });
  const authenticator = new TestAuthenticator();
  const { accessToken, passkeyId } = await passkeyUser(accounts, authenticator);
  const remove = () => act(accounts, "removePasskey", { passkeyId }, accessToken);
  accounts.clock.now += 10 * 60_000;
  await assert.rejects(remove(), { message: "factor_required" });
  const response = authenticator.get(await startProof(accounts, accessToken));
  await act(accounts, "provePasskey", { response }, accessToken);
  const other = await verifiedUser(accounts, "b@example.com");
  const foreign = act(accounts, "removePasskey", { passkeyId }, other.accessToken);
  await assert.rejects(foreign, { message: "passkey_not_found" });
  const renamed = act(accounts, "renamePasskey", { passkeyId, name: "x" }, other.accessToken);
  await assert.rejects(renamed, { message: "passkey_not_found" });
  const [row] = accounts.port.rows("_passwords");
  await accounts.port.deleteRow(String(row?.["_id"]));
  await assert.rejects(remove(), { message: "last_way_in" });
  assert.equal(accounts.port.rows("_passkeys").length, 1);
});

Deno.test("PK5 the removal of a passkey ends proofs in other sessions, and in its own with the last factor", async () => {
  await using accounts = await startTestAccounts();
  const [phone, securityKey] = [new TestAuthenticator(), new TestAuthenticator()];
  const { accessToken, passkeyId } = await passkeyUser(accounts, phone);
  const response = securityKey.create(await startRegistration(accounts, accessToken, {}));
  const added = await act<{ passkeyId: string }>(accounts, "addPasskey", { response }, accessToken);
  const { body } = await signIn(accounts, securityKey);
  const proofs = async () =>
    await Promise.all([accessToken, body.accessToken].map(async (token) => {
      const { provedAt } = await act<{ provedAt: number | null }>(accounts, "listFactors", {}, token);
      return provedAt;
    }));
  const { now } = accounts.clock;
  assert.deepEqual(await proofs(), [now, now]);
  await act(accounts, "removePasskey", { passkeyId }, accessToken);
  assert.deepEqual(await proofs(), [now, null]);
  await act(accounts, "removePasskey", added, accessToken);
  assert.deepEqual(await proofs(), [null, null]);
});

Deno.test("PK6 a passkey is added with the password, or soon after a proof or a sign-in", async () => {
  await using accounts = await startTestAccounts();
  const unverified = await accounts.signUp("new@example.com");
  await assert.rejects(startRegistration(accounts, unverified.accessToken), {
    message: "email_not_verified",
  });
  const { accessToken } = await verifiedUser(accounts);
  for (const args of [{}, { password: "wrong horse" }]) {
    await assert.rejects(startRegistration(accounts, accessToken, args), { message: "invalid_credentials" });
  }
  const authenticator = new TestAuthenticator();
  const response = authenticator.create(await startRegistration(accounts, accessToken));
  await act(accounts, "addPasskey", { response }, accessToken);
  accounts.clock.now += 10 * 60_000;
  // For users with a factor, the password is not sufficient to add a passkey or an authenticator app.
  await assert.rejects(startRegistration(accounts, accessToken), { message: "factor_required" });
  await assert.rejects(act(accounts, "startTotp", { password }, accessToken), { message: "factor_required" });
  const proof = authenticator.get(await startProof(accounts, accessToken));
  await act(accounts, "provePasskey", { response: proof }, accessToken);
  assert.equal((await startRegistration(accounts, accessToken, {})).rp?.id, "localhost");
  await enroll(accounts, { accessToken, owner: "" });

  await accounts.post("/magic/request", { email: "c@example.com" });
  const { token } = await accounts.mailTo("c@example.com") ?? {};
  const { body } = await accounts.post("/magic/verify", { token });
  assert.equal((await startRegistration(accounts, body.accessToken, {})).rp?.id, "localhost");
  accounts.clock.now += 10 * 60_000 + 1;
  await assert.rejects(startRegistration(accounts, body.accessToken, {}), {
    message: "confirmation_required",
  });
});

Deno.test("PK6 guests, administrators, impersonators, ended sessions and tokens of others add and prove nothing", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  const { accessToken, userId, passkeyId } = await passkeyUser(accounts, authenticator);
  const response = authenticator.get(await startProof(accounts, accessToken));
  const registration = new TestAuthenticator().create(await startRegistration(accounts, accessToken, {}));
  const root = await accounts.signInAdmin("root@example.com");
  const { sessionId } = await accounts.identityOf(root.accessToken);
  const impersonation = await accounts.service.sessions.impersonate({
    userId,
    adminId: root.adminId ?? "",
    adminSession: sessionId ?? "",
    lifetimeMs: 900_000,
    userAgent: null,
  });
  const calls = {
    startPasskey: { password },
    addPasskey: { response: registration },
    startPasskeyProof: {},
    provePasskey: { response },
    removePasskey: { passkeyId },
    renamePasskey: { passkeyId, name: "x" },
  };
  const codesOf = async (token: string | null) =>
    await Promise.all(
      Object.entries(calls).map(([name, args]) =>
        act(accounts, name, args, token).then(() => `${name} succeeded`, ({ message }) => message)
      ),
    );
  // A challenge of the user's session is no use to others.
  const [bound, guest] = ["invalid_challenge", "not_signed_in"];
  assert.deepEqual(await codesOf(null), [guest, bound, guest, bound, guest, guest]);
  assert.deepEqual(await codesOf(root.accessToken), Array(6).fill(guest));
  const acting = "impersonated";
  assert.deepEqual(
    await codesOf(impersonation?.accessToken ?? ""),
    [acting, bound, acting, bound, acting, acting],
  );
  const identity = { ...await accounts.identityOf(accessToken), sessionId: null };
  const run = async (name: string, args: object) =>
    await accounts.service.actions.get(`_auth:${name}`)?.run({ ...args }, identity);
  const external = await run("startPasskey", { password });
  assert.equal(external?.ok === false && external.error.data?.code, "no_session");

  const own = await accounts.identityOf(accessToken);
  await accounts.call("_auth:signOutEverywhere", {}, accessToken);
  for (
    const [name, args] of Object.entries({
      addPasskey: { response: registration },
      provePasskey: { response },
    })
  ) {
    const ended = await accounts.service.actions.get(`_auth:${name}`)?.run(args, own);
    assert.equal(ended?.ok === false && ended.error.data?.code, "no_session", name);
  }
  assert.equal(accounts.port.rows("_passkeys").length, 1);
});

Deno.test("PK6 of two registrations of one passkey one wins, and two of two devices both do", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await verifiedUser(accounts);
  const add = (response: object, token = accessToken) => act(accounts, "addPasskey", { response }, token);
  const one = new TestAuthenticator().create(await startRegistration(accounts, accessToken));
  const same = await Promise.allSettled([add(one), add(one)]);
  assert.deepEqual(same.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  const [first, second] = [
    await startRegistration(accounts, accessToken, {}),
    await startRegistration(accounts, accessToken, {}),
  ];
  const answers = [first, second].map((options) => new TestAuthenticator().create(options));
  await Promise.all(answers.map((response) => add(response)));
  assert.equal(accounts.port.rows("_passkeys").length, 3);
  // The credential of another account.
  const other = await verifiedUser(accounts, "b@example.com");
  const authenticator = new TestAuthenticator();
  const stolen = authenticator.create(await startRegistration(accounts, other.accessToken));
  await add(stolen, other.accessToken);
  const options = await startRegistration(accounts, accessToken, {});
  const clientDataJSON = Buffer.from(JSON.stringify({
    type: "webauthn.create",
    challenge: options.challenge,
    origin: "http://localhost:3210",
    crossOrigin: false,
  })).toString("base64url");
  await assert.rejects(add({ ...stolen, response: { ...stolen.response, clientDataJSON } }), {
    message: "passkey_exists",
  });
});

Deno.test("PK6 an account has a bounded number of passkeys", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await passkeyUser(accounts, new TestAuthenticator());
  const open = await startRegistration(accounts, accessToken, {});
  for (let i = 1; i < authLimits.passkeysPerUserMax; i++) {
    const response = new TestAuthenticator().create(await startRegistration(accounts, accessToken, {}));
    await act(accounts, "addPasskey", { response }, accessToken);
  }
  await assert.rejects(startRegistration(accounts, accessToken, {}), { message: "too_many_passkeys" });
  const response = new TestAuthenticator().create(open);
  await assert.rejects(act(accounts, "addPasskey", { response }, accessToken), {
    message: "too_many_passkeys",
  });
});

Deno.test("PK6 an attestation that the passkey signed itself is accepted, one of another key is not", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await verifiedUser(accounts);
  const add = async (invalid: InvalidValues) => {
    const response = new TestAuthenticator().create(await startRegistration(accounts, accessToken), invalid);
    await act(accounts, "addPasskey", { response }, accessToken);
  };
  await assert.rejects(add({ selfAttested: true, forged: true }), { message: "invalid_passkey" });
  await add({ selfAttested: true });
  assert.equal(accounts.port.rows("_passkeys").length, 1);
});

Deno.test("PK6 attestations with certificates are refused without a request to their addresses", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await verifiedUser(accounts);
  // {"x5c": [h'00']}
  const withCertificate = Buffer.from([0xa1, 0x63, 0x78, 0x35, 0x63, 0x81, 0x41, 0x00]);
  const realFetch = globalThis.fetch;
  const fetched: unknown[] = [];
  globalThis.fetch = (input) => {
    fetched.push(input);
    return Promise.reject(new TypeError("no network"));
  };
  try {
    for (const format of ["packed", "fido-u2f", "tpm", "android-key", "android-safetynet", "apple"]) {
      const attestation = { format, statement: withCertificate };
      const response = new TestAuthenticator().create(await startRegistration(accounts, accessToken), {
        attestation,
      });
      const added = act(accounts, "addPasskey", { response }, accessToken);
      await assert.rejects(added, { message: "invalid_passkey" }, format);
    }
  } finally {
    globalThis.fetch = realFetch;
  }
  assert.deepEqual(fetched, []);
});

Deno.test("PK8 a setting stops new passkeys, and existing ones still sign in", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  const { accessToken } = await passkeyUser(accounts, authenticator);
  await accounts.service.configure({
    policy: {
      signups: true,
      magicLink: true,
      totp: true,
      passkeys: false,
      deviceMail: true,
      userKeys: [],
      anonymous: false,
      anonymousUserMs: 0,
      requireVerification: false,
    },
    redirectUrls: [],
    templatesDir: null,
    appName: "Test",
    mailer: undefined,
    rateLimits: {},
  });
  await assert.rejects(startRegistration(accounts, accessToken, {}), { message: "passkeys_disabled" });
  assert.equal((await signIn(accounts, authenticator)).status, 200);
});
