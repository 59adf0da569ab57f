import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { ApiKeyVerifier } from "../../mod/auth/api_keys/api_keys.ts";
import { AttemptLimits } from "../../mod/auth/attempt_limits.ts";
import { AccessTokens } from "../../mod/auth/tokens/access_token.ts";
import { AccountAuthenticator, type EndedSession } from "../../mod/auth/authenticator.ts";
import { SystemCalls } from "../../mod/auth/system_calls.ts";
import { deriveKeys } from "../../mod/auth/secret_key.ts";
import { ExternalTokens } from "../../mod/auth/issuers/mod.ts";
import type { CommitEntry } from "../../mod/engine/types.ts";
import { startTestAccounts } from "./support/test_accounts.ts";

const ended = { ok: false, error: "session has ended" };

Deno.test("AR1 a token's identity names its user, session and principal, and ends when the token does", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken, userId } = await accounts.signUp("a@example.com");
  const [session] = accounts.port.rows("_sessions");
  assert.deepEqual(await accounts.service.authenticator.verify(accessToken), {
    ok: true,
    identity: { principal: `user:${userId}`, userId, adminId: null, sessionId: session?.["_id"] },
    expiresAt: accounts.clock.now + 900_000,
  });
  accounts.clock.now += 900_000;
  assert.deepEqual(await accounts.service.authenticator.verify(accessToken), {
    ok: false,
    error: "access token expired",
  });
});

Deno.test("RT8 AR2 deleting a session's row by any means ends the session in the tick of the commit", async () => {
  await using accounts = await startTestAccounts();
  const ends: EndedSession[] = [];
  accounts.service.authenticator.onSessionEnd((end) => ends.push(end));
  const { accessToken, refreshToken } = await accounts.signUp("a@example.com");
  const { sessionId } = await accounts.identityOf(accessToken);
  await accounts.port.deleteRow(sessionId ?? "");
  assert.deepEqual(ends, [{ sessionId }]);
  assert.deepEqual(await accounts.service.authenticator.verify(accessToken), ended);
  assert.equal(
    (await accounts.post("/refresh", { refreshToken })).body.errorData.code,
    "invalid_refresh_token",
  );
});

Deno.test("AR5 a deleted user's sessions end, by the function and when the document is deleted", async () => {
  for (const byHand of [true, false]) {
    await using accounts = await startTestAccounts();
    const ends: EndedSession[] = [];
    accounts.service.authenticator.onSessionEnd((end) => ends.push(end));
    const { accessToken, refreshToken, userId = "" } = await accounts.signUp("a@example.com");
    const other = await accounts.signUp("b@example.com");
    if (byHand) await accounts.port.deleteRow(userId);
    else {
      await accounts.port.mutate({
        udfPath: "_system/auth:deleteUser",
        args: { userId },
        identity: { principal: null, userId: null, adminId: null, sessionId: null },
        origin: "system",
      });
      assert.deepEqual(accounts.port.rows("_passwords").length, 1);
    }
    assert.ok(ends.some((end) => "principal" in end && end.principal === `user:${userId}`));
    assert.deepEqual(await accounts.service.authenticator.verify(accessToken), ended);
    assert.equal(
      (await accounts.post("/refresh", { refreshToken })).body.errorData.code,
      "invalid_refresh_token",
    );
    assert.equal((await accounts.service.authenticator.verify(other.accessToken)).ok, true);
  }
});

Deno.test("AR4 a refresh ends no session", async () => {
  await using accounts = await startTestAccounts();
  const ends: EndedSession[] = [];
  accounts.service.authenticator.onSessionEnd((end) => ends.push(end));
  const { accessToken, refreshToken } = await accounts.signUp("a@example.com");
  await accounts.post("/refresh", { refreshToken });
  assert.deepEqual(ends, []);
  assert.equal((await accounts.service.authenticator.verify(accessToken)).ok, true);
});

Deno.test("AR1 the claims of a token must match its session", async () => {
  const secret = randomBytes(32);
  await using accounts = await startTestAccounts({ secret });
  const { userId = "" } = await accounts.signUp("a@example.com");
  const other = await accounts.signUp("b@example.com");
  const { sessionId } = await accounts.identityOf(other.accessToken);
  const tokens = new AccessTokens(deriveKeys(secret).accessTokens);
  const iat = accounts.clock.now / 1000;
  for (
    const claims of [
      { sub: userId, sid: sessionId ?? "" },
      { sub: other.userId ?? "", sid: sessionId ?? "", adm: true as const },
      { sub: other.userId ?? "", sid: "nonsense" },
      { sub: other.userId ?? "", sid: other.userId ?? "" },
    ]
  ) {
    const token = await tokens.sign({ ...claims, iat, exp: iat + 60 });
    assert.deepEqual(await accounts.service.authenticator.verify(token), ended);
  }
});

