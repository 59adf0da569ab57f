import assert from "node:assert/strict";
import { password, startTestAccounts } from "./support/test_accounts.ts";

const posts = [
  "/signup",
  "/signin",
  "/refresh",
  "/verify-email/request",
  "/verify-email/confirm",
  "/reset/request",
  "/reset/confirm",
  "/magic/request",
  "/magic/verify",
  "/mfa/verify",
  "/passkey/verify",
  "/passkey/signup",
  "/oauth/verify",
  "/admin/signin",
  "/admin/passkey/verify",
  "/admin/setup",
];

for (const path of posts) {
  Deno.test(`AE1 POST ${path} accepts only JSON objects of a bounded size`, async () => {
    await using accounts = await startTestAccounts();
    const refusals = [
      [{ text: "{" }, 400, "bad_request"],
      [{ text: "" }, 400, "bad_request"],
      [{ text: "null" }, 400, "bad_request"],
      [{ text: '"text"' }, 400, "bad_request"],
      [
        {
          text: "email=a%40example.com",
          headers: { "Content-Type": "application/x-www-form-urlencoded" },
        },
        400,
        "bad_request",
      ],
      [{ text: JSON.stringify({ email: "x".repeat(20_000) }) }, 413, "body_too_large"],
    ] as const;
    for (const [options, status, code] of refusals) {
      const answer = await accounts.post(path, {}, options);
      assert.equal(answer.status, status);
      assert.deepEqual(answer.body.errorData, { code, data: null });
    }
  });
}

Deno.test("AE1 a body is parsed as JSON with any content type", async () => {
  await using accounts = await startTestAccounts();
  const credential = { email: "nobody@example.com", password };
  for (
    const type of ["", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "application/json"]
  ) {
    const { body } = await accounts.post("/signin", credential, { headers: { "Content-Type": type } });
    assert.equal(body.errorData.code, "invalid_credentials", type);
  }
});

Deno.test("unknown paths and methods return 404", async () => {
  await using accounts = await startTestAccounts();
  assert.equal((await accounts.get("/signup")).status, 404);
  assert.equal((await accounts.post("/nonsense")).status, 404);
  assert.equal((await accounts.post("/providers")).status, 404);
});

Deno.test("AE2 a client that tries many passwords must wait, and other clients need not", async () => {
  await using accounts = await startTestAccounts();
  const attempt = (i: number, from: string) =>
    accounts.post("/signin", { email: `a${i}@example.com`, password }, { from });
  const answers = [];
  for (let i = 0; i < 70; i++) answers.push(await attempt(i, `2001:db8::${i.toString(16)}`));
  assert.equal(answers.filter(({ status }) => status === 401).length, 60);
  const last = answers.at(-1);
  assert.equal(last?.status, 429);
  assert.equal(last?.body.errorData.code, "rate_limited");
  assert.equal(last?.headers.get("retry-after"), "1");
  assert.equal((await attempt(0, "2001:db8:0:1::1")).status, 401);
  accounts.clock.now += 1_000;
  assert.equal((await attempt(0, "2001:db8::1")).status, 401);
});

Deno.test("AE2 a client that guesses one account's password must wait; its owner, elsewhere, is not locked out", async () => {
  await using accounts = await startTestAccounts();
  await accounts.signUp("a@example.com");
  const signIn = (chosen: string, from: string) =>
    accounts.post("/signin", { email: "a@example.com", password: chosen }, { from });
  const statuses = [];
  for (let i = 0; i < 12; i++) statuses.push((await signIn(`guess ${i}`, "198.51.100.1")).status);
  assert.deepEqual(statuses, [...Array(10).fill(401), 429, 429]);
  assert.equal((await signIn(password, "198.51.100.1")).status, 429);
  assert.equal((await signIn(password, "203.0.113.1")).status, 200);
});

