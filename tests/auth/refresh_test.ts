import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { startTestAccounts, type TestAccounts } from "./support/test_accounts.ts";

const DAY_MS = 86_400_000;

const refresh = (accounts: TestAccounts, refreshToken: string, attemptId?: string) =>
  accounts.post("/refresh", { refreshToken, ...(attemptId !== undefined && { attemptId }) });

const codeOf = ({ status, body }: { status: number; body: { errorData?: { code: string } } }) =>
  status === 200 ? "ok" : `${status} ${body.errorData?.code}`;

Deno.test("RT2 a refresh rotates the token and the session continues", async () => {
  await using accounts = await startTestAccounts();
  let tokens = await accounts.signUp("a@example.com");
  const { sessionId } = await accounts.identityOf(tokens.accessToken);
  for (let i = 0; i < 5; i++) {
    accounts.clock.now += 60_000;
    const { status, body } = await refresh(accounts, tokens.refreshToken);
    assert.equal(status, 200);
    assert.deepEqual(Object.keys(body).sort(), ["accessToken", "expiresIn", "refreshToken", "userId"]);
    assert.notEqual(body.refreshToken, tokens.refreshToken);
    assert.equal((await accounts.identityOf(body.accessToken)).sessionId, sessionId);
    tokens = body;
  }
  assert.equal(accounts.port.rows("_sessions").length, 1);
  assert.equal(accounts.port.rows("_refresh_tokens").length, 1);
});

Deno.test("RT3 RT4 a rotated token within 10 s is stale and the session survives; after that it is a theft", async () => {
  await using accounts = await startTestAccounts();
  const { refreshToken: first } = await accounts.signUp("a@example.com");
  const { body: { refreshToken: second, accessToken } } = await refresh(accounts, first);
  accounts.clock.now += 9_999;
  assert.equal(codeOf(await refresh(accounts, first)), "401 stale_refresh_token");
  assert.equal((await accounts.service.authenticator.verify(accessToken)).ok, true);
  accounts.clock.now += 1;
  assert.equal(codeOf(await refresh(accounts, first)), "401 refresh_token_reused");
  assert.equal(accounts.port.rows("_sessions").length, 0);
  assert.equal(accounts.port.rows("_refresh_tokens").length, 0);
  assert.deepEqual(await accounts.service.authenticator.verify(accessToken), {
    ok: false,
    error: "session has ended",
  });
  assert.equal(codeOf(await refresh(accounts, second)), "401 invalid_refresh_token");
  assert.equal(codeOf(await refresh(accounts, first)), "401 invalid_refresh_token");
});

Deno.test("RT4 the reuse of a token rotated long ago still ends the session", async () => {
  await using accounts = await startTestAccounts();
  const { refreshToken: stolen } = await accounts.signUp("a@example.com");
  let current = stolen;
  for (let i = 0; i < 200; i++) {
    accounts.clock.now += DAY_MS;
    current = (await refresh(accounts, current)).body.refreshToken;
  }
  assert.equal(codeOf(await refresh(accounts, stolen)), "401 refresh_token_reused");
  assert.equal(codeOf(await refresh(accounts, current)), "401 invalid_refresh_token");
});

Deno.test("RT3 RT4 tokens rotated in quick succession are each stale after 10 s", async () => {
  await using accounts = await startTestAccounts();
  const { refreshToken: first } = await accounts.signUp("a@example.com");
  const { body: { refreshToken: second } } = await refresh(accounts, first);
  accounts.clock.now += 6_000;
  const { body: { refreshToken: third } } = await refresh(accounts, second);
  accounts.clock.now += 3_000;
  assert.equal(codeOf(await refresh(accounts, first)), "401 stale_refresh_token");
  assert.equal(codeOf(await refresh(accounts, second)), "401 stale_refresh_token");
  accounts.clock.now += 2_000;
  assert.equal(codeOf(await refresh(accounts, second)), "401 stale_refresh_token");
  assert.equal(codeOf(await refresh(accounts, first)), "401 refresh_token_reused");
  assert.equal(codeOf(await refresh(accounts, third)), "401 invalid_refresh_token");
});

Deno.test("RT5 a session slides 30 days with each refresh and expires without one", async () => {
  await using accounts = await startTestAccounts();
  let { refreshToken } = await accounts.signUp("a@example.com");
  for (let i = 0; i < 3; i++) {
    accounts.clock.now += 30 * DAY_MS - 1;
    const answer = await refresh(accounts, refreshToken);
    assert.equal(codeOf(answer), "ok");
    refreshToken = answer.body.refreshToken;
  }
  accounts.clock.now += 30 * DAY_MS;
  assert.equal(codeOf(await refresh(accounts, refreshToken)), "401 session_expired");
  assert.equal(codeOf(await refresh(accounts, refreshToken)), "401 session_expired");
});

