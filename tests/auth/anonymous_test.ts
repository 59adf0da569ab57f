/** Anonymous users: sign-in, promotion, sign-in to an existing account, and deletion. */
import assert from "node:assert/strict";
import { z } from "zod";
import { authLimits } from "../../mod/auth/limits.ts";
import type { Tokens } from "../../mod/auth/tokens/session_tokens.ts";
import { authEventArgs, createFunctions, defineTable, id, UserError } from "../../mod/functions/api/mod.ts";
import type { AppParts } from "./support/in_process_port.ts";
import { type Answer, password, startTestAccounts, type TestAccounts } from "./support/test_accounts.ts";
import { TestAuthenticator } from "./support/test_authenticator.ts";
import { challengeIn, codeIn, codeOf, enrolledUser } from "./support/test_factors.ts";
import { act, passkeyUser, startRegistration, startSignIn } from "./support/test_passkeys.ts";
import { appUrl, fragmentOf, startTestSignIns, type TestSignIns } from "./support/test_sign_ins.ts";

const email = "ann@example.com";
const DAY_MS = 86_400_000;
const tables = {
  notes: defineTable({ owner: id("_users"), text: z.string() }).index("by_owner", ["owner"])
    .deleteWithUser("by_owner"),
  events: defineTable({ hook: z.string(), by: z.string(), user: z.string(), from: z.string().nullable() }),
};
const { internalMutation, mutation, query } = createFunctions({ tables });
const promotedArgs = { ...authEventArgs, anonymousUser: id("_users") };

/** An app with notes of users, which moves the notes of an anonymous user to the account. */
const app: AppParts = {
  tables,
  functions: {
    "auth:onUserCreated": internalMutation({
      args: authEventArgs,
      handler: async (ctx, { user, by }) => {
        await ctx.db.insert("events", { hook: "created", by, user, from: null });
      },
    }),
    "auth:onUserPromoted": internalMutation({
      args: promotedArgs,
      handler: async (ctx, { user, by, anonymousUser }) => {
        await ctx.db.insert("events", { hook: "promoted", by, user, from: anonymousUser });
        if ((await ctx.db.get(user))?.email?.startsWith("banned")) throw new UserError("not_invited");
        const notes = ctx.db.query("notes").withIndex("by_owner", (q) => q.eq("owner", anonymousUser));
        for (const { _id } of await notes.collect()) await ctx.db.patch(_id, { owner: user });
      },
    }),
    "notes:add": mutation({
      args: { text: z.string() },
      handler: async (ctx, { text }) => {
        const owner = ctx.auth.userId();
        if (owner !== null) await ctx.db.insert("notes", { owner, text });
      },
    }),
    "notes:isAnonymous": query({ args: {}, handler: async (ctx) => await ctx.auth.isAnonymous() }),
  },
};

const start = () => startTestSignIns({ anonymous: true, app });

async function signInAnonymously(accounts: TestAccounts): Promise<Tokens> {
  const { status, body } = await accounts.post("/anonymous", {});
  assert.equal(status, 200, JSON.stringify(body));
  await accounts.call("notes:add", { text: "kept" }, body.accessToken);
  return body;
}

/** Signs up or in with the session of `bearer`. Returns the answer with tokens, or the error. */
type SignIn = (signIns: TestSignIns, bearer: string) => Promise<Answer>;

const byPassword: SignIn = ({ accounts }, bearer) =>
  accounts.post("/signup", { email, password }, { bearer });
const byMail =
  (proofOf: (mail: { code: string; token: string }) => object): SignIn => async (signIns, bearer) => {
    const { accounts } = signIns;
    await accounts.post("/magic/request", { email });
    const mail = await accounts.mailTo(email);
    assert.ok(mail);
    return await accounts.post("/magic/verify", proofOf(mail), { bearer });
  };
