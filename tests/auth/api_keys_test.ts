/** Creation, scope and end of API keys. */
import assert from "node:assert/strict";
import { ApiKeyVerifier } from "../../mod/auth/api_keys/api_keys.ts";
import { AttemptLimits } from "../../mod/auth/attempt_limits.ts";
import type { CommitEntry } from "../../mod/engine/types.ts";
import { authLimits } from "../../mod/auth/limits.ts";
import type { SystemCalls } from "../../mod/auth/system_calls.ts";
import { isCovered, refuseKey } from "../../mod/functions/key_scope.ts";
import { createFunctions, defineTable, id } from "../../mod/functions/api/mod.ts";
import { functionPath, type FunctionReference } from "../../mod/protocol/function_reference.ts";
import { password, startTestAccounts, type TestAccounts } from "./support/test_accounts.ts";
import { codeOf, enrolledUser, verifiedUser } from "./support/test_factors.ts";

interface Created {
  readonly keyId: string;
  readonly key: string;
}

const create = async (accounts: TestAccounts, token: string, args: object) =>
  await accounts.call("_admin/apiKeys:create", { name: "ci", functions: ["*"], ...args }, token) as Created;

const createOwn = async (accounts: TestAccounts, token: string | null, args: object = {}) =>
  await accounts.call(
    "_auth:createApiKey",
    { name: "mine", functions: ["tasks:*"], password, ...args },
    token,
  ) as Created;

const errorOf = async (accounts: TestAccounts, key: string) => {
  const verified = await accounts.service.authenticator.verify(key);
  return verified.ok ? null : verified.error;
};

Deno.test("AK1 a key is shown once, stored as a hash, and recognized by its first characters", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken, adminId } = await accounts.signInAdmin("root@example.com");
  const { key, keyId } = await create(accounts, accessToken, { name: " ci ", kinds: ["query"] });
  assert.match(key, /^syncline_key_[\w-]{43}$/);
  assert.ok(!JSON.stringify(accounts.port.rows("_api_keys")).includes(key));
  const [{ createdAt = 0, ...listed } = {}] = await accounts.call("_admin/apiKeys:list", {}, accessToken) as {
    createdAt?: number;
  }[];
  assert.equal(Math.floor(createdAt), accounts.clock.now);
  assert.deepEqual(listed, {
    keyId,
    userId: null,
    name: "ci",
    kinds: ["query"],
    functions: ["*"],
    expiresAt: null,
    deploy: false,
    shown: key.slice(0, 19),
    createdBy: adminId,
    lastUsedAt: null,
  });
  assert.deepEqual(await accounts.identityOf(key), {
    principal: `key:${keyId}`,
    userId: null,
    adminId: null,
    sessionId: keyId,
    key: { name: "ci", kinds: ["query"], functions: ["*"] },
  });
  for (const wrong of [`${key}x`, key.slice(0, -1), "syncline_key_"]) {
    assert.equal(await errorOf(accounts, wrong), "malformed access token");
  }
  const other = `${key.slice(0, -1)}${key.endsWith("A") ? "B" : "A"}`;
  assert.equal(await errorOf(accounts, other), "session has ended");
});

Deno.test("AK1 the use of a key is recorded, at most once a minute", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await accounts.signInAdmin("root@example.com");
  const { key } = await create(accounts, accessToken, {});
  const used = () => accounts.port.rows("_api_keys")[0]?.["lastUsedAt"];
  const first = accounts.clock.now;
  await accounts.identityOf(key);
  accounts.clock.now += authLimits.keyUseNotedMs - 1;
  await accounts.identityOf(key);
  await accounts.call("_admin/apiKeys:list", {}, accessToken);
  assert.equal(used(), first);
  accounts.clock.now += 1;
  await accounts.identityOf(key);
  await accounts.call("_admin/apiKeys:list", {}, accessToken);
  assert.equal(used(), accounts.clock.now);
});

const { query } = createFunctions({ tables: {} });
const app = {
  tables: {},
  functions: {
    "tasks:who": query({
      args: {},
      handler: (
        ctx,
      ) => [ctx.auth.userId(), ctx.auth.sessionId(), ctx.auth.keyId(), ctx.auth.identity() !== null],
    }),
    "tasks:pay": query({
      args: {},
      handler: async (ctx) => await ctx.auth.requireFactor(),
    }),
  },
};