Deno.test("RT3 of ten concurrent refreshes with one token one succeeds, nine are stale, and the session survives", async () => {
  await using accounts = await startTestAccounts();
  let { refreshToken } = await accounts.signUp("a@example.com");
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(Array.from({ length: 10 }, () => refresh(accounts, refreshToken)));
    assert.deepEqual(answers.map(codeOf).sort(), [...Array(9).fill("401 stale_refresh_token"), "ok"]);
    refreshToken = answers.find(({ status }) => status === 200)?.body.refreshToken;
    accounts.clock.now += 60_000;
  }
  assert.equal(codeOf(await refresh(accounts, refreshToken)), "ok");
});

Deno.test("the same attempt within 10 s gets the same tokens, so a lost response does not end the session", async () => {
  await using accounts = await startTestAccounts();
  const { refreshToken: first } = await accounts.signUp("a@example.com");
  const attemptId = "attempt-0123456789";
  const answer = await refresh(accounts, first, attemptId);
  accounts.clock.now += 5_500;
  const again = await refresh(accounts, first, attemptId);
  assert.equal(again.status, 200);
  assert.deepEqual(again.body, answer.body);
  assert.equal(codeOf(await refresh(accounts, first, "another-0123456789")), "401 stale_refresh_token");
  assert.equal(codeOf(await refresh(accounts, first)), "401 stale_refresh_token");
  assert.equal(codeOf(await refresh(accounts, again.body.refreshToken)), "ok");
  // Its tokens have been used, so the response did arrive.
  assert.equal(codeOf(await refresh(accounts, first, attemptId)), "401 stale_refresh_token");
  accounts.clock.now += 5_000;
  assert.equal(codeOf(await refresh(accounts, first, attemptId)), "401 refresh_token_reused");
});

Deno.test("an attempt cannot be claimed for a rotation without it, nor by a guess", async () => {
  await using accounts = await startTestAccounts();
  const { refreshToken: first } = await accounts.signUp("a@example.com");
  await refresh(accounts, first);
  assert.equal(codeOf(await refresh(accounts, first, "attempt-0123456789")), "401 stale_refresh_token");
  assert.equal(codeOf(await refresh(accounts, first, "short")), "400 bad_request");
});

for (
  const [name, token] of [
    ["empty text", ""],
    ["another format", "eyJhbGciOiJIUzI1NiJ9.e30.x"],
    ["random text", randomBytes(32).toString("base64url")],
  ] as const
) {
  Deno.test(`RT7 ${name} is no refresh token`, async () => {
    await using accounts = await startTestAccounts();
    assert.equal(codeOf(await refresh(accounts, token)), "401 invalid_refresh_token");
  });
}

Deno.test("RT7 a refresh token of another server is not valid here", async () => {
  await using here = await startTestAccounts();
  await using there = await startTestAccounts();
  await here.signUp("a@example.com");
  const { refreshToken } = await there.signUp("a@example.com");
  assert.equal(codeOf(await refresh(here, refreshToken)), "401 invalid_refresh_token");
});

Deno.test("AE8 sign-out ends the session of the refresh token, of the access token, or of both", async () => {
  await using accounts = await startTestAccounts();
  for (const by of ["refreshToken", "accessToken", "both"]) {
    const tokens = await accounts.signUp(`${by}@example.com`.toLowerCase());
    const body = by === "accessToken" ? {} : { refreshToken: tokens.refreshToken };
    const options = by === "refreshToken" ? {} : { bearer: tokens.accessToken };
    const answer = await accounts.post("/signout", body, options);
    assert.deepEqual([answer.status, answer.body], [200, {}]);
    assert.equal(accounts.port.rows("_sessions").length, 0);
    assert.equal(accounts.port.rows("_refresh_tokens").length, 0);
    assert.equal(codeOf(await refresh(accounts, tokens.refreshToken)), "401 invalid_refresh_token");
    assert.deepEqual((await accounts.post("/signout", body, options)).body, {});
  }
});

for (const text of ["", "{", "[]", "null", '{"refreshToken":5}', '{"refreshToken":"x"}']) {
  Deno.test(`AE8 sign-out with the body ${JSON.stringify(text)} returns {} and ends no session`, async () => {
    await using accounts = await startTestAccounts();
    await accounts.signUp("a@example.com");
    const answer = await accounts.post("/signout", undefined, { text, bearer: "no.such.token" });
    assert.deepEqual([answer.status, answer.body], [200, {}]);
    assert.equal(accounts.port.rows("_sessions").length, 1);
  });
}