Deno.test("AT5 a token of another algorithm belongs to an issuer, which is unknown unless configured", async () => {
  await using accounts = await startTestAccounts();
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const token = `${part({ alg: "RS256", typ: "JWT" })}.${part({ iss: "https://issuer.example.com" })}.c2ln`;
  assert.deepEqual(await accounts.service.authenticator.verify(token), {
    ok: false,
    error: "unknown token issuer",
  });
});

Deno.test("another secret key signs out all users and keeps all accounts", async () => {
  await using accounts = await startTestAccounts();
  await using after = await startTestAccounts();
  const { accessToken, refreshToken } = await accounts.signUp("a@example.com");
  assert.deepEqual(await after.service.authenticator.verify(accessToken), {
    ok: false,
    error: "invalid access token signature",
  });
  assert.equal((await after.post("/refresh", { refreshToken })).status, 401);
});

/** An authenticator whose lookups the test answers. */
async function byHand({ caughtUp }: { readonly caughtUp?: () => Promise<void> } = {}) {
  const asked: PromiseWithResolvers<unknown>[] = [];
  const calls = new SystemCalls({
    query: async () => {
      const answer = Promise.withResolvers<unknown>();
      asked.push(answer);
      return { ok: true, value: JSON.stringify(await answer.promise), logLines: [] };
    },
    mutate: () => Promise.reject(new Error("not expected")),
  });
  const accessTokens = new AccessTokens(crypto.getRandomValues(new Uint8Array(32)));
  const authenticator = new AccountAuthenticator({
    accessTokens,
    external: new ExternalTokens({ issuers: () => new Map(), calls, now: () => 0 }),
    apiKeys: new ApiKeyVerifier({
      calls,
      secret: new Uint8Array(32),
      limits: new AttemptLimits(() => 0),
      now: () => 0,
      log: () => {},
      readOnly: true,
    }),
    calls,
    caughtUp,
    now: () => 0,
  });
  const token = await accessTokens.sign({ sub: "u1", sid: "s1", iat: 0, exp: 900 });
  // The token is cached now: the tests count ticks.
  await accessTokens.verify(token, 0);
  return { asked, authenticator, token };
}

const session = { sessionId: "s1", userId: "u1", adminId: null, expiresAt: 1e12 };

const commit = (table: string, id: string, doc: string | null): CommitEntry[] => [
  { ts: 1, at: 0, changes: [{ table, tableNumber: 1, id, doc, keys: [] }] },
];

const turn = () => new Promise((resolve) => setTimeout(resolve));

Deno.test("a session that ends during its lookup is refused", async () => {
  for (const [table, id] of [["_sessions", "s1"], ["_users", "u1"]] as const) {
    const { asked, authenticator, token } = await byHand();
    const verified = authenticator.verify(token);
    await turn();
    authenticator.applyCommits(commit(table, id, null));
    asked[0]?.resolve(session);
    await turn();
    assert.equal(asked.length, 2);
    asked[1]?.resolve(null);
    assert.deepEqual(await verified, ended);
  }
});

Deno.test("[PG15] an unknown session is looked up again once, after the commits of other servers; an ended one is refused", async () => {
  for (const begun of [true, false]) {
    const { promise: shown, resolve: show } = Promise.withResolvers<void>();
    let waits = 0;
    const caughtUp = () => {
      waits++;
      return shown;
    };
    const { asked, authenticator, token } = await byHand({ caughtUp });
    const verified = authenticator.verify(token);
    await turn();
    asked[0]?.resolve(null);
    await turn();
    assert.deepEqual([asked.length, waits], [1, 1]);
    show();
    await turn();
    assert.equal(asked.length, 2);
    asked[1]?.resolve(begun ? session : null);
    if (begun) assert.equal((await verified).ok, true);
    else assert.deepEqual(await verified, ended);
    assert.equal(waits, 1);
  }
});

Deno.test("concurrent requests share one lookup of a session, which is cached until its row changes", async () => {
  const { asked, authenticator, token } = await byHand();
  const verified = Promise.all(Array.from({ length: 100 }, () => authenticator.verify(token)));
  await turn();
  assert.equal(asked.length, 1);
  asked[0]?.resolve(session);
  assert.ok((await verified).every(({ ok }) => ok));
  assert.equal((await authenticator.verify(token)).ok, true);
  assert.equal(asked.length, 1);
  authenticator.applyCommits(commit("_sessions", "s1", JSON.stringify({})));
  const again = authenticator.verify(token);
  await turn();
  asked[1]?.resolve(session);
  assert.equal((await again).ok, true);
});

Deno.test("after commits may have been missed, ended sessions are reported", async () => {
  const { asked, authenticator, token } = await byHand();
  const ends: EndedSession[] = [];
  authenticator.onSessionEnd((end) => ends.push(end));
  const verified = authenticator.verify(token);
  await turn();
  asked[0]?.resolve(session);
  await verified;
  for (const [i, answer] of [session, null].entries()) {
    const rechecked = authenticator.recheck();
    await turn();
    asked[i + 1]?.resolve(answer);
    await rechecked;
    assert.deepEqual(ends, answer === null ? [{ sessionId: "s1" }] : []);
  }
});
