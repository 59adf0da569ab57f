import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { anonymous } from "../../mod/functions/identity.ts";
import { PasswordHasher } from "../../mod/auth/passwords.ts";
import { password, startTestAccounts } from "./support/test_accounts.ts";

const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());

Deno.test("AT3 AE5 sign-up answers with the tokens of a new user's session", async () => {
  await using accounts = await startTestAccounts();
  const { status, body } = await accounts.post("/signup", {
    email: " New@Example.com ",
    password,
    name: " Ann ",
  });
  assert.equal(status, 200);
  assert.deepEqual(Object.keys(body).sort(), ["accessToken", "expiresIn", "refreshToken", "userId"]);
  assert.equal(body.expiresIn, 900);
  assert.match(body.refreshToken, /^[A-Za-z0-9_-]{43}$/);
  const [user] = accounts.port.rows("_users");
  assert.equal(user?.["_id"], body.userId);
  assert.equal(user?.["email"], "new@example.com");
  assert.equal(user?.["name"], "Ann");
  assert.equal(user?.["emailVerified"], false);
  const [session] = accounts.port.rows("_sessions");
  const now = accounts.clock.now / 1000;
  const { jti, ...claims } = claimsOf(body.accessToken);
  assert.match(String(jti), /^[\w-]{16}$/);
  assert.deepEqual(claims, {
    iss: "svc",
    typ: "access",
    sub: body.userId,
    sid: session?.["_id"],
    iat: now,
    exp: now + 900,
  });
});

Deno.test("RT1 CO1 no table holds a password or a token in the clear", async () => {
  await using accounts = await startTestAccounts();
  const tokens = await accounts.signUp("a@example.com");
  await accounts.post("/reset/request", { email: "a@example.com" });
  const mailed = await accounts.mailTo("a@example.com");
  assert.ok(mailed);
  const tables = ["_users", "_sessions", "_passwords", "_refresh_tokens", "_codes"];
  const stored = JSON.stringify(tables.map((table) => accounts.port.rows(table)));
  for (
    const secret of [password, tokens.refreshToken, tokens.accessToken, mailed.token, `"${mailed.code}"`]
  ) {
    assert.ok(!stored.includes(secret), `${secret} is stored`);
  }
  assert.match(stored, /\$argon2id\$/);
});

const refusedSignUps: [name: string, body: unknown, status: number, code: string][] = [
  ["a taken address in another spelling", { email: "TAKEN@example.com", password }, 400, "email_in_use"],
  ["a short password", { email: "a@example.com", password: "1234567" }, 400, "weak_password"],
  ["a long password", { email: "a@example.com", password: "x".repeat(257) }, 400, "invalid_password"],
  ["no address", { email: "not an address", password }, 400, "invalid_email"],
  ["an endless name", { email: "a@example.com", password, name: "x".repeat(201) }, 400, "invalid_name"],
  ["a missing password", { email: "a@example.com" }, 400, "bad_request"],
  ["a number for a password", { email: "a@example.com", password: 12345678 }, 400, "bad_request"],
  ["an array", [], 400, "bad_request"],
];
for (const [name, body, status, code] of refusedSignUps) {
  Deno.test(`AE5 sign-up with ${name} is refused with ${code} and creates nothing`, async () => {
    await using accounts = await startTestAccounts();
    await accounts.signUp("taken@example.com");
    const answer = await accounts.post("/signup", body);
    assert.equal(answer.status, status);
    assert.equal(answer.body.status, "error");
    assert.deepEqual(answer.body.errorData, { code, data: null });
    assert.equal(accounts.port.rows("_users").length, 1);
  });
}

Deno.test("AE4 AE5 sign-ups can be disabled, and /providers reports it", async () => {
  await using accounts = await startTestAccounts({ signups: false, magicLink: false });
  const { status, body } = await accounts.post("/signup", { email: "a@example.com", password });
  assert.equal(status, 403);
  assert.equal(body.errorData.code, "signups_disabled");
  assert.deepEqual((await accounts.get("/providers")).body, {
    password: true,
    magicLink: false,
    signups: false,
    anonymous: false,
    oauth: [],
  });
});