Deno.test("AE8 an expired access token identifies the session to end", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await accounts.signUp("a@example.com");
  await accounts.signUp("b@example.com");
  accounts.clock.now += 901_000;
  const forged = `${accessToken.slice(0, accessToken.lastIndexOf("."))}.AAAA`;
  await accounts.post("/signout", {}, { bearer: forged });
  assert.equal(accounts.port.rows("_sessions").length, 2);
  await accounts.post("/signout", {}, { bearer: accessToken });
  assert.equal(accounts.port.rows("_sessions").length, 1);
});

Deno.test("AT6 no two access tokens are the same, also of one session and second", async () => {
  await using accounts = await startTestAccounts();
  const first = await accounts.signUp("a@example.com");
  const second = (await refresh(accounts, first.refreshToken, "attempt-0123456789")).body;
  assert.notEqual(second.accessToken, first.accessToken);
  const again = (await refresh(accounts, first.refreshToken, "attempt-0123456789")).body;
  assert.equal(again.accessToken, second.accessToken);
  assert.notEqual((await refresh(accounts, second.refreshToken)).body.accessToken, second.accessToken);
});

Deno.test("sign-out with a rotated token ends the session too", async () => {
  await using accounts = await startTestAccounts();
  const { refreshToken } = await accounts.signUp("a@example.com");
  await refresh(accounts, refreshToken);
  await accounts.post("/signout", { refreshToken });
  assert.equal(accounts.port.rows("_sessions").length, 0);
});

Deno.test("AT3 RT6 an impersonation session keeps its expiry and caps its access tokens", async () => {
  await using accounts = await startTestAccounts();
  const user = await accounts.signUp("a@example.com");
  const admin = await accounts.signInAdmin("admin@example.com");
  const tokens = await accounts.service.sessions.impersonate({
    userId: user.userId ?? "",
    adminId: admin.adminId ?? "",
    adminSession: (await accounts.identityOf(admin.accessToken)).sessionId ?? "",
    lifetimeMs: 600_000,
    userAgent: null,
  });
  assert.ok(tokens);
  assert.equal(tokens.userId, user.userId);
  assert.equal(tokens.expiresIn, 600);
  accounts.clock.now += 300_000;
  const refreshed = await refresh(accounts, tokens.refreshToken);
  assert.equal(refreshed.body.expiresIn, 300);
  accounts.clock.now += 300_000;
  assert.equal(codeOf(await refresh(accounts, refreshed.body.refreshToken)), "401 session_expired");
});

Deno.test("AT3 RT6 RT5 an impersonation ends no later than its last access token, even if it starts within that second", async () => {
  await using accounts = await startTestAccounts();
  const user = await accounts.signUp("a@example.com");
  const admin = await accounts.signInAdmin("admin@example.com");
  const adminSession = (await accounts.identityOf(admin.accessToken)).sessionId ?? "";
  accounts.clock.now = Math.floor(accounts.clock.now / 1000) * 1000 + 700;
  const tokens = await accounts.service.sessions.impersonate({
    userId: user.userId ?? "",
    adminId: admin.adminId ?? "",
    adminSession,
    lifetimeMs: 2_000,
    userAgent: null,
  });
  assert.equal(tokens?.expiresIn, 2);
  accounts.clock.now += 1_250;
  const refreshed = await refresh(accounts, tokens.refreshToken);
  assert.equal(refreshed.body.expiresIn, 1);
  accounts.clock.now += 50;
  assert.equal(codeOf(await refresh(accounts, refreshed.body.refreshToken)), "401 session_expired");
});

Deno.test("expired rows are deleted: codes immediately, sessions once the reason is no longer needed", async () => {
  await using accounts = await startTestAccounts();
  await accounts.signUp("a@example.com");
  const kept = await accounts.signUp("b@example.com");
  await accounts.mailTo("b@example.com");
  const counts = () =>
    ["_codes", "_sessions", "_refresh_tokens"].map((table) => accounts.port.rows(table).length);
  assert.deepEqual(counts(), [2, 2, 2]);
  accounts.clock.now += 25 * 3_600_000;
  await accounts.service.sweep();
  assert.deepEqual(counts(), [0, 2, 2]);
  await refresh(accounts, kept.refreshToken);
  accounts.clock.now += 59 * DAY_MS;
  await accounts.service.sweep();
  assert.deepEqual(counts(), [0, 1, 1]);
});
