/** Passkeys: who may register them, what a sign-in with one takes, and attacks on both. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { PasskeyChallenges } from "../../../mod/auth/passkeys/challenges.ts";
import { authLimits, rateLimits } from "../../../mod/auth/limits.ts";
import { TokenHasher } from "../../../mod/auth/tokens/token_hash.ts";
import { authEventArgs, createFunctions, defineTable } from "../../../mod/functions/api/mod.ts";
import { z } from "zod";
import { password, startTestAccounts, type TestAccounts } from "../support/test_accounts.ts";
import { type Lies, type PasskeyOptions, TestAuthenticator } from "../support/test_authenticator.ts";
import { challenge, codeIn, email, enroll, enrolledUser, verifiedUser } from "../support/test_factors.ts";

interface Started {
  readonly options: PasskeyOptions;
  readonly expiresIn: number;
}

const act = async <Result>(accounts: TestAccounts, name: string, args: object, token: string | null) =>
  await accounts.call(`_auth:${name}`, { ...args }, token) as Result;

const start = async (accounts: TestAccounts, token: string | null, args: object = { password }) =>
  (await act<Started>(accounts, "startPasskey", args, token)).options;

const startSignIn = async (accounts: TestAccounts) =>
  (await act<Started>(accounts, "startPasskeySignIn", {}, null)).options;

const startProof = async (accounts: TestAccounts, token: string) =>
  (await act<Started>(accounts, "startPasskeyProof", {}, token)).options;

const verify = (accounts: TestAccounts, response: object, from = "203.0.113.1") =>
  accounts.post("/passkey/verify", { response }, { from });

const rows = (accounts: TestAccounts) => accounts.port.rows("_passkeys");

/** A user with a passkey. */
async function passkeyUser(accounts: TestAccounts, authenticator: TestAuthenticator, address = email) {
  const { accessToken, userId = "" } = await verifiedUser(accounts, address);
  const response = authenticator.create(await start(accounts, accessToken));
  const { passkeyId } = await act<{ passkeyId: string }>(accounts, "addPasskey", { response }, accessToken);
  return { accessToken, userId, passkeyId };
}

/** Signs in with the newest credential of an authenticator. */
async function signIn(accounts: TestAccounts, authenticator: TestAuthenticator, lies: Lies = {}) {
  return await verify(accounts, authenticator.get(await startSignIn(accounts), lies));
}

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
  const options = await start(accounts, accessToken, {});
  const response = key.create(options, { backupEligible: false, backedUp: false });
  await act(accounts, "addPasskey", { response, name: "Security key" }, accessToken);
  for (const authenticator of [phone, key, key]) {
    const lies = authenticator === key ? { backupEligible: false, backedUp: false } : {};
    assert.equal((await signIn(accounts, authenticator, lies)).body.userId, userId);
  }
  assert.deepEqual(accounts.port.rows("visits").slice(-3).map(({ by }) => by), [
    "passkey",
    "passkey",
    "passkey",
  ]);
  const backedUp = rows(accounts).map((row) => row["backedUp"]);
  assert.deepEqual(backedUp, [true, false]);
});