const person = { id: "4711", email, verified: true, name: "Ann" };
/** Signs in with a provider, with the result in the session of `bearer`. */
const returned = async ({ accounts, at, back }: TestSignIns, bearer: string, begin: string) => {
  const { headers } = await accounts.get(`/oauth/work?${begin}&app_state=mine`);
  const cookie = (headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const parameters = at.work.agree(headers.get("location") ?? "", person);
  const fragment = fragmentOf(await back("work", parameters, { cookie }));
  assert.deepEqual([...fragment.keys()], ["svc_sign_in_token", "svc_state"]);
  return await accounts.post("/oauth/verify", { token: fragment.get("svc_sign_in_token") }, { bearer });
};
const byProvider: SignIn = (signIns, bearer) =>
  returned(signIns, bearer, `redirect_to=${encodeURIComponent(appUrl)}`);
const byLink: SignIn = async (signIns, bearer) => {
  const asked = { provider: "work", redirectTo: appUrl };
  const { link } = await act<{ link: string }>(signIns.accounts, "startLink", asked, bearer);
  return await returned(signIns, bearer, `link=${link}`);
};

const byPasskey: SignIn = async ({ accounts }, bearer) => {
  const response = new TestAuthenticator().create(await startRegistration(accounts, bearer, {}));
  return await accounts.post("/passkey/signup", { response }, { bearer });
};

const promotions: readonly (readonly [name: string, by: string, signIn: SignIn])[] = [
  ["a password", "password", byPassword],
  ["a code", "mail", byMail(({ code }) => ({ email, code }))],
  ["a magic link", "mail", byMail(({ token }) => ({ token }))],
  ["a provider", "provider", byProvider],
  ["a linked identity", "provider", byLink],
];
for (const [name, by, signIn] of [...promotions, ["a passkey", "passkey", byPasskey]] as typeof promotions) {
  Deno.test(`AN2 signing up with ${name} keeps the id and the data of an anonymous user`, async () => {
    await using signIns = await start();
    const { accounts } = signIns;
    const before = await signInAnonymously(accounts);
    // Longer than a confirmation is valid, to show that none is required.
    accounts.clock.now += authLimits.confirmationFreshMs;
    const { status, body } = await signIn(signIns, before.accessToken);
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.userId, before.userId);
    const account = await act<Record<string, unknown>>(accounts, "account", {}, body.accessToken);
    assert.deepEqual([account["email"], account["anonymous"]], [by === "passkey" ? null : email, false]);
    assert.equal(await accounts.call("notes:isAnonymous", {}, body.accessToken), false);
    const ended = await accounts.service.authenticator.verify(before.accessToken);
    assert.ok(!ended.ok, "the session before the sign-up has ended");
    const { port } = accounts;
    assert.deepEqual(port.rows("notes").map(({ owner }) => owner), [before.userId]);
    assert.deepEqual(port.rows("_anonymous_users"), []);
    assert.equal(port.rows("_users").length, 1);
    assert.deepEqual(port.rows("events").map((row) => [row["hook"], row["by"], row["user"], row["from"]]), [
      ["created", "anonymous", before.userId, null],
      ["promoted", by, before.userId, before.userId],
    ]);
  });
}

for (const [name, by, signIn] of promotions) {
  Deno.test(`AN3 signing in with ${name} to an existing account lets the app take over the data`, async () => {
    await using signIns = await start();
    const { accounts } = signIns;
    const existing = await accounts.signUp(email);
    await accounts.post("/verify-email/confirm", { token: (await accounts.mailTo(email))?.token });
    const before = await signInAnonymously(accounts);
    const there: SignIn = by === "password"
      ? () => accounts.post("/signin", { email, password }, { bearer: before.accessToken })
      : signIn;
    const { status, body } = await there(signIns, before.accessToken);
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.userId, existing.userId);
    const { port } = accounts;
    assert.deepEqual(port.rows("notes").map(({ owner }) => owner), [existing.userId]);
    const [event] = port.rows("events").filter(({ hook }) => hook === "promoted");
    assert.deepEqual([event?.["by"], event?.["user"], event?.["from"]], [by, existing.userId, before.userId]);
    assert.ok(!(await accounts.service.authenticator.verify(before.accessToken)).ok);
    // It is deleted like any anonymous user without a session.
    await accounts.service.sweep();
    accounts.clock.now += 30 * DAY_MS;
    await accounts.service.sweep();
    assert.deepEqual(port.rows("_users").map(({ _id }) => _id), [existing.userId]);
  });
}

