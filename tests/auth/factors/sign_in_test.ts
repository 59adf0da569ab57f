/** The second step of sign-ins: proofs, their limits, and the end of challenges. */
import assert from "node:assert/strict";
import { authLimits, rateLimits } from "../../../mod/auth/limits.ts";
import { authEventArgs, createFunctions, defineTable } from "../../../mod/functions/api/mod.ts";
import { z } from "zod";
import { password, startTestAccounts } from "../support/test_accounts.ts";
import {
  challenge,
  challengeIn,
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
import { startTestSignIns } from "../support/test_sign_ins.ts";

Deno.test("MF1 MF3 a password gets a challenge, and a code with it opens the session", async () => {
  await using accounts = await startTestAccounts();
  const { secret, owner } = await enrolledUser(accounts);
  const sessions = accounts.port.rows("_sessions").length;
  const open = await challenge(accounts);
  assert.equal(accounts.port.rows("_sessions").length, sessions, "the first step opened a session");
  const { status, body } = await accounts.post("/mfa/verify", {
    challenge: open,
    code: codeOf(secret, accounts.clock.now),
  });
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(Object.keys(body).sort(), ["accessToken", "expiresIn", "refreshToken", "userId"]);
  assert.equal(body.userId, owner);
  assert.equal(accounts.port.rows("_sessions").at(-1)?.["factorAt"], accounts.clock.now);
  const refreshed = await accounts.post("/refresh", { refreshToken: body.refreshToken });
  assert.equal(refreshed.status, 200);
});

Deno.test("MF8 administrators sign in with a second factor, and the challenge of one is no user's", async () => {
  await using accounts = await startTestAccounts();
  const { secret, owner } = await enrolledAdmin(accounts);
  const open = challengeIn(await accounts.post("/admin/signin", { email, password }));
  const { status, body } = await accounts.post("/mfa/verify", {
    challenge: open,
    code: codeOf(secret, accounts.clock.now),
  });
  assert.equal(status, 200);
  assert.deepEqual([body.adminId, body.userId], [owner, undefined]);
  assert.equal((await accounts.identityOf(body.accessToken)).adminId, owner);
});

Deno.test("MF1 a link by mail and a reset get a challenge too", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken, userId = "" } = await accounts.signUp(email);
  await accounts.post("/verify-email/confirm", { token: (await accounts.mailTo(email))?.token });
  const { secret } = await enroll(accounts, { accessToken, owner: userId });
  await accounts.post("/magic/request", { email });
  const byLink = await accounts.post("/magic/verify", { token: (await accounts.mailTo(email))?.token });
  const open = challengeIn(byLink);
  const code = codeOf(secret, accounts.clock.now);
  assert.equal((await accounts.post("/mfa/verify", { challenge: open, code })).status, 200);

  await accounts.post("/reset/request", { email });
  const { token } = await accounts.mailTo(email) ?? {};
  const reset = challengeIn(await accounts.post("/reset/confirm", { token, password: "another password" }));
  accounts.clock.now += STEP_MS;
  const next = codeOf(secret, accounts.clock.now);
  assert.equal((await accounts.post("/mfa/verify", { challenge: reset, code: next })).status, 200);
  assert.equal((await accounts.post("/signin", { email, password })).status, 401);
});

Deno.test("MF1 a provider brings a challenge in the fragment, and its claims wait for the second step", async () => {
  const app = createFunctions({ tables: {} });
  const tables = { visits: defineTable({ by: z.string(), claims: z.string() }) };
  await using signIns = await startTestSignIns({
    app: {
      tables,
      functions: {
        "auth:onSignIn": app.internalMutation({
          args: authEventArgs,
          handler: async (ctx, { by, provider, claims }) => {
            const db = ctx.db as unknown as { insert(table: string, row: unknown): Promise<unknown> };
            await db.insert("visits", { by: `${by} ${provider}`, claims: String(claims["login"] ?? "") });
          },
        }),
      },
    },
  });
  const { accounts } = signIns;
  const ann = { id: "4711", email: "ann@example.com", verified: true };
  const first = await signIns.signIn("github", ann);
  const { secret } = await enroll(accounts, {
    accessToken: first.get("svc_access_token") ?? "",
    owner: first.get("svc_user_id") ?? "",
  });
  assert.equal(accounts.port.rows("visits").length, 1);
  const fragment = await signIns.signIn("github", ann);
  assert.deepEqual([...fragment.keys()], ["svc_error", "svc_error_description", "svc_error_data"]);
  assert.equal(fragment.get("svc_error"), "mfa_required");
  assert.equal(accounts.port.rows("visits").length, 1, "the hook ran before the second step");
  const { challenge: open } = JSON.parse(fragment.get("svc_error_data") ?? "");
  const code = codeOf(secret, accounts.clock.now);
  const { status, body } = await accounts.post("/mfa/verify", { challenge: open, code });
  assert.equal(status, 200);
  assert.equal(body.userId, first.get("svc_user_id"));
  assert.deepEqual(accounts.port.rows("visits").map(({ by }) => by), ["provider github", "provider github"]);
});