Deno.test("AK2 functions distinguish a key from a session, and a key proves no factor", async () => {
  await using accounts = await startTestAccounts({ app });
  const user = await enrolledUser(accounts);
  const { accessToken } = await accounts.signInAdmin("root@example.com");
  const service = await create(accounts, accessToken, {});
  const acting = await create(accounts, accessToken, { userId: user.owner });
  const who = (token: string) => accounts.call("tasks:who", {}, token);
  const { sessionId } = await accounts.identityOf(user.accessToken);
  assert.deepEqual(await who(user.accessToken), [user.owner, sessionId, null, true]);
  assert.deepEqual(await who(acting.key), [user.owner, null, acting.keyId, true]);
  assert.deepEqual(await who(service.key), [null, null, service.keyId, true]);
  await assert.rejects(accounts.call("tasks:pay", {}, acting.key), { message: "factor_required" });
});

Deno.test("AK3 a key calls the functions and kinds of its scope, none of the service", () => {
  const scope = (functions: string[], kinds = ["query", "mutation", "action", "route"]) => ({
    principal: "key:k",
    userId: null,
    adminId: null,
    sessionId: "k",
    key: { name: "ci", functions, kinds: kinds as ["query"] },
  });
  const permits = (functions: string[], path: string, kind: "query" | "mutation" | "route" = "query") =>
    refuseKey(scope(functions), kind, path) === null;
  for (
    const [pattern, path, permitted] of [
      ["tasks:list", "tasks:list", true],
      ["tasks:list", "tasks:lists", false],
      ["tasks:*", "tasks:list", true],
      ["tasks:*", "tasks2:list", false],
      ["tasks:*", "other/tasks:list", false],
      ["*", "tasks:list", true],
      ["*", "_auth:account", false],
      ["*", "_admin/users:list", false],
      ["*", "_system/auth:sweep", false],
      ["*", "_ctx/auth:requireFactor", false],
      ["POST /hook", "POST /hook", true],
      ["POST /hook", "GET /hook", false],
      ["POST /hooks/*", "POST /hooks/a/b", true],
      ["", "tasks:list", false],
    ] as const
  ) {
    assert.equal(permits([pattern], path), permitted, `${pattern} ${path}`);
  }
  assert.equal(refuseKey(scope(["*"], ["query"]), "mutation", "tasks:list")?.ok, false);
  assert.equal(refuseKey({ ...scope([]), key: undefined as never }, "query", "_auth:account"), null);
});

Deno.test("AK4 a key ends with its expiry, its revocation and its user", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await accounts.signInAdmin("root@example.com");
  const ended: unknown[] = [];
  accounts.service.authenticator.onSessionEnd((end) => ended.push(end));
  const expiring = await create(accounts, accessToken, { expiresAt: accounts.clock.now + 1_000 });
  const verified = await accounts.service.authenticator.verify(expiring.key);
  assert.ok(verified.ok && verified.expiresAt === accounts.clock.now + 1_000);
  accounts.clock.now += 1_000;
  assert.equal(await errorOf(accounts, expiring.key), "access token expired");
  const past = create(accounts, accessToken, { expiresAt: accounts.clock.now });
  await assert.rejects(past, { message: "invalid_expiry" });

  const { key, keyId } = await create(accounts, accessToken, {});
  const identity = await accounts.identityOf(key);
  assert.equal(await accounts.service.authenticator.isLive(identity), true);
  await accounts.call("_admin/apiKeys:revoke", { keyId }, accessToken);
  assert.deepEqual(ended, [{ sessionId: keyId }]);
  assert.equal(await errorOf(accounts, key), "session has ended");
  assert.equal(await accounts.service.authenticator.isLive(identity), false);
  const again = accounts.call("_admin/apiKeys:revoke", { keyId }, accessToken);
  await assert.rejects(again, { message: "key_not_found" });

  for (const way of ["removed", "row deleted", "taken over"]) {
    const { userId = "" } = await accounts.signUp(`${way.replace(" ", "-")}@example.com`);
    const acting = await create(accounts, accessToken, { userId });
    await accounts.identityOf(acting.key);
    if (way === "removed") await accounts.call("_admin/users:remove", { userId }, accessToken);
    else if (way === "row deleted") await accounts.port.deleteRow(userId);
    else {
      const address = `${way.replace(" ", "-")}@example.com`;
      await accounts.post("/magic/request", { email: address });
      await accounts.post("/magic/verify", { token: (await accounts.mailTo(address))?.token });
    }
    assert.equal(await errorOf(accounts, acting.key), "session has ended", way);
    assert.equal(
      accounts.port.rows("_api_keys").filter(({ user }) => user === userId).length,
      way === "row deleted" ? 1 : 0,
    );
  }
  const unknown = create(accounts, accessToken, { userId: "nobody" });
  await assert.rejects(unknown, { message: "user_not_found" });
});