Deno.test("AN2 an anonymous user signs up with a passkey only with the session that asked, and only once", async () => {
  await using signIns = await start();
  const { accounts } = signIns;
  const [one, other] = [await signInAnonymously(accounts), await signInAnonymously(accounts)];
  const account = await accounts.signUp("b@example.com");
  const response = new TestAuthenticator().create(await startRegistration(accounts, one.accessToken, {}));
  const signUp = (bearer?: string) =>
    accounts.post("/passkey/signup", { response }, bearer === undefined ? {} : { bearer });
  for (const bearer of [undefined, other.accessToken, account.accessToken]) {
    const refused = await signUp(bearer);
    assert.deepEqual([refused.status, codeIn(refused)], [401, "invalid_challenge"]);
  }
  // The action for users with an account gives no other session.
  await assert.rejects(act(accounts, "addPasskey", { response }, one.accessToken), {
    message: "anonymous_user",
  });
  assert.deepEqual(accounts.port.rows("_passkeys"), []);
  const [first, second] = await Promise.all([signUp(one.accessToken), signUp(one.accessToken)]);
  assert.deepEqual([first.status, second.status].sort(), [200, 401]);
  assert.equal(accounts.port.rows("_passkeys").length, 1);
  assert.equal(accounts.port.rows("_anonymous_users").length, 1, "the other user");
});

Deno.test("AN3 signing in with a passkey, or with a second factor, lets the app take over the data", async () => {
  await using signIns = await start();
  const { accounts } = signIns;
  const authenticator = new TestAuthenticator();
  const user = await passkeyUser(accounts, authenticator, "passkey@example.com");
  const first = await signInAnonymously(accounts);
  const response = authenticator.get(await startSignIn(accounts));
  await accounts.post("/passkey/verify", { response }, { bearer: first.accessToken });
  const enrolled = await enrolledUser(accounts, email);
  const second = await signInAnonymously(accounts);
  const bearer = second.accessToken;
  const challenge = challengeIn(await accounts.post("/signin", { email, password }, { bearer }));
  assert.equal(
    await accounts.call("notes:isAnonymous", {}, bearer),
    true,
    "nothing happens at the first step",
  );
  const code = codeOf(enrolled.secret, accounts.clock.now);
  assert.equal((await accounts.post("/mfa/verify", { challenge, code }, { bearer })).status, 200);
  assert.deepEqual(accounts.port.rows("notes").map(({ owner }) => owner), [user.userId, enrolled.owner]);
});