Deno.test("MF1 a wrong password and an unknown address get the same answer with and without a factor", async () => {
  await using accounts = await startTestAccounts();
  await enrolledUser(accounts);
  await accounts.signUp("plain@example.com");
  const answers = await Promise.all(
    [email, "plain@example.com", "nobody@example.com"].map((address) =>
      accounts.post("/signin", { email: address, password: "wrong horse" })
    ),
  );
  assert.deepEqual(answers.map(({ status }) => status), [401, 401, 401]);
  assert.equal(new Set(answers.map(({ body }) => JSON.stringify(body))).size, 1);
  assert.equal(accounts.port.rows("_sign_in_challenges").length, 0);
});

Deno.test("MF2 a challenge works once and for five minutes", async () => {
  await using accounts = await startTestAccounts();
  const { secret } = await enrolledUser(accounts);
  const used = await challenge(accounts);
  const verify = (open: string, code = codeOf(secret, accounts.clock.now)) =>
    accounts.post("/mfa/verify", { challenge: open, code });
  assert.equal((await verify(used)).status, 200);
  accounts.clock.now += STEP_MS;
  assert.equal(codeIn(await verify(used)), "invalid_challenge");
  const late = await challenge(accounts);
  accounts.clock.now += 5 * 60_000;
  assert.equal(codeIn(await verify(late)), "invalid_challenge");
  assert.equal(codeIn(await verify("x".repeat(43))), "invalid_challenge");
  await accounts.service.sweep();
  assert.equal(accounts.port.rows("_sign_in_challenges").length, 0);
});

Deno.test("MF2 five wrong codes end a sign-in, also concurrent ones", async () => {
  await using accounts = await startTestAccounts();
  const { secret } = await enrolledUser(accounts);
  const open = await challenge(accounts);
  const wrong = wrongCode(secret, accounts.clock.now);
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => accounts.post("/mfa/verify", { challenge: open, code: wrong })),
  );
  const codes = answers.map(codeIn);
  assert.equal(codes.filter((code) => code === "invalid_code").length, 5);
  assert.equal(codes.filter((code) => code === "invalid_challenge").length, 3);
  const code = codeOf(secret, accounts.clock.now);
  assert.equal(codeIn(await accounts.post("/mfa/verify", { challenge: open, code })), "invalid_challenge");
});

Deno.test("MF3 a code can be used once: not in another sign-in, for a step-up, or concurrently", async () => {
  await using accounts = await startTestAccounts();
  const { secret, accessToken } = await enrolledUser(accounts);
  const code = codeOf(secret, accounts.clock.now);
  const open = [await challenge(accounts), await challenge(accounts), await challenge(accounts)];
  const answers = await Promise.all(
    open.slice(0, 2).map((one) => accounts.post("/mfa/verify", { challenge: one, code })),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
  accounts.clock.now += STEP_MS;
  assert.equal(codeIn(await accounts.post("/mfa/verify", { challenge: open[2], code })), "invalid_code");
  await assert.rejects(accounts.call("_auth:proveFactor", { code }, accessToken), {
    message: "invalid_code",
  });
  // An earlier code that was never used is refused as well.
  const earlier = codeOf(secret, accounts.clock.now, -2 * STEP_MS);
  assert.equal(
    codeIn(await accounts.post("/mfa/verify", { challenge: open[2], code: earlier })),
    "invalid_code",
  );
});

Deno.test("MF3 two requests with one challenge and one code open one session", async () => {
  await using accounts = await startTestAccounts();
  const { secret } = await enrolledUser(accounts);
  const sessions = accounts.port.rows("_sessions").length;
  const body = { challenge: await challenge(accounts), code: codeOf(secret, accounts.clock.now) };
  const answers = await Promise.all([
    accounts.post("/mfa/verify", body),
    accounts.post("/mfa/verify", body),
  ]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401]);
  assert.equal(accounts.port.rows("_sessions").length, sessions + 1);
});