Deno.test("PK1 a passkey signs in where a password needs a second step, and counts as the factor", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await enrolledUser(accounts);
  const authenticator = new TestAuthenticator();
  const response = authenticator.create(await start(accounts, accessToken, {}));
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

const lies: readonly (readonly [name: string, lies: Lies, code: string])[] = [
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
for (const [name, lie, code] of lies) {
  Deno.test(`PK2 a sign-in and a registration are refused with ${name}`, async () => {
    await using accounts = await startTestAccounts();
    const authenticator = new TestAuthenticator();
    const { accessToken } = await passkeyUser(accounts, authenticator);
    const sessions = accounts.port.rows("_sessions").length;
    const refused = await signIn(accounts, authenticator, lie);
    assert.deepEqual([refused.status, codeIn(refused)], [401, code]);
    assert.equal(accounts.port.rows("_sessions").length, sessions);
    const response = new TestAuthenticator().create(await start(accounts, accessToken, {}), lie);
    await assert.rejects(act(accounts, "addPasskey", { response }, accessToken), { message: code });
    assert.equal(rows(accounts).length, 1);
    assert.equal((await signIn(accounts, authenticator)).status, 200, "the passkey works still");
  });
}

const signInLies: readonly (readonly [name: string, lies: Lies])[] = [
  ["a signature of another key", { forged: true }],
  ["the handle of another user", { userHandle: Buffer.from("another").toString("base64url") }],
  ["no user handle", { userHandle: null }],
  ["a passkey that can no longer be backed up", { backupEligible: false, backedUp: false }],
];
for (const [name, lie] of signInLies) {
  Deno.test(`PK2 a sign-in is refused with ${name}`, async () => {
    await using accounts = await startTestAccounts();
    const authenticator = new TestAuthenticator();
    await passkeyUser(accounts, authenticator);
    assert.equal(codeIn(await signIn(accounts, authenticator, lie)), "invalid_passkey");
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
  const registration = new TestAuthenticator().create(await start(accounts, accessToken, {}));
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

Deno.test("PK4 a counter that does not grow is refused, also of two sign-ins at once", async () => {
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

Deno.test("PK5 a passkey is removed soon after a proof only, and never as the last way to sign in", async () => {
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
  assert.equal(rows(accounts).length, 1);
});

Deno.test("PK6 a passkey is added with the password, or soon after a proof or a sign-in", async () => {
  await using accounts = await startTestAccounts();
  const unverified = await accounts.signUp("new@example.com");
  await assert.rejects(start(accounts, unverified.accessToken), { message: "email_not_verified" });
  const { accessToken } = await verifiedUser(accounts);
  for (const args of [{}, { password: "wrong horse" }]) {
    await assert.rejects(start(accounts, accessToken, args), { message: "invalid_credentials" });
  }
  const authenticator = new TestAuthenticator();
  const response = authenticator.create(await start(accounts, accessToken));
  await act(accounts, "addPasskey", { response }, accessToken);
  accounts.clock.now += 10 * 60_000;
  // The password is not enough for those who have a factor, to add a passkey or an authenticator app.
  await assert.rejects(start(accounts, accessToken), { message: "factor_required" });
  await assert.rejects(act(accounts, "startTotp", { password }, accessToken), { message: "factor_required" });
  const proof = authenticator.get(await startProof(accounts, accessToken));
  await act(accounts, "provePasskey", { response: proof }, accessToken);
  assert.equal((await start(accounts, accessToken, {})).rp?.id, "localhost");
  await enroll(accounts, { accessToken, owner: "" });

  await accounts.post("/magic/request", { email: "c@example.com" });
  const { token } = await accounts.mailTo("c@example.com") ?? {};
  const { body } = await accounts.post("/magic/verify", { token });
  assert.equal((await start(accounts, body.accessToken, {})).rp?.id, "localhost");
  accounts.clock.now += 10 * 60_000 + 1;
  await assert.rejects(start(accounts, body.accessToken, {}), { message: "confirmation_required" });
});

Deno.test("PK6 guests, administrators, impersonators, ended sessions and tokens of others add and prove nothing", async () => {
  await using accounts = await startTestAccounts();
  const authenticator = new TestAuthenticator();
  const { accessToken, userId, passkeyId } = await passkeyUser(accounts, authenticator);
  const response = authenticator.get(await startProof(accounts, accessToken));
  const registration = new TestAuthenticator().create(await start(accounts, accessToken, {}));
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
  assert.deepEqual(await codesOf(root.accessToken), [guest, bound, guest, bound, guest, guest]);
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
  assert.equal(rows(accounts).length, 1);
});

Deno.test("PK6 of two registrations of one passkey one wins, and two of two devices both do", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await verifiedUser(accounts);
  const add = (response: object, token = accessToken) => act(accounts, "addPasskey", { response }, token);
  const one = new TestAuthenticator().create(await start(accounts, accessToken));
  const same = await Promise.allSettled([add(one), add(one)]);
  assert.deepEqual(same.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  const [first, second] = [await start(accounts, accessToken, {}), await start(accounts, accessToken, {})];
  const answers = [first, second].map((options) => new TestAuthenticator().create(options));
  await Promise.all(answers.map((response) => add(response)));
  assert.equal(rows(accounts).length, 3);
  // The credential of another account.
  const other = await verifiedUser(accounts, "b@example.com");
  const authenticator = new TestAuthenticator();
  const stolen = authenticator.create(await start(accounts, other.accessToken));
  await add(stolen, other.accessToken);
  const options = await start(accounts, accessToken, {});
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
  const open = await start(accounts, accessToken, {});
  for (let i = 1; i < authLimits.passkeysPerUserMax; i++) {
    const response = new TestAuthenticator().create(await start(accounts, accessToken, {}));
    await act(accounts, "addPasskey", { response }, accessToken);
  }
  await assert.rejects(start(accounts, accessToken, {}), { message: "too_many_passkeys" });
  const response = new TestAuthenticator().create(open);
  await assert.rejects(act(accounts, "addPasskey", { response }, accessToken), {
    message: "too_many_passkeys",
  });
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
      const response = new TestAuthenticator().create(await start(accounts, accessToken), { attestation });
      const added = act(accounts, "addPasskey", { response }, accessToken);
      await assert.rejects(added, { message: "invalid_passkey" }, format);
    }
  } finally {
    globalThis.fetch = realFetch;
  }
  assert.deepEqual(fetched, []);
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

Deno.test("PK7 the address must be verified where sign-ins require it", async () => {
  await using accounts = await startTestAccounts({ requireVerification: true });
  const admin = await accounts.signInAdmin("root@example.com");
  const { userId } = await accounts.call("_admin/users:create", { email, password }, admin.accessToken) as {
    userId: string;
  };
  const { body } = await accounts.post("/signin", { email, password });
  const authenticator = new TestAuthenticator();
  const response = authenticator.create(await start(accounts, body.accessToken));
  await act(accounts, "addPasskey", { response }, body.accessToken);
  assert.equal((await signIn(accounts, authenticator)).status, 200);
  await accounts.call("_admin/users:edit", { userId, emailVerified: false }, admin.accessToken);
  const refused = await signIn(accounts, authenticator);
  assert.deepEqual([refused.status, codeIn(refused)], [403, "email_not_verified"]);
});

Deno.test("PK8 a setting stops new passkeys, and those there are still sign in", async () => {
  const secret = randomBytes(32);
  await using accounts = await startTestAccounts({ passkeys: false, secret });
  const { accessToken } = await verifiedUser(accounts);
  await assert.rejects(start(accounts, accessToken), { message: "passkeys_disabled" });
  assert.ok((await startSignIn(accounts)).challenge);
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