Deno.test("AK4 the keys of a user end before the user's documents are deleted", async () => {
  const tables = {
    notes: defineTable({ by: id("_users") }).index("by_user", ["by"]).deleteWithUser("by_user"),
  };
  const { mutation } = createFunctions({ tables });
  const add = mutation({
    args: { by: id("_users") },
    handler: async (ctx, { by }) => {
      for (let i = 0; i <= authLimits.cascadeRowsMax; i++) await ctx.db.insert("notes", { by });
    },
  });
  await using accounts = await startTestAccounts({ app: { tables, functions: { "notes:add": add } } });
  const { accessToken } = await accounts.signInAdmin("root@example.com");
  const { userId = "" } = await accounts.signUp("a@example.com");
  await accounts.call("notes:add", { by: userId }, null);
  const { keyId } = await create(accounts, accessToken, { userId });
  const usersThen: number[] = [];
  accounts.service.authenticator.onSessionEnd((ended) => {
    if ("sessionId" in ended && ended.sessionId === keyId) {
      usersThen.push(accounts.port.rows("_users").length);
    }
  });
  await accounts.call("_admin/users:remove", { userId }, accessToken);
  assert.deepEqual(usersThen, [1]);
  assert.equal(accounts.port.rows("_users").length, 0);
});

Deno.test("AK4 keys that ended while commits were missed are reported", async () => {
  const row = { keyId: "k", userId: null, name: "ci", kinds: ["query"], functions: ["*"], expiresAt: null };
  let exists = true;
  const calls = {
    query: (reference: FunctionReference) =>
      Promise.resolve(!exists ? null : functionPath(reference).endsWith(":findApiKeyId") ? "k" : row),
    mutate: () => Promise.resolve(null),
  } as unknown as SystemCalls;
  const verifier = new ApiKeyVerifier({
    calls,
    secret: new Uint8Array(32),
    limits: new AttemptLimits(() => 0),
    now: () => 0,
    log: () => {},
    readOnly: true,
  });
  const key = `syncline_key_${"a".repeat(43)}`;
  assert.ok((await verifier.verify(key, "a")).ok);
  assert.deepEqual(await verifier.recheck(), []);
  exists = false;
  assert.ok((await verifier.verify(key, "a")).ok, "cached");
  assert.deepEqual(await verifier.recheck(), ["k"]);
  assert.deepEqual(await verifier.recheck(), [], "reported once");
  assert.deepEqual(await verifier.verify(key, "a"), { ok: false, error: "session has ended" });
  exists = true;
  assert.ok((await verifier.verify(key, "a")).ok);
  // The record of a use.
  const changes = [{ table: "_api_keys", id: "k", doc: { ...row, lastUsedAt: 0 } }];
  assert.deepEqual(verifier.applyCommits([{ changes }] as unknown as CommitEntry[]), []);
  exists = false;
  assert.deepEqual(await verifier.recheck(), ["k"]);
});

Deno.test("AK5 users create keys for functions that the operator allows, and see and revoke their own", async () => {
  await using accounts = await startTestAccounts({ userKeys: ["tasks:*", "notes:read"] });
  const { accessToken, userId } = await verifiedUser(accounts);
  const { key, keyId } = await createOwn(accounts, accessToken);
  assert.equal((await accounts.identityOf(key)).userId, userId);
  await createOwn(accounts, accessToken, { functions: ["notes:read", "tasks:li*"] });
  for (const functions of [["*"], ["tasks*"], ["notes:*"], ["notes:write"], ["tasks:list", "other:list"]]) {
    await assert.rejects(
      createOwn(accounts, accessToken, { functions }),
      { message: "key_scope" },
      functions.join(),
    );
  }
  const other = await verifiedUser(accounts, "b@example.com");
  assert.deepEqual(await accounts.call("_auth:listApiKeys", {}, other.accessToken), []);
  assert.equal(await accounts.call("_auth:listApiKeys", {}, null), null);
  const foreign = accounts.call("_auth:revokeApiKey", { keyId }, other.accessToken);
  await assert.rejects(foreign, { message: "key_not_found" });
  assert.equal((await accounts.call("_auth:listApiKeys", {}, accessToken) as unknown[]).length, 2);
  await accounts.call("_auth:revokeApiKey", { keyId }, accessToken);
  assert.equal(await errorOf(accounts, key), "session has ended");
  await using closed = await startTestAccounts();
  const user = await verifiedUser(closed);
  await assert.rejects(createOwn(closed, user.accessToken), { message: "keys_disabled" });
});

