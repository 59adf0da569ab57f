/** Sign-ins and proofs with passkeys, and attacks on them. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { PasskeyChallenges } from "../../../mod/auth/passkeys/challenges.ts";
import { authLimits, rateLimits } from "../../../mod/auth/limits.ts";
import { TokenHasher } from "../../../mod/auth/tokens/token_hash.ts";
import { authEventArgs, createFunctions, defineTable } from "../../../mod/functions/api/mod.ts";
import { z } from "zod";
import { password, startTestAccounts } from "../support/test_accounts.ts";
import { type InvalidValues, TestAuthenticator } from "../support/test_authenticator.ts";
import { challenge, codeIn, email, enrolledUser } from "../support/test_factors.ts";
import {
  act,
  passkeyUser,
  signIn,
  startProof,
  startRegistration,
  startSignIn,
  verify,
} from "../support/test_passkeys.ts";

Deno.test("PK1 a signed-in user adds a passkey, which signs in without a second step", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  const { accessToken, userId } = await passkeyUser(accounts, authenticator);
  const list = async () => await act<Record<string, unknown>[]>(accounts, "listPasskeys", {}, accessToken);
  const [{ passkeyId = "", createdAt, ...shown } = {}] = await list();
  assert.equal(Math.floor(Number(createdAt)), accounts.clock.now);
  assert.deepEqual(shown, { name: "Passkey", lastUsedAt: null, backedUp: true });
  await act(accounts, "renamePasskey", { passkeyId, name: " Phone " }, accessToken);
  accounts.clock.now += 1_000;
  const { status, body } = await signIn(accounts, authenticator);
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(Object.keys(body).sort(), ["accessToken", "expiresIn", "refreshToken", "userId"]);
  assert.equal(body.userId, userId);
  assert.equal(accounts.port.rows("_sessions").at(-1)?.["factorAt"], accounts.clock.now);
  const [used] = await list();
  assert.deepEqual([used?.["name"], used?.["lastUsedAt"]], ["Phone", accounts.clock.now]);
  assert.equal(await act(accounts, "listPasskeys", {}, null), null);
});

Deno.test("PK1 several passkeys sign in to one account, and the hook of the app runs", async () => {
  const app = createFunctions({ tables: {} });
  await using accounts = await startTestAccounts({
    app: {
      tables: { visits: defineTable({ by: z.string() }) },
      functions: {
        "auth:onSignIn": app.internalMutation({
          args: authEventArgs,
          handler: async (ctx, { by }) => {
            const db = ctx.db as unknown as { insert(table: string, row: unknown): Promise<unknown> };
            await db.insert("visits", { by });
          },
        }),
      },
    },
  });
  const [phone, key] = [new TestAuthenticator(), new TestAuthenticator({ step: 0 })];
  const { accessToken, userId } = await passkeyUser(accounts, phone);
  const options = await startRegistration(accounts, accessToken, {});
  const response = key.create(options, { backupEligible: false, backedUp: false });
  await act(accounts, "addPasskey", { response, name: "Security key" }, accessToken);
  for (const authenticator of [phone, key, key]) {
    const flags = authenticator === key ? { backupEligible: false, backedUp: false } : {};
    assert.equal((await signIn(accounts, authenticator, flags)).body.userId, userId);
  }
  assert.deepEqual(accounts.port.rows("visits").slice(-3).map(({ by }) => by), [
    "passkey",
    "passkey",
    "passkey",
  ]);
  const backedUp = accounts.port.rows("_passkeys").map((row) => row["backedUp"]);
  assert.deepEqual(backedUp, [true, false]);
});

Deno.test("PK1 a passkey signs in where a password needs a second step, and counts as the factor", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await enrolledUser(accounts);
  const authenticator = new TestAuthenticator();
  const response = authenticator.create(await startRegistration(accounts, accessToken, {}));
  await act(accounts, "addPasskey", { response }, accessToken);
  await challenge(accounts);
  const { status, body } = await signIn(accounts, authenticator);
  assert.equal(status, 200);
  // The session may change factors, because it proved one.
  await act(accounts, "removeTotp", {}, body.accessToken);
  assert.equal(
    (await accounts.post("/signin", { email, password })).status,
    200,
    "a passkey adds no second step",
  );
});

const invalidResponses: readonly (readonly [name: string, invalid: InvalidValues, code: string])[] = [
  ["the page of another site", { origin: "https://evil.example" }, "invalid_passkey"],
  ["a page of another port", { origin: "http://localhost:3211" }, "invalid_passkey"],
  ["a page with another scheme", { origin: "https://localhost:3210" }, "invalid_passkey"],
  [
    "a page whose host only begins like the server's",
    { origin: "http://localhost.evil.example:3210" },
    "invalid_passkey",
  ],
  ["an origin with a path", { origin: "http://localhost:3210/" }, "invalid_passkey"],
  ["a frame in a page of another site", { crossOrigin: true }, "invalid_passkey"],
  ["a frame that names its top", { topOrigin: "http://localhost:3210" }, "invalid_passkey"],
  ["another relying party", { rpId: "evil.example" }, "invalid_passkey"],
  ["no user present", { userPresent: false }, "invalid_passkey"],
  ["no user verified", { userVerified: false }, "invalid_passkey"],
  [
    "a backup of a passkey that cannot have one",
    { backupEligible: false, backedUp: true },
    "invalid_passkey",
  ],
  ["the type of the other ceremony", { type: "webauthn.other" }, "invalid_passkey"],
  [
    "a challenge that was never issued",
    { challenge: randomBytes(54).toString("base64url") },
    "invalid_challenge",
  ],
  ["a short challenge", { challenge: "AAAA" }, "invalid_challenge"],
  ["an empty challenge", { challenge: "" }, "invalid_challenge"],
];
for (const [name, invalid, code] of invalidResponses) {
  Deno.test(`PK2 a sign-in and a registration are refused with ${name}`, async () => {
    await using accounts = await startTestAccounts();
    const authenticator = new TestAuthenticator();
    const { accessToken } = await passkeyUser(accounts, authenticator);
    const sessions = accounts.port.rows("_sessions").length;
    const refused = await signIn(accounts, authenticator, invalid);
    assert.deepEqual([refused.status, codeIn(refused)], [401, code]);
    assert.equal(accounts.port.rows("_sessions").length, sessions);
    const response = new TestAuthenticator().create(
      await startRegistration(accounts, accessToken, {}),
      invalid,
    );
    await assert.rejects(act(accounts, "addPasskey", { response }, accessToken), { message: code });
    assert.equal(accounts.port.rows("_passkeys").length, 1);
    assert.equal((await signIn(accounts, authenticator)).status, 200, "the passkey works still");
  });
}

const invalidSignIns: readonly (readonly [rule: string, name: string, invalid: InvalidValues])[] = [
  ["PK2", "a signature of another key", { forged: true }],
  ["PK2", "the handle of another user", { userHandle: Buffer.from("another").toString("base64url") }],
  ["PK2", "no user handle", { userHandle: null }],
  ["PK4", "a passkey that can no longer be backed up", { backupEligible: false, backedUp: false }],
];
for (const [rule, name, invalid] of invalidSignIns) {
  Deno.test(`${rule} a sign-in is refused with ${name}`, async () => {
    await using accounts = await startTestAccounts();
    const authenticator = new TestAuthenticator();
    await passkeyUser(accounts, authenticator);
    assert.equal(codeIn(await signIn(accounts, authenticator, invalid)), "invalid_passkey");
  });
}

Deno.test("PK2 pages on the server's domain that may receive sign-ins may use passkeys, others not", async () => {
  const publicUrl = "https://example.com";
  await using accounts = await startTestAccounts({
    publicUrl,
    redirectUrls: [
      "https://app.example.com/auth",
      "https://elsewhere.example.org/auth",
      "https://notexample.com/",
    ],
  });
  const authenticator = new TestAuthenticator({ origin: publicUrl });
  await passkeyUser(accounts, authenticator);
  const tried = async (origin: string) => (await signIn(accounts, authenticator, { origin })).status;
  assert.equal(await tried("https://example.com"), 200);
  assert.equal(await tried("https://app.example.com"), 200);
  for (
    const host of ["other.example.com", "elsewhere.example.org", "notexample.com", "app.example.com:444"]
  ) {
    assert.equal(await tried(`https://${host}`), 401, host);
  }
  assert.equal(await tried("http://app.example.com"), 401);
});

Deno.test("PK2 the relying party is the domain of the public URL, and an address has none", async () => {
  const idOf = async (publicUrl: string) => {
    await using accounts = await startTestAccounts({ publicUrl });
    return (await startSignIn(accounts)).rpId;
  };
  assert.equal(await idOf("https://example.com:8443"), "example.com");
  assert.equal(await idOf("http://127.0.0.1:3210"), "localhost");
  for (const publicUrl of ["http://192.0.2.1:3210", "http://[2001:db8::1]"]) {
    await assert.rejects(idOf(publicUrl), { message: "passkeys_unavailable" });
  }
});

Deno.test("PK3 a challenge works once, for five minutes, for its purpose and its session", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  const { accessToken } = await passkeyUser(accounts, authenticator);
  const options = await startSignIn(accounts);
  const response = authenticator.get(options);
  const both = await Promise.all([verify(accounts, response), verify(accounts, response)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 401]);
  assert.equal(codeIn(await verify(accounts, authenticator.get(options))), "invalid_challenge");

  const late = await startSignIn(accounts);
  accounts.clock.now += authLimits.passkeyChallengeMs;
  assert.equal(codeIn(await verify(accounts, authenticator.get(late))), "invalid_challenge");
  assert.equal(accounts.port.rows("_used_challenges").length, 2);
  await accounts.service.sweep();
  assert.equal(accounts.port.rows("_used_challenges").length, 0);

  const other = await accounts.post("/signin", { email, password });
  const proof = await startProof(accounts, accessToken);
  assert.equal(codeIn(await verify(accounts, authenticator.get(proof))), "invalid_challenge");
  const prove = (given: object, token: string) => act(accounts, "provePasskey", { response: given }, token);
  const used = authenticator.get(proof);
  await assert.rejects(prove(used, other.body.accessToken), { message: "invalid_challenge" });
  await assert.rejects(prove(authenticator.get(await startSignIn(accounts)), accessToken), {
    message: "invalid_challenge",
  });
  await prove(used, accessToken);
  await assert.rejects(prove(used, accessToken), { message: "invalid_challenge" });
  const registration = new TestAuthenticator().create(await startRegistration(accounts, accessToken, {}));
  await assert.rejects(act(accounts, "addPasskey", { response: registration }, other.body.accessToken), {
    message: "invalid_challenge",
  });
});

Deno.test("PK3 a challenge of another key, or changed in any byte, is not genuine", async () => {
  const now = () => Date.UTC(2030, 0, 1);
  const challenges = new PasskeyChallenges({ hasher: await TokenHasher.create(randomBytes(32)), now });
  const use = { purpose: "register", session: "s" } as const;
  const issued = challenges.issue(use);
  assert.ok(challenges.open(issued, use));
  const others = new PasskeyChallenges({ hasher: await TokenHasher.create(randomBytes(32)), now });
  assert.equal(others.open(issued, use), null);
  assert.equal(challenges.open(issued, { purpose: "register", session: "t" }), null);
  assert.equal(challenges.open(issued, { purpose: "prove", session: "s" }), null);
  assert.equal(challenges.open(issued, { purpose: "sign in" }), null);
  const bytes = Buffer.from(issued, "base64url");
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    assert.equal(challenges.open(changed.toString("base64url"), use), null, `byte ${at}`);
  }
});

Deno.test("PK4 a counter that does not grow is refused, also of two concurrent sign-ins", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  await passkeyUser(accounts, authenticator);
  assert.equal((await signIn(accounts, authenticator, { counter: 10 })).status, 200);
  for (const counter of [10, 9, 0]) {
    assert.equal(
      codeIn(await signIn(accounts, authenticator, { counter })),
      "passkey_copied",
      String(counter),
    );
  }
  const [one, two] = await Promise.all([1, 2].map(() => signIn(accounts, authenticator, { counter: 11 })));
  assert.deepEqual([one?.status, two?.status].sort(), [200, 401]);
  assert.equal((await signIn(accounts, authenticator, { counter: 12 })).status, 200);
});

Deno.test("PK7 the options of a sign-in name no account, and an unknown passkey reveals none", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  await passkeyUser(accounts, authenticator);
  const { challenge: _challenge, ...options } = await startSignIn(accounts) as unknown as Record<
    string,
    unknown
  >;
  assert.deepEqual(options, {
    rpId: "localhost",
    allowCredentials: [],
    userVerification: "required",
    timeout: authLimits.passkeyChallengeMs,
  });
  await assert.rejects(accounts.call("_auth:startPasskeySignIn", { email }, null), /^Error: args/);
  const strange = new TestAuthenticator();
  strange.create({ challenge: "", rp: { id: "localhost" }, user: { id: "c29tZW9uZQ" } });
  const unknown = await signIn(accounts, strange);
  assert.deepEqual([unknown.status, codeIn(unknown)], [401, "unknown_passkey"]);
});

Deno.test("PK7 sign-ins with passkeys are limited by address like others, and answers are bounded", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  await passkeyUser(accounts, authenticator);
  const right = authenticator.get(await startSignIn(accounts));
  for (
    const response of [
      {},
      { ...right, id: "x".repeat(1_365) },
      { ...right, type: "password" },
      { ...right, response: { ...right.response, clientDataJSON: "x".repeat(2_049) } },
      { ...right, response: { ...right.response, signature: "not base64url!" } },
    ]
  ) {
    assert.equal(
      codeIn(await verify(accounts, response)),
      "bad_request",
      JSON.stringify(response).slice(0, 80),
    );
  }
  for (let i = 0; i < rateLimits.credentialsPerClient.burst; i++) {
    await verify(accounts, { ...right, id: "unknown", rawId: "unknown" }, "198.51.100.7");
  }
  assert.equal((await verify(accounts, right, "198.51.100.7")).status, 429);
  assert.equal((await verify(accounts, right)).status, 200);
});

Deno.test("AE16 PK7 wrong passwords do not lock out users after a passkey sign-in from their address", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  await passkeyUser(accounts, authenticator);
  const home = "198.51.100.7";
  const signedIn = await verify(accounts, authenticator.get(await startSignIn(accounts)), home);
  assert.equal(signedIn.status, 200);
  const attempt = async (from: string, given = password) =>
    (await accounts.post("/signin", { email, password: given }, { from })).status;
  for (let i = 0; i < rateLimits.failuresPerAccount.burst; i++) {
    assert.equal(await attempt(`203.0.113.${Math.floor(i / 10)}`, "wrong guess"), 401);
  }
  assert.equal(await attempt("198.51.100.8"), 429);
  assert.equal(await attempt(home), 200);
});

Deno.test("PK7 the address must be verified where sign-ins require it", async () => {
  await using accounts = await startTestAccounts({ requireVerification: true });
  const admin = await accounts.signInAdmin("root@example.com");
  const { userId } = await accounts.call("_admin/users:create", { email, password }, admin.accessToken) as {
    userId: string;
  };
  const { body } = await accounts.post("/signin", { email, password });
  const authenticator = new TestAuthenticator();
  const response = authenticator.create(await startRegistration(accounts, body.accessToken));
  await act(accounts, "addPasskey", { response }, body.accessToken);
  assert.equal((await signIn(accounts, authenticator)).status, 200);
  await accounts.call("_admin/users:edit", { userId, emailVerified: false }, admin.accessToken);
  const refused = await signIn(accounts, authenticator);
  assert.deepEqual([refused.status, codeIn(refused)], [403, "email_not_verified"]);
});

Deno.test("MF6 a passkey proves the factor that a function needs", async () => {
  const { mutation } = createFunctions({ tables: {} });
  const send = mutation({
    args: {},
    handler: async (ctx) => {
      await ctx.auth.requireFactor({ withinMinutes: 5 });
      return "sent";
    },
  });
  await using accounts = await startTestAccounts({ app: { tables: {}, functions: { "pay:send": send } } });
  const authenticator = new TestAuthenticator();
  const { accessToken } = await passkeyUser(accounts, authenticator);
  const { body } = await accounts.post("/signin", { email, password });
  const pay = () => accounts.call("pay:send", {}, body.accessToken);
  await assert.rejects(pay(), { message: "factor_required" });
  const response = authenticator.get(await startProof(accounts, body.accessToken));
  await act(accounts, "provePasskey", { response }, body.accessToken);
  assert.equal(await pay(), "sent");
  assert.equal(await accounts.call("pay:send", {}, accessToken), "sent", "adding it proved it");
  accounts.clock.now += 5 * 60_000;
  await assert.rejects(pay(), { message: "factor_required" });
});