Deno.test("AN2 a concurrent promotion and sign-up with one address: one succeeds, and the other changes nothing", async () => {
  await using signIns = await start();
  const { accounts } = signIns;
  const { accessToken, userId } = await signInAnonymously(accounts);
  const answers = await Promise.all([
    byPassword(signIns, accessToken),
    accounts.post("/signup", { email, password }),
  ]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
  const [refused] = answers.filter(({ status }) => status === 400);
  assert.equal(codeIn(refused as Answer), "email_in_use");
  const owners = accounts.port.rows("_users").filter((user) => user["email"] === email);
  assert.equal(owners.length, 1);
  if (owners[0]?.["_id"] !== userId) {
    assert.equal(await accounts.call("notes:isAnonymous", {}, accessToken), true);
  }
  assert.deepEqual(accounts.port.rows("notes").map(({ owner }) => owner), [userId]);
});

Deno.test("AN2 a promotion that the app or the server refuses leaves the user anonymous", async () => {
  await using signIns = await start();
  const { accounts } = signIns;
  const { accessToken: bearer, userId } = await signInAnonymously(accounts);
  const banned = await accounts.post("/signup", { email: "banned@example.com", password }, { bearer });
  assert.equal(codeIn(banned), "not_invited");
  assert.equal(await accounts.call("notes:isAnonymous", {}, bearer), true);
  assert.deepEqual(accounts.port.rows("_users").map((row) => [row["_id"], row["email"]]), [[
    userId,
    undefined,
  ]]);
  // A token that has expired is not ignored, or the data would be lost.
  accounts.clock.now += 15 * 60_000;
  assert.equal(codeIn(await byPassword(signIns, bearer)), "invalid_token");
  for (
    const [options, message] of [
      [{ signups: false }, "signups_disabled"],
      [{ requireVerification: true }, "email_not_verified"],
    ] as const
  ) {
    await using closed = await startTestAccounts({ anonymous: true, ...options });
    const { body } = await closed.post("/anonymous", {});
    await assert.rejects(act(closed, "startPasskey", {}, body.accessToken), { message });
  }
  for (
    const [change, code] of [
      [{ signups: false }, "signups_disabled"],
      [{ requireVerification: true }, "email_not_verified"],
      [{ passkeys: false }, "passkeys_disabled"],
    ] as const
  ) {
    await using changed = await startTestAccounts({ anonymous: true, app });
    const { accessToken: bearer } = await signInAnonymously(changed);
    const response = new TestAuthenticator().create(await startRegistration(changed, bearer, {}));
    await changed.service.configure({
      policy: {
        signups: true,
        magicLink: true,
        totp: true,
        passkeys: true,
        deviceMail: true,
        userKeys: [],
        anonymous: true,
        anonymousUserMs: DAY_MS,
        requireVerification: false,
        ...change,
      },
      redirectUrls: [],
      templatesDir: null,
      appName: "Test",
      mailer: undefined,
      rateLimits: {},
    });
    assert.equal(codeIn(await changed.post("/passkey/signup", { response }, { bearer })), code);
    assert.deepEqual(changed.port.rows("_passkeys"), []);
  }
});

Deno.test("AN2 an address that must be verified first ends the session, and the data waits for the sign-in", async () => {
  await using accounts = await startTestAccounts({ anonymous: true, requireVerification: true, app });
  const { accessToken: bearer, userId } = await signInAnonymously(accounts);
  const { body } = await accounts.post("/signup", { email, password }, { bearer });
  assert.deepEqual(body, { verificationRequired: true });
  assert.ok(!(await accounts.service.authenticator.verify(bearer)).ok);
  await accounts.post("/verify-email/confirm", { token: (await accounts.mailTo(email))?.token });
  assert.equal((await accounts.post("/signin", { email, password })).body.userId, userId);
});

Deno.test("AN1 anonymous sign-in is off unless it is allowed, and limited by address", async () => {
  await using closed = await startTestAccounts();
  assert.equal(codeIn(await closed.post("/anonymous", {})), "anonymous_disabled");
  await using accounts = await startTestAccounts({ anonymous: true });
  const codes = new Set<string>();
  for (let i = 0; i < 70; i++) {
    codes.add(codeIn(await accounts.post("/anonymous", {}, { from: "192.0.2.1" })));
  }
  assert.deepEqual([...codes], ["none", "rate_limited"]);
  assert.equal((await accounts.post("/anonymous", {}, { from: "192.0.2.2" })).status, 200);
});

const callers: readonly (readonly [
  name: string,
  anonymous: boolean,
  token: (accounts: TestAccounts) => Promise<string | null>,
])[] = [
  ["a guest", false, () => Promise.resolve(null)],
  ["an anonymous user", true, async (accounts) => (await signInAnonymously(accounts)).accessToken],
  ["a user", false, async (accounts) => (await accounts.signUp(email)).accessToken],
  ["an administrator", false, async (accounts) => (await accounts.signInAdmin(email)).accessToken],
  ["a key of an anonymous user", true, async (accounts) => {
    const { userId } = await signInAnonymously(accounts);
    const { accessToken } = await accounts.signInAdmin("root@example.com");
    const args = { name: "ci", functions: ["*"], userId };
    return (await accounts.call("_admin/apiKeys:create", args, accessToken) as { key: string }).key;
  }],
];
for (const [name, anonymous, tokenOf] of callers) {
  Deno.test(`AN4 ctx.auth.isAnonymous() is ${anonymous} for ${name}`, async () => {
    await using accounts = await startTestAccounts({ anonymous: true, app });
    assert.equal(await accounts.call("notes:isAnonymous", {}, await tokenOf(accounts)), anonymous);
  });
}

const credentialChanges: readonly (readonly [name: string, args: object])[] = [
  ["changePassword", { newPassword: password }],
  ["changeEmail", { email }],
  ["startTotp", {}],
  ["createApiKey", { name: "mine", functions: ["*"] }],
];
for (const [name, args] of credentialChanges) {
  Deno.test(`AN4 ${name} asks an anonymous user to sign up first`, async () => {
    await using accounts = await startTestAccounts({ anonymous: true, app, userKeys: ["*"] });
    const { accessToken } = await signInAnonymously(accounts);
    await assert.rejects(act(accounts, name, args, accessToken), { message: "anonymous_user" });
  });
}

Deno.test("AN5 anonymous users without a session are deleted with their documents after the time", async () => {
  await using accounts = await startTestAccounts({ anonymous: true, app });
  const { port, service, clock } = accounts;
  const [left, expired, active, promoted] = [
    await signInAnonymously(accounts),
    await signInAnonymously(accounts),
    await signInAnonymously(accounts),
    await signInAnonymously(accounts),
  ];
  await accounts.post("/signup", { email, password }, { bearer: promoted.accessToken });
  await accounts.post("/signout", { refreshToken: left.refreshToken });
  const users = () => new Set(port.rows("_users").map(({ _id }) => _id));
  await service.sweep();
  clock.now += 29 * DAY_MS;
  await service.sweep();
  assert.equal(users().size, 4);
  const { body } = await accounts.post("/refresh", { refreshToken: active.refreshToken });
  clock.now += DAY_MS;
  await service.sweep();
  assert.deepEqual(users(), new Set([expired.userId, active.userId, promoted.userId]));
  assert.equal(port.rows("notes").length, 3);
  // The session of `expired` has ended now, but is not deleted yet.
  clock.now += 28 * DAY_MS;
  const again = (await accounts.post("/refresh", { refreshToken: body.refreshToken })).body;
  await service.sweep();
  assert.equal(users().size, 3);
  clock.now += 2 * DAY_MS;
  await service.sweep();
  assert.deepEqual(users(), new Set([active.userId, promoted.userId]));
  assert.deepEqual(new Set(port.rows("notes").map(({ owner }) => owner)), users());
  // A user with an address from an administrator is no longer anonymous.
  const { accessToken } = await accounts.signInAdmin("root@example.com");
  await accounts.call("_admin/users:edit", { userId: active.userId, email: "b@example.com" }, accessToken);
  await accounts.post("/signout", { refreshToken: again.refreshToken });
  clock.now += 90 * DAY_MS;
  await service.sweep();
  await service.sweep();
  assert.equal(users().size, 2);
});

Deno.test("AN2 an administrator's session as an anonymous user promotes no user", async () => {
  await using accounts = await startTestAccounts({ anonymous: true, app });
  const { userId = "" } = await signInAnonymously(accounts);
  const { accessToken, adminId = "" } = await accounts.signInAdmin("root@example.com");
  const acting = await accounts.service.sessions.impersonate({
    userId,
    adminId,
    adminSession: (await accounts.identityOf(accessToken)).sessionId ?? "",
    lifetimeMs: 600_000,
    userAgent: null,
  });
  for (const bearer of [acting?.accessToken ?? "", accessToken, "no token"]) {
    const address = `${bearer.length}@example.com`;
    const { status, body } = await accounts.post("/signup", { email: address, password }, { bearer });
    assert.equal(status, 200, JSON.stringify(body));
    assert.notEqual(body.userId, userId);
  }
  assert.equal(accounts.port.rows("_anonymous_users").length, 1);
});

Deno.test("AN2 the token of an ended session is ignored", async () => {
  await using accounts = await startTestAccounts({ anonymous: true, app });
  const { accessToken: bearer, refreshToken, userId } = await signInAnonymously(accounts);
  await accounts.post("/signout", { refreshToken });
  const { status, body } = await accounts.post("/signup", { email, password }, { bearer });
  assert.equal(status, 200, JSON.stringify(body));
  assert.notEqual(body.userId, userId);
});

Deno.test("AN3 a provider of an account with a second factor asks for it, and then the app takes over the data", async () => {
  await using signIns = await start();
  const { accounts } = signIns;
  const { secret, owner } = await enrolledUser(accounts, email);
  const { accessToken: bearer, userId } = await signInAnonymously(accounts);
  const challenge = challengeIn(await byProvider(signIns, bearer));
  assert.deepEqual(accounts.port.rows("notes").map((note) => note["owner"]), [userId]);
  const code = codeOf(secret, accounts.clock.now);
  const { status, body } = await accounts.post("/mfa/verify", { challenge, code }, { bearer });
  assert.deepEqual([status, body.userId], [200, owner]);
  assert.deepEqual(accounts.port.rows("notes").map((note) => note["owner"]), [owner]);
});

Deno.test("AN3 a sign-in that onUserPromoted refuses signs no one in", async () => {
  await using signIns = await start();
  const { accounts } = signIns;
  const banned = "banned@example.com";
  await accounts.signUp(banned);
  const { accessToken: bearer, userId } = await signInAnonymously(accounts);
  const sessions = accounts.port.rows("_sessions").length;
  const answer = await accounts.post("/signin", { email: banned, password }, { bearer });
  assert.equal(codeIn(answer), "not_invited");
  assert.equal(accounts.port.rows("_sessions").length, sessions);
  assert.equal(await accounts.call("notes:isAnonymous", {}, bearer), true);
  assert.deepEqual(accounts.port.rows("notes").map((note) => note["owner"]), [userId]);
});