Deno.test("two simultaneous sign-ups with one address create one user", async () => {
  await using accounts = await startTestAccounts();
  const body = { email: "a@example.com", password };
  const answers = await Promise.all([accounts.post("/signup", body), accounts.post("/signup", body)]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
  assert.equal(accounts.port.rows("_users").length, 1);
});

Deno.test("AE6 sign-in opens another session, with any spelling of the address", async () => {
  await using accounts = await startTestAccounts();
  const first = await accounts.signUp("a@example.com");
  const { status, body } = await accounts.post("/signin", { email: "A@EXAMPLE.com ", password });
  assert.equal(status, 200);
  assert.equal(body.userId, first.userId);
  assert.equal(body.adminId, undefined);
  assert.notEqual(claimsOf(body.accessToken).sid, claimsOf(first.accessToken).sid);
  assert.equal(accounts.port.rows("_sessions").length, 2);
});

Deno.test("AE6 a wrong password, an unknown address and no address at all get the same answer", async () => {
  await using accounts = await startTestAccounts();
  await accounts.signUp("a@example.com");
  const attempts = [
    { email: "a@example.com", password: "wrong horse" },
    { email: "b@example.com", password },
    { email: "not an address", password },
    { email: "a@example.com", password: "x".repeat(1_000) },
    { email: "a@example.com", password: "" },
    { email: "a@example.com", password: "correct horse\ud800" },
  ];
  const answers = await Promise.all(attempts.map((body) => accounts.post("/signin", body)));
  assert.ok(answers.every(({ status }) => status === 401));
  assert.equal(new Set(answers.map(({ body }) => JSON.stringify(body))).size, 1);
  assert.equal(answers[0]?.body.errorData.code, "invalid_credentials");
});

Deno.test("AE6 refusing an unknown address computes the same hash as refusing a wrong password", async () => {
  const passwords = new PasswordHasher();
  const verified: (readonly [password: string | null, stored: string | null])[] = [];
  const verify = passwords.verify.bind(passwords);
  passwords.verify = (...args) => {
    verified.push(args);
    return verify(...args);
  };
  await using accounts = await startTestAccounts({ passwords });
  await accounts.signUp("a@example.com");
  for (const email of ["a@example.com", "b@example.com", "not an address"]) {
    await accounts.post("/signin", { email, password: "wrong horse" });
  }
  // Where no hash is stored, the hasher computes one of the same cost: `deno task bench sign-in-timing`.
  assert.deepEqual(verified.map(([, stored]) => stored !== null), [true, false, false]);
});

Deno.test("AE13 the password of another account or of the other account type is refused", async () => {
  await using accounts = await startTestAccounts();
  await accounts.signUp("user@example.com", "password of user");
  await accounts.signInAdmin("admin@example.com", "password of admin");
  for (
    const [path, email, chosen] of [
      ["/signin", "admin@example.com", "password of admin"],
      ["/admin/signin", "user@example.com", "password of user"],
      ["/admin/signin", "admin@example.com", "password of user"],
      ["/signin", "user@example.com", "password of admin"],
    ] as const
  ) {
    assert.equal((await accounts.post(path, { email, password: chosen })).status, 401);
  }
});

Deno.test("AE13 one address may belong to a user and to an administrator, which are separate accounts", async () => {
  await using accounts = await startTestAccounts();
  const user = await accounts.signUp("both@example.com", "password of user");
  const admin = await accounts.signInAdmin("both@example.com", "password of admin");
  assert.equal(admin.userId, undefined);
  assert.equal(claimsOf(admin.accessToken).adm, true);
  assert.equal(claimsOf(admin.accessToken).sub, admin.adminId);
  const identity = await accounts.identityOf(admin.accessToken);
  assert.equal(identity.principal, `admin:${admin.adminId}`);
  assert.equal(identity.userId, null);
  assert.equal((await accounts.identityOf(user.accessToken)).principal, `user:${user.userId}`);
});

Deno.test("AE5 AE7 if verification is required, sign-up returns no tokens and sign-in requires a verified address", async () => {
  await using accounts = await startTestAccounts({ requireVerification: true });
  const signedUp = await accounts.post("/signup", { email: "a@example.com", password });
  assert.deepEqual(signedUp.body, { verificationRequired: true });
  assert.equal(accounts.port.rows("_sessions").length, 0);
  const early = await accounts.post("/signin", { email: "a@example.com", password });
  assert.equal(early.status, 403);
  assert.equal(early.body.errorData.code, "email_not_verified");
  const wrong = await accounts.post("/signin", { email: "a@example.com", password: "wrong horse" });
  assert.equal(wrong.body.errorData.code, "invalid_credentials");
  const mailed = await accounts.mailTo("a@example.com");
  assert.equal((await accounts.post("/verify-email/confirm", { token: mailed?.token })).status, 200);
  assert.equal((await accounts.post("/signin", { email: "a@example.com", password })).status, 200);
});

Deno.test("a hash of an outdated cost is replaced when its owner signs in", async () => {
  const cheap = { memoryKiB: 64, passes: 1, lanes: 1 };
  const passwords = new PasswordHasher({ cost: { ...cheap, passes: 2 } });
  await using accounts = await startTestAccounts({ passwords });
  await accounts.signUp("a@example.com");
  const [row] = accounts.port.rows("_passwords");
  // In the format of an older server.
  const old = await new PasswordHasher({ cost: cheap }).hash(password);
  await accounts.port.deleteRow(String(row?.["_id"]));
  const userId = String(accounts.port.rows("_users")[0]?.["_id"]);
  await accounts.port.mutate({
    udfPath: "_system/auth:setUserPassword",
    args: { userId, passwordHash: old },
    identity: anonymous,
    origin: "system",
  });
  const signIn = (chosen: string) => accounts.post("/signin", { email: "a@example.com", password: chosen });
  assert.equal((await signIn("wrong horse")).status, 401);
  assert.equal(accounts.port.rows("_passwords")[0]?.["hash"], old);
  assert.equal((await signIn(password)).status, 200);
  assert.match(String(accounts.port.rows("_passwords")[0]?.["hash"]), /t=2/);
  assert.equal((await signIn(password)).status, 200);
});

Deno.test("an account keeps a bounded number of sessions, the newest", async () => {
  await using accounts = await startTestAccounts();
  const first = await accounts.signUp("a@example.com");
  for (let i = 0; i < 1_000; i++) {
    const args = {
      kind: "user",
      owner: first.userId,
      checkedHash: accounts.port.rows("_passwords")[0]?.["hash"],
      newHash: null,
      session: {
        family: `f${i}`,
        tokenHash: `h${i}`,
        challengeHash: `c${i}`,
        now: accounts.clock.now,
        expiresAt: accounts.clock.now + 1e9,
      },
    };
    await accounts.port.mutate({
      udfPath: "_system/auth:signIn",
      args,
      identity: { principal: null, userId: null, adminId: null, sessionId: null },
      origin: "system",
    });
  }
  const sessions = accounts.port.rows("_sessions");
  assert.equal(sessions.length, 1_000);
  assert.equal(accounts.port.rows("_refresh_tokens").length, 1_000);
  assert.ok(sessions.every((session) => session["_id"] !== claimsOf(first.accessToken).sid));
});
