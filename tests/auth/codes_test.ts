import assert from "node:assert/strict";
import { password, startTestAccounts, type TestAccounts } from "./support/test_accounts.ts";

const email = "a@example.com";
const MINUTE_MS = 60_000;

const codeOf = ({ status, body }: { status: number; body: { errorData?: { code: string } } }) =>
  status === 200 ? "ok" : `${status} ${body.errorData?.code}`;

/** A code other than the given one. */
const wrong = (code: string) => ((Number(code) + 1) % 1_000_000).toString().padStart(6, "0");

async function mailed(accounts: TestAccounts, to = email) {
  const mail = await accounts.mailTo(to);
  assert.ok(mail, `no mail to ${to}`);
  return mail;
}

interface Kind {
  readonly name: "verify" | "reset" | "magic";
  readonly request: string;
  readonly confirm: string;
  readonly fragment: string;
  readonly lifetimeMs: number;
  /** Fields of the confirmation in addition to the proof. */
  readonly extra: Record<string, string>;
}

const kinds: Kind[] = [
  {
    name: "verify",
    request: "/verify-email/request",
    confirm: "/verify-email/confirm",
    fragment: "svc_verify_token",
    lifetimeMs: 24 * 60 * MINUTE_MS,
    extra: {},
  },
  {
    name: "reset",
    request: "/reset/request",
    confirm: "/reset/confirm",
    fragment: "svc_reset_token",
    lifetimeMs: 30 * MINUTE_MS,
    extra: { password: "new password" },
  },
  {
    name: "magic",
    request: "/magic/request",
    confirm: "/magic/verify",
    fragment: "svc_magic_token",
    lifetimeMs: 15 * MINUTE_MS,
    extra: {},
  },
];

/** A user who has requested a mail. */
async function asked(request: string) {
  const accounts = await startTestAccounts();
  await accounts.signUp(email);
  assert.deepEqual((await accounts.post(request, { email })).body, {});
  return { accounts, mail: await mailed(accounts) };
}