for (
  const [offMs, works] of [[-60_000, true], [60_000, true], [-90_000, false], [90_000, false]] as const
) {
  Deno.test(`MF3 a phone whose clock is ${offMs / 1000} s off ${works ? "signs in" : "is refused"}`, async () => {
    await using accounts = await startTestAccounts();
    const { secret } = await enrolledUser(accounts);
    accounts.clock.now += STEP_MS;
    const code = codeOf(secret, accounts.clock.now, offMs);
    const answer = await accounts.post("/mfa/verify", { challenge: await challenge(accounts), code });
    assert.equal(answer.status, works ? 200 : 400);
  });
}

Deno.test("MF4 a recovery code signs in once, in any spelling, and no other account", async () => {
  await using accounts = await startTestAccounts();
  const { recoveryCodes } = await enrolledUser(accounts);
  const other = await enrolledUser(accounts, "b@example.com");
  assert.equal(new Set(recoveryCodes).size, 10);
  assert.ok(recoveryCodes.every((code) => /^[a-z2-9]{5}-[a-z2-9]{5}$/.test(code)));
  const [first = "", second = ""] = recoveryCodes;
  const verify = async (recoveryCode: string, address = email) =>
    await accounts.post("/mfa/verify", { challenge: await challenge(accounts, address), recoveryCode });
  assert.equal((await verify(` ${first.toUpperCase().replace("-", " ")}`)).status, 200);
  assert.equal(codeIn(await verify(first)), "invalid_code");
  assert.equal(codeIn(await verify(second, "b@example.com")), "invalid_code");
  assert.equal(accounts.port.rows("_recovery_codes").filter(({ owner }) => owner === other.owner).length, 10);
  const open = [await challenge(accounts), await challenge(accounts)];
  const answers = await Promise.all(
    open.map((one) => accounts.post("/mfa/verify", { challenge: one, recoveryCode: second })),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
});

Deno.test("MF4 no table holds a secret, a challenge or a recovery code in the clear", async () => {
  await using accounts = await startTestAccounts();
  const { secret, recoveryCodes } = await enrolledUser(accounts);
  const open = await challenge(accounts);
  const { accessToken } = await verifiedUser(accounts, "b@example.com");
  const pending = await accounts.call("_auth:startTotp", { password }, accessToken) as { secret: string };
  const tables = ["_totp", "_totp_enrolments", "_recovery_codes", "_sign_in_challenges"];
  const rows = tables.map((table) => accounts.port.rows(table));
  assert.deepEqual(rows.map(({ length }) => length), [1, 1, 10, 1]);
  const stored = JSON.stringify(rows).toLowerCase();
  for (const text of [secret, pending.secret, open, ...recoveryCodes]) {
    assert.ok(!stored.includes(text.toLowerCase()), `${text} is stored`);
  }
});

const endings: readonly (readonly [
  name: string,
  end: (
    accounts: Awaited<ReturnType<typeof startTestAccounts>>,
    owner: string,
    token: string,
  ) => Promise<unknown>,
])[] = [
  ["its user removes the factor", async (accounts, _owner, token) => {
    await accounts.call("_auth:removeTotp", {}, token);
  }],
  ["an administrator removes the factor", async (accounts, userId) => {
    const { accessToken } = await accounts.signInAdmin("root@example.com");
    await accounts.call("_admin/users:removeFactors", { userId }, accessToken);
  }],
  ["an operator removes the factor", (accounts) => accounts.service.admins.removeFactors(email)],
  ["the recovery codes are renewed", async (accounts, _owner, token) => {
    await accounts.call("_auth:renewRecoveryCodes", {}, token);
  }],
  ["the password changes", async (accounts, _owner, token) => {
    const change = { currentPassword: password, newPassword: "another password" };
    await accounts.call("_auth:changePassword", change, token);
  }],
  ["the user signs out everywhere else", async (accounts, _owner, token) => {
    await accounts.call("_auth:signOutEverywhere", { keepCurrent: true }, token);
  }],
  ["the user is deleted", async (accounts, userId) => {
    const { accessToken } = await accounts.signInAdmin("root@example.com");
    await accounts.call("_admin/users:remove", { userId }, accessToken);
  }],
  ["the user's row is deleted", (accounts, userId) => accounts.port.deleteRow(userId)],
];
for (const [name, end] of endings) {
  Deno.test(`MF5 an open sign-in ends when ${name}`, async () => {
    await using accounts = await startTestAccounts();
    const { secret, owner, accessToken } = await enrolledUser(accounts);
    const open = await challenge(accounts);
    await end(accounts, owner, accessToken);
    const code = codeOf(secret, accounts.clock.now);
    assert.equal(codeIn(await accounts.post("/mfa/verify", { challenge: open, code })), "invalid_challenge");
  });
}

Deno.test("MF5 an account keeps a bounded number of open sign-ins, the newest", async () => {
  await using accounts = await startTestAccounts();
  const { secret } = await enrolledUser(accounts);
  const open: string[] = [];
  const { challengesPerOwnerMax } = authLimits;
  for (let i = 0; i <= challengesPerOwnerMax; i++) {
    open.push(challengeIn(await accounts.post("/signin", { email, password }, { from: `203.0.113.${i}` })));
  }
  assert.equal(accounts.port.rows("_sign_in_challenges").length, challengesPerOwnerMax);
  const verify = (one: string | undefined) =>
    accounts.post("/mfa/verify", { challenge: one, code: codeOf(secret, accounts.clock.now) });
  assert.equal(codeIn(await verify(open[0])), "invalid_challenge");
  assert.equal((await verify(open.at(-1))).status, 200);
});

Deno.test("MF9 guesses are limited by account over all sign-ins and addresses, but not for the owner's own", async () => {
  await using accounts = await startTestAccounts();
  const { secret } = await enrolledUser(accounts);
  const verify = async (code: string, from: string) => {
    const first = await accounts.post("/signin", { email, password }, { from });
    return await accounts.post("/mfa/verify", { challenge: challengeIn(first), code }, { from });
  };
  const home = "198.51.100.7";
  assert.equal((await verify(codeOf(secret, accounts.clock.now), home)).status, 200);
  accounts.clock.now += STEP_MS;
  const wrong = wrongCode(secret, accounts.clock.now);
  for (let i = 0; i < 10; i++) assert.equal(codeIn(await verify(wrong, `203.0.113.${i}`)), "invalid_code");
  const limited = await verify(codeOf(secret, accounts.clock.now), "203.0.113.99");
  assert.equal(limited.status, 429);
  assert.ok(Number(limited.headers.get("retry-after")) > 60);
  assert.equal((await verify(codeOf(secret, accounts.clock.now), home)).status, 200);
});

for (const kind of ["user", "administrator"] as const) {
  Deno.test(`AE16 MF1 wrong passwords do not lock out ${kind}s after a proved factor from their address`, async () => {
    await using accounts = await startTestAccounts();
    const { secret } = kind === "user" ? await enrolledUser(accounts) : await enrolledAdmin(accounts);
    const signIn = (from: string, given = password) =>
      accounts.post(kind === "user" ? "/signin" : "/admin/signin", { email, password: given }, { from });
    const [home, passwordOnly] = ["198.51.100.7", "198.51.100.8"];
    challengeIn(await signIn(passwordOnly));
    const finished = await accounts.post(
      "/mfa/verify",
      { challenge: challengeIn(await signIn(home)), code: codeOf(secret, accounts.clock.now) },
      { from: home },
    );
    assert.equal(finished.status, 200);
    const { burst } = rateLimits.failuresPerAccount;
    for (let i = 0; i < burst; i++) {
      assert.equal((await signIn(`203.0.113.${Math.floor(i / 10)}`, "wrong guess")).status, 401);
    }
    assert.equal((await signIn(passwordOnly)).status, 429, "a password alone protects no address");
    challengeIn(await signIn(home));
  });
}

Deno.test("MF2 requests with both proofs, none, or endless ones are refused", async () => {
  await using accounts = await startTestAccounts();
  await enrolledUser(accounts);
  const open = await challenge(accounts);
  for (
    const body of [
      { challenge: open },
      { code: "123456" },
      { challenge: open, code: "123456", recoveryCode: "abcde-fghij" },
      { challenge: open, code: 123456 },
      { challenge: open, code: "1".repeat(101) },
      { challenge: "x".repeat(101), code: "123456" },
    ]
  ) {
    assert.equal(codeIn(await accounts.post("/mfa/verify", body)), "bad_request", JSON.stringify(body));
  }
  assert.equal(accounts.port.rows("_sign_in_challenges")[0]?.["attemptsLeft"], 5);
});