Deno.test("correct passwords do not count as attempts", async () => {
  await using accounts = await startTestAccounts();
  await accounts.signUp("a@example.com");
  for (let i = 0; i < 40; i++) {
    assert.equal((await accounts.post("/signin", { email: "a@example.com", password })).status, 200);
  }
});

Deno.test("guesses from everywhere at one account stop, too", async () => {
  await using accounts = await startTestAccounts();
  await accounts.signUp("a@example.com");
  const answers = await Promise.all(
    Array.from(
      { length: 300 },
      (_, i) =>
        accounts.post("/signin", { email: "a@example.com", password: `guess ${i}` }, {
          from: `10.1.${i >> 8}.${i & 255}`,
        }),
    ),
  );
  assert.equal(answers.filter(({ status }) => status === 401).length, 100);
  assert.equal(answers.filter(({ status }) => status === 429).length, 200);
});

/** Each endpoint with a body that it refuses. */
const refusals: [path: string, body: Record<string, string>, code: string][] = [
  ["/signup", { email: "taken@example.com", password }, "email_in_use"],
  ["/signin", { email: "taken@example.com", password: "wrong horse" }, "invalid_credentials"],
  ["/refresh", { refreshToken: "x" }, "invalid_refresh_token"],
  [
    "/verify-email/request",
    { email: "a@example.com", redirectTo: "https://evil.example.com" },
    "invalid_redirect",
  ],
  ["/verify-email/confirm", { token: "x" }, "invalid_code"],
  ["/reset/request", { email: "a@example.com", redirectTo: "https://evil.example.com" }, "invalid_redirect"],
  ["/reset/confirm", { token: "x", password }, "invalid_code"],
  ["/magic/request", { email: "a@example.com", redirectTo: "https://evil.example.com" }, "invalid_redirect"],
  ["/magic/verify", { email: "a@example.com", code: "123456" }, "invalid_code"],
  ["/admin/signin", { email: "taken@example.com", password }, "invalid_credentials"],
  ["/admin/setup", { token: "x", email: "a@example.com", password }, "setup_done"],
];
for (const [path, body, code] of refusals) {
  Deno.test(`POST ${path} depends on its body only, not on the signed-in user`, async () => {
    await using accounts = await startTestAccounts();
    const user = await accounts.signUp("taken@example.com");
    const admin = await accounts.signInAdmin("admin@example.com");
    const ended = await accounts.signUp("ended@example.com");
    await accounts.post("/signout", {}, { bearer: ended.accessToken });
    for (
      const bearer of [undefined, user.accessToken, admin.accessToken, ended.accessToken, "no.such.token"]
    ) {
      const answer = await accounts.post(path, body, bearer === undefined ? {} : { bearer });
      assert.equal(answer.body.errorData?.code, code);
    }
    assert.equal((await accounts.service.authenticator.verify(user.accessToken)).ok, true);
  });
}

Deno.test("AE16 wrong passwords from many addresses do not lock out an owner after an earlier sign-in", async () => {
  await using accounts = await startTestAccounts();
  const body = { email: "a@example.com", password };
  await accounts.signUp(body.email);
  assert.equal((await accounts.post("/signin", body, { from: "198.51.100.1" })).status, 200);
  const guess = async (from: string) =>
    (await accounts.post("/signin", { ...body, password: "wrong guess" }, { from })).status;
  for (let i = 0; i < 13; i++) {
    for (let n = 0; n < 10; n++) await guess(`203.0.113.${i + 10}`);
  }
  assert.equal(await guess("203.0.113.99"), 429, "strangers are held back together");
  // Where it signed up from, and where it signed in from.
  for (const from of [body.email, "198.51.100.1"]) {
    assert.equal((await accounts.post("/signin", body, { from })).status, 200, from);
  }
  // A client with an earlier sign-in has a separate rate limit, and no more than that.
  for (let n = 0; n < 10; n++) assert.equal(await guess("198.51.100.1"), 401);
  assert.equal(await guess("198.51.100.1"), 429);
});