for (const { name, request, confirm, fragment, lifetimeMs, extra } of kinds) {
  Deno.test(`CO5 ${name}: the email contains a code and a link into the app with the token in its fragment`, async () => {
    const { accounts, mail } = await asked(request);
    await using _accounts = accounts;
    assert.match(mail.link, new RegExp(`^https://app\\.example\\.com/auth#${fragment}=[A-Za-z0-9_-]{43}$`));
    assert.match(mail.code, /^\d{6}$/);
    assert.equal(mail.mail.to, email);
  });

  for (const by of ["token", "code"] as const) {
    Deno.test(`CO2 ${name}: the ${by} works once`, async () => {
      const { accounts, mail } = await asked(request);
      await using _accounts = accounts;
      const proof = by === "token" ? { token: mail.token } : { email: " A@example.com", code: mail.code };
      assert.equal(codeOf(await accounts.post(confirm, { ...proof, ...extra })), "ok");
      assert.equal(codeOf(await accounts.post(confirm, { ...proof, ...extra })), "400 invalid_code");
      assert.equal(accounts.port.rows("_codes").filter((row) => row["kind"] === name).length, 0);
      assert.equal(accounts.port.rows("_users")[0]?.["emailVerified"], true);
    });

    Deno.test(`CO3 ${name}: the ${by} is valid until its lifetime ends`, async () => {
      const { accounts, mail } = await asked(request);
      await using _accounts = accounts;
      const proof = by === "token" ? { token: mail.token } : { email, code: mail.code };
      accounts.clock.now += lifetimeMs;
      assert.equal(codeOf(await accounts.post(confirm, { ...proof, ...extra })), "400 invalid_code");
      accounts.clock.now -= 1;
      assert.equal(codeOf(await accounts.post(confirm, { ...proof, ...extra })), "ok");
    });
  }

  Deno.test(`CO4 ${name}: 5 wrong attempts invalidate the code, from any address`, async () => {
    const { accounts, mail } = await asked(request);
    await using _accounts = accounts;
    for (let i = 0; i < 5; i++) {
      const attempt = { email, code: wrong(mail.code), ...extra };
      assert.equal(
        codeOf(await accounts.post(confirm, attempt, { from: `198.51.100.${i}` })),
        "400 invalid_code",
      );
    }
    assert.equal(
      codeOf(await accounts.post(confirm, { email, code: mail.code, ...extra })),
      "400 invalid_code",
    );
    // The link cannot be guessed: other clients' wrong attempts do not lock out the reader of the mail.
    assert.equal(codeOf(await accounts.post(confirm, { token: mail.token, ...extra })), "ok");
  });

  Deno.test(`CO4 ${name}: a thousand addresses that guess at the same time get five attempts`, async () => {
    const { accounts, mail } = await asked(request);
    await using _accounts = accounts;
    const guesses = Array.from({ length: 1_000 }, (_, i) => ((Number(mail.code) + i + 1) % 1_000_000));
    const answers = await Promise.all(guesses.map((guess, i) => {
      const code = guess.toString().padStart(6, "0");
      return accounts.post(confirm, { email, code, ...extra }, { from: `10.${i >> 8}.${i & 255}.1` });
    }));
    assert.ok(answers.every(({ status }) => status === 400 || status === 429));
    const [row] = accounts.port.rows("_codes").filter((row) => row["kind"] === name);
    assert.equal(row?.["codeHash"], undefined);
    accounts.clock.now += 10 * MINUTE_MS;
    assert.equal(
      codeOf(await accounts.post(confirm, { email, code: mail.code, ...extra })),
      "400 invalid_code",
    );
  });

  Deno.test(`${name}: a newer email replaces the older code, and the older link remains valid`, async () => {
    const { accounts, mail: older } = await asked(request);
    await using _accounts = accounts;
    accounts.clock.now += 5 * MINUTE_MS;
    await accounts.post(request, { email });
    const newer = await mailed(accounts);
    if (older.code !== newer.code) {
      assert.equal(
        codeOf(await accounts.post(confirm, { email, code: older.code, ...extra })),
        "400 invalid_code",
      );
    }
    assert.equal(codeOf(await accounts.post(confirm, { token: older.token, ...extra })), "ok");
    assert.equal(codeOf(await accounts.post(confirm, { token: newer.token, ...extra })), "400 invalid_code");
    assert.equal(
      codeOf(await accounts.post(confirm, { email, code: newer.code, ...extra })),
      "400 invalid_code",
    );
  });

  Deno.test(`${name}: codes and tokens of another kind are refused`, async () => {
    const { accounts, mail } = await asked(request);
    await using _accounts = accounts;
    for (const other of kinds.filter((kind) => kind.name !== name)) {
      const byToken = await accounts.post(other.confirm, { token: mail.token, ...other.extra });
      assert.equal(codeOf(byToken), "400 invalid_code");
    }
    assert.equal(codeOf(await accounts.post(confirm, { token: mail.token, ...extra })), "ok");
  });

  Deno.test(`RD2 ${name}: a redirect is used when it is allowed and refused when it is not, for known and unknown alike`, async () => {
    await using accounts = await startTestAccounts();
    await accounts.signUp(email);
    const redirectTo = "https://app.example.com/auth/done?x=1#y";
    await accounts.post(request, { email, redirectTo });
    assert.ok((await mailed(accounts)).link.startsWith(`https://app.example.com/auth/done?x=1#${fragment}=`));
    for (const address of [email, "unknown@example.com"]) {
      const answer = await accounts.post(request, {
        email: address,
        redirectTo: "https://evil.example.com/",
      });
      assert.equal(codeOf(answer), "400 invalid_redirect");
    }
  });

  Deno.test(`AE9 ${name}: every request returns {}, and only eligible addresses get an email`, async () => {
    await using accounts = await startTestAccounts({ signups: false });
    for (const address of ["unknown@example.com", "not an address", ""]) {
      const answer = await accounts.post(request, { email: address });
      assert.deepEqual([answer.status, answer.body], [200, {}]);
    }
    await accounts.service.mailSettled();
    assert.deepEqual(accounts.mails, []);
    assert.deepEqual(accounts.port.rows("_codes"), []);
  });

  Deno.test(`AE3 ${name}: five emails to one address, then 429 with Retry-After, with or without an account`, async () => {
    await using accounts = await startTestAccounts();
    await accounts.signUp("other@example.com");
    for (const address of ["other@example.com", "unknown@example.com"]) {
      const answers = [];
      for (let i = 0; i < 6; i++) {
        answers.push(await accounts.post(request, { email: address }, { from: `10.0.0.${i}` }));
      }
      const known = address === "other@example.com";
      // The mail of the sign-up counts.
      assert.deepEqual(
        answers.map(({ status }) => status),
        known ? [200, 200, 200, 200, 429, 429] : [200, 200, 200, 200, 200, 429],
      );
      assert.equal(answers.at(-1)?.body.errorData.code, "rate_limited");
      assert.equal(answers.at(-1)?.headers.get("retry-after"), "120");
    }
  });

  for (const body of [{}, { email }, { code: "123456" }, { token: 5 }, { email: 5, code: 5 }]) {
    Deno.test(`${name}: ${JSON.stringify(body)} is refused as a credential`, async () => {
      await using accounts = await startTestAccounts();
      assert.equal(codeOf(await accounts.post(confirm, { ...body, ...extra })), "400 bad_request");
    });
  }
}

Deno.test("AE10 a verified address does not need another verification", async () => {
  await using accounts = await startTestAccounts();
  await accounts.signUp(email);
  const { token } = await mailed(accounts);
  await accounts.post("/verify-email/confirm", { token });
  accounts.mails.length = 0;
  assert.deepEqual((await accounts.post("/verify-email/request", { email })).body, {});
  assert.equal(await accounts.mailTo(email), null);
});