Deno.test("AK5 a user confirms the password or a factor to create a key, and a key creates none", async () => {
  await using accounts = await startTestAccounts({ userKeys: ["*"] });
  const unverified = await accounts.signUp("new@example.com");
  await assert.rejects(createOwn(accounts, unverified.accessToken), { message: "email_not_verified" });
  const { accessToken } = await verifiedUser(accounts);
  await assert.rejects(createOwn(accounts, accessToken, { password: "wrong horse" }), {
    message: "invalid_credentials",
  });
  const { key } = await createOwn(accounts, accessToken, { functions: ["*"] });
  await assert.rejects(createOwn(accounts, key), { message: "no_session" });
  await assert.rejects(createOwn(accounts, null), { message: "not_signed_in" });
  const admin = await accounts.signInAdmin("root@example.com");
  await assert.rejects(createOwn(accounts, admin.accessToken), { message: "not_signed_in" });
  const secured = await enrolledUser(accounts, "c@example.com");
  accounts.clock.now += 10 * 60_000;
  await assert.rejects(createOwn(accounts, secured.accessToken), { message: "factor_required" });
  const code = codeOf(secured.secret, accounts.clock.now);
  await accounts.call("_auth:proveFactor", { code }, secured.accessToken);
  await createOwn(accounts, secured.accessToken, { password: undefined });
});

Deno.test("AK6 look-ups of unknown and revoked keys are limited by client, and keys in use are not", async () => {
  const row = { keyId: "k", userId: null, name: "ci", kinds: ["query"], functions: ["*"], expiresAt: null };
  let lookUps = 0;
  let exists = true;
  const verifier = new ApiKeyVerifier({
    calls: {
      query(reference: FunctionReference) {
        lookUps++;
        return Promise.resolve(
          !exists ? null : functionPath(reference).endsWith(":findApiKeyId") ? "k" : row,
        );
      },
    } as unknown as SystemCalls,
    secret: new Uint8Array(32),
    limits: new AttemptLimits(() => 0),
    now: () => 0,
    log: () => {},
    readOnly: true,
  });
  const keyOf = (char: string | number) => `syncline_key_${String(char).padStart(43, "a")}`;
  assert.ok((await verifier.verify(keyOf("k"), "a")).ok);
  exists = false;
  const answers: string[] = [];
  for (let i = 0; i < 100; i++) {
    const verified = await verifier.verify(keyOf(i), "a").catch(({ code }) => ({ ok: false, error: code }));
    answers.push(verified.ok ? "ok" : verified.error);
  }
  assert.deepEqual([answers.filter((answer) => answer === "rate_limited").length, lookUps], [40, 62]);
  assert.ok((await verifier.verify(keyOf("k"), "a")).ok, "it is cached");
  assert.deepEqual(await verifier.verify(keyOf(1), "b"), { ok: false, error: "session has ended" });
  // Its id is still known when it is revoked.
  const changes = [{ table: "_api_keys", id: "k", doc: null }];
  verifier.applyCommits([{ changes }] as unknown as CommitEntry[]);
  await assert.rejects(verifier.verify(keyOf("k"), "a"), { code: "rate_limited" });
});

Deno.test("AK5 patterns of users are compared with those allowed", () => {
  for (
    const [pattern, by, covered] of [
      ["tasks:list", ["tasks:*"], true],
      ["tasks:*", ["tasks:*"], true],
      ["tasks:*", ["tasks:list"], false],
      ["tasks*", ["tasks:*"], false],
      ["*", ["*"], true],
      ["*", ["a*", "b*"], false],
      ["a", [], false],
    ] as const
  ) {
    assert.equal(isCovered(pattern, by), covered, `${pattern} ${by}`);
  }
});