Deno.test("AE11 a reset sets the password, ends all other sessions and answers with tokens of a new one", async () => {
  await using accounts = await startTestAccounts();
  const before = [await accounts.signUp(email), (await accounts.post("/signin", { email, password })).body];
  const bystander = await accounts.signUp("b@example.com");
  await accounts.post("/reset/request", { email });
  const { token } = await mailed(accounts);
  const weak = await accounts.post("/reset/confirm", { token, password: "short" });
  assert.equal(codeOf(weak), "400 weak_password");
  const { body } = await accounts.post("/reset/confirm", { token, password: "new password" });
  assert.equal((await accounts.identityOf(body.accessToken)).userId, before[0]?.userId);
  for (const { accessToken } of before) {
    assert.deepEqual(await accounts.service.authenticator.verify(accessToken), {
      ok: false,
      error: "session has ended",
    });
  }
  assert.equal((await accounts.service.authenticator.verify(bystander.accessToken)).ok, true);
  assert.equal(codeOf(await accounts.post("/signin", { email, password })), "401 invalid_credentials");
  assert.equal(codeOf(await accounts.post("/signin", { email, password: "new password" })), "ok");
});

Deno.test("AE12 sign-in by email creates a verified user if sign-ups are allowed", async () => {
  await using accounts = await startTestAccounts();
  await accounts.post("/magic/request", { email: "New@example.com" });
  const { token } = await mailed(accounts, "new@example.com");
  assert.equal(accounts.port.rows("_users").length, 0);
  const { body } = await accounts.post("/magic/verify", { token });
  const [user] = accounts.port.rows("_users");
  assert.equal(user?.["_id"], body.userId);
  assert.deepEqual([user?.["email"], user?.["emailVerified"]], ["new@example.com", true]);
  await accounts.post("/magic/request", { email: "new@example.com" });
  const again = await mailed(accounts, "new@example.com");
  const second = await accounts.post("/magic/verify", { email: "new@example.com", code: again.code });
  assert.equal(second.body.userId, body.userId);
  assert.equal(accounts.port.rows("_users").length, 1);
});

Deno.test("sign-in by email is refused if the password was set before the address was confirmed", async () => {
  await using accounts = await startTestAccounts();
  const squatter = await accounts.signUp(email, "squatter's password");
  await accounts.post("/magic/request", { email });
  const { token } = await mailed(accounts);
  const { body } = await accounts.post("/magic/verify", { token });
  assert.equal(body.userId, squatter.userId);
  assert.equal((await accounts.service.authenticator.verify(squatter.accessToken)).ok, false);
  assert.equal(
    codeOf(await accounts.post("/signin", { email, password: "squatter's password" })),
    "401 invalid_credentials",
  );
});

Deno.test("a verified user keeps password and sessions after signing in by email", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await accounts.signUp(email);
  await accounts.post("/verify-email/confirm", { token: (await mailed(accounts)).token });
  await accounts.post("/magic/request", { email });
  assert.equal(codeOf(await accounts.post("/magic/verify", { token: (await mailed(accounts)).token })), "ok");
  assert.equal((await accounts.service.authenticator.verify(accessToken)).ok, true);
  assert.equal(codeOf(await accounts.post("/signin", { email, password })), "ok");
});

Deno.test("sign-in by email can be disabled", async () => {
  await using accounts = await startTestAccounts({ magicLink: false });
  assert.equal(codeOf(await accounts.post("/magic/request", { email })), "403 magic_link_disabled");
  assert.equal(codeOf(await accounts.post("/magic/verify", { token: "x" })), "403 magic_link_disabled");
});

Deno.test("AE4 AE17 without a mail server all requests return the same, are logged, and email sign-in is not offered", async () => {
  await using accounts = await startTestAccounts({ mail: false });
  await accounts.signUp(email);
  assert.equal((await accounts.get("/providers")).body.magicLink, false);
  for (const { request } of kinds) assert.deepEqual((await accounts.post(request, { email })).body, {});
  await accounts.service.mailSettled();
  assert.deepEqual(accounts.port.rows("_codes"), []);
  const reported = /^warn Mail requested but not sent: no mail server/;
  assert.deepEqual(accounts.logged.map((line) => reported.test(line)), [true], "logged once in ten minutes");
  accounts.clock.now += 600_000;
  await accounts.post("/reset/request", { email });
  await accounts.service.mailSettled();
  assert.equal(accounts.logged.length, 2);
});

Deno.test("without an allowlist links lead to the server's own page", async () => {
  await using accounts = await startTestAccounts({ redirectUrls: [] });
  await accounts.signUp(email);
  assert.match((await mailed(accounts)).link, /^http:\/\/localhost:3210\/_\/account\.html#svc_verify_token=/);
});