Deno.test("AK5 administrators see the keys of services, however many keys users have", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await accounts.signInAdmin("root@example.com");
  const service = await create(accounts, accessToken, {});
  let newest = "";
  for (let left = authLimits.keysShownMax, user = ""; left > 0; left--) {
    if (left % authLimits.keysPerOwnerMax === 0) {
      ({ userId: user = "" } = await accounts.signUp(`user-${left}@example.com`));
    }
    newest = (await create(accounts, accessToken, { userId: user })).keyId;
  }
  const keys = await accounts.call("_admin/apiKeys:list", {}, accessToken) as { keyId: string }[];
  assert.equal(keys.length, authLimits.keysShownMax + 1);
  assert.deepEqual([keys[0]?.keyId, keys.at(-1)?.keyId], [newest, service.keyId]);
});

Deno.test("AK1 names, patterns and numbers of keys are bounded", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await accounts.signInAdmin("root@example.com");
  for (
    const args of [
      { name: "" },
      { name: "x".repeat(61) },
      { name: "a\u001b[2J" },
      { expiresAt: 8.64e15 + 1 },
      { functions: [] },
      { functions: ["_auth:*"] },
      { functions: ["a*b"] },
      { functions: ["a\nb"] },
      { functions: ["x".repeat(201)] },
      { functions: Array(51).fill("a") },
      { kinds: [] },
      { kinds: ["admin"] },
      { hash: "h" },
      { deploy: true },
    ]
  ) {
    await assert.rejects(
      create(accounts, accessToken, args),
      /^Error: args/,
      JSON.stringify(args).slice(0, 60),
    );
  }
  for (let i = 0; i < authLimits.keysPerOwnerMax; i++) await create(accounts, accessToken, {});
  await assert.rejects(create(accounts, accessToken, {}), { message: "too_many_keys" });
});

Deno.test("DK2 a deploy key deploys until it expires, and no other key deploys or calls instead of it", async () => {
  await using accounts = await startTestAccounts();
  const { accessToken } = await accounts.signInAdmin("root@example.com");
  const { apiKeys } = accounts.service.authenticator;
  const expiresAt = accounts.clock.now + 1_000;
  const args = { name: "ci", deploy: true, expiresAt };
  const { key, keyId } = await accounts.call("_admin/apiKeys:create", args, accessToken) as Created;
  assert.match(key, /^syncline_deploy_[\w-]{43}$/);
  assert.deepEqual(await apiKeys.verifyDeployKey(key, "a"), { keyId, name: "ci" });
  assert.notEqual(await errorOf(accounts, key), null);
  const secret = key.slice("syncline_deploy_".length);
  assert.equal(await errorOf(accounts, `syncline_key_${secret}`), "session has ended");
  const other = await create(accounts, accessToken, {});
  assert.equal(await apiKeys.verifyDeployKey(other.key, "a"), null);
  assert.deepEqual([await apiKeys.mayDeploy(keyId), await apiKeys.mayDeploy(other.keyId)], [true, false]);
  accounts.clock.now = expiresAt;
  assert.deepEqual([await apiKeys.verifyDeployKey(key, "a"), await apiKeys.mayDeploy(keyId)], [null, false]);
});

Deno.test("DK3 the check before a swap reads the stored row, not the cached one", async () => {
  const row = {
    keyId: "k",
    userId: null,
    name: "ci",
    kinds: [],
    functions: [],
    expiresAt: null,
    deploy: true,
  };
  let exists = true;
  const verifier = new ApiKeyVerifier({
    calls: {
      query: (reference: FunctionReference) =>
        Promise.resolve(!exists ? null : functionPath(reference).endsWith(":findApiKeyId") ? "k" : row),
    } as unknown as SystemCalls,
    secret: new Uint8Array(32),
    limits: new AttemptLimits(() => 0),
    now: () => 0,
    log: () => {},
    readOnly: true,
  });
  const key = `syncline_deploy_${"a".repeat(43)}`;
  assert.ok(await verifier.verifyDeployKey(key, "a"));
  exists = false;
  assert.ok(await verifier.verifyDeployKey(key, "a"), "cached");
  assert.equal(await verifier.mayDeploy("k"), false);
});
