/**
 * Every function of the own account and every endpoint below `/api/auth`, called by each kind of caller. Then the tables of accounts
 * that they write are compared in exports, a replica and a backup.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ownAccountFunctions } from "../../../mod/auth/isolate_functions/mod.ts";
import { tables } from "../../../mod/auth/tables.ts";
import { openExport } from "../../../mod/engine/mod.ts";
import { createBackup } from "../../../mod/ops/backups/backup.ts";
import { stageRestore } from "../../../mod/ops/backups/restore/mod.ts";
import { watchFeatures } from "../../ops/admin/support/registry.ts";
import { replicationTo, shipped } from "../../ops/replication/replicating.ts";
import { testConfig } from "../../server/support/fake_backend.ts";
import { TempFolder } from "../../support/temp_folder.ts";
import { TestAuthenticator } from "../support/test_authenticator.ts";
import { codeOf, STEP_MS } from "../support/test_factors.ts";
import { bearerOf, startTestServer } from "./test_server.ts";

const email = "user@example.com";
const password = "correct horse";
const wrong = "wrong horse";
const page = "http://localhost/";

/** Well-formed answers of an authenticator to no challenge. */
const answer = { clientDataJSON: "a", attestationObject: "a", authenticatorData: "a", signature: "a" };
const response = { id: "a", rawId: "a", type: "public-key", response: answer };

type Kind = "query" | "mutation" | "action";

/**
 * Functions below `_auth:` with their results for a guest, a user and an administrator: `ok` or the code of the error. The credentials
 * and ids are wrong, so that the account stays as it is.
 */
const functions: readonly (readonly [
  kind: Kind,
  name: string,
  args: object,
  guest: string,
  user: string,
  administrator: string,
])[] = [
  ["query", "account", {}, "ok", "ok", "ok"],
  ["query", "listApiKeys", {}, "ok", "ok", "ok"],
  ["query", "listFactors", {}, "ok", "ok", "ok"],
  ["query", "listIdentities", {}, "not_signed_in", "ok", "not_signed_in"],
  ["query", "listPasskeys", {}, "ok", "ok", "ok"],
  ["query", "listSessions", {}, "not_signed_in", "ok", "ok"],
  [
    "mutation",
    "renamePasskey",
    { passkeyId: "none", name: "x" },
    "not_signed_in",
    "passkey_not_found",
    "not_signed_in",
  ],
  ["mutation", "revokeApiKey", { keyId: "none" }, "not_signed_in", "key_not_found", "not_signed_in"],
  ["mutation", "setName", { name: "Ann" }, "not_signed_in", "ok", "not_signed_in"],
  ["mutation", "signOutEverywhere", { keepCurrent: true }, "not_signed_in", "ok", "ok"],
  [
    "mutation",
    "signOutSession",
    { sessionId: "none" },
    "not_signed_in",
    "session_not_found",
    "session_not_found",
  ],
  ["action", "addPasskey", { response }, "invalid_challenge", "invalid_challenge", "not_signed_in"],
  [
    "action",
    "changeEmail",
    { email: "b@example.com", password: wrong },
    "mail_disabled",
    "mail_disabled",
    "mail_disabled",
  ],
  [
    "action",
    "changePassword",
    { currentPassword: wrong, newPassword: password },
    "not_signed_in",
    "invalid_credentials",
    "not_signed_in",
  ],
  [
    "action",
    "confirmTotp",
    { enrolmentId: "none", code: "000000" },
    "not_signed_in",
    "invalid_enrolment",
    "not_signed_in",
  ],
  [
    "action",
    "createApiKey",
    { name: "x", functions: ["tasks:list"], password: wrong },
    "not_signed_in",
    "invalid_credentials",
    "not_signed_in",
  ],
  ["action", "linkIdentity", { token: "none" }, "not_signed_in", "invalid_link", "not_signed_in"],
  ["action", "proveFactor", { code: "000000" }, "not_signed_in", "factor_required", "not_signed_in"],
  ["action", "provePasskey", { response }, "invalid_challenge", "invalid_challenge", "not_signed_in"],
  [
    "action",
    "removePasskey",
    { passkeyId: "none" },
    "not_signed_in",
    "passkey_not_found",
    "not_signed_in",
  ],
  ["action", "removeTotp", {}, "not_signed_in", "factor_required", "not_signed_in"],
  ["action", "renewRecoveryCodes", {}, "not_signed_in", "factor_required", "not_signed_in"],
  ["action", "startLink", { provider: "none", redirectTo: page }, "not_found", "not_found", "not_found"],
  ["action", "startPasskey", { password: wrong }, "not_signed_in", "invalid_credentials", "not_signed_in"],
  ["action", "startPasskeyProof", {}, "not_signed_in", "ok", "not_signed_in"],
  ["action", "startPasskeySignIn", {}, "ok", "ok", "ok"],
  ["action", "startTotp", { password: wrong }, "not_signed_in", "invalid_credentials", "not_signed_in"],
  [
    "action",
    "unlinkIdentity",
    { identityId: "none" },
    "not_signed_in",
    "identity_not_found",
    "not_signed_in",
  ],
];

/** Endpoints below `/api/auth`: no caller gets another response than a guest. Those of providers have tests of their own. */
const endpoints: readonly (readonly [method: "GET" | "POST", path: string, body: object, result: string])[] =
  [
    ["GET", "/providers", {}, "ok"],
    ["POST", "/anonymous", {}, "ok"],
    ["POST", "/signup", { email, password }, "email_in_use"],
    ["POST", "/signin", { email, password: wrong }, "invalid_credentials"],
    ["POST", "/refresh", { refreshToken: "none" }, "invalid_refresh_token"],
    ["POST", "/verify-email/request", { email: "b@example.com" }, "ok"],
    ["POST", "/verify-email/confirm", { token: "none" }, "invalid_code"],
    ["POST", "/reset/request", { email: "c@example.com" }, "ok"],
    ["POST", "/reset/confirm", { token: "none", password }, "invalid_code"],
    ["POST", "/magic/request", { email: "d@example.com" }, "ok"],
    ["POST", "/magic/verify", { token: "none" }, "invalid_code"],
    ["POST", "/mfa/verify", { challenge: "none", code: "000000" }, "invalid_challenge"],
    ["POST", "/passkey/verify", { response }, "invalid_challenge"],
    ["POST", "/passkey/signup", { response }, "invalid_challenge"],
    ["POST", "/oauth/verify", { token: "none" }, "invalid_code"],
    ["POST", "/admin/signin", { email: "root@example.com", password: wrong }, "invalid_credentials"],
    ["POST", "/admin/passkey/verify", { response }, "invalid_challenge"],
    ["GET", "/admin/setup", {}, "ok"],
    ["POST", "/admin/setup", { token: "none", email, password }, "setup_done"],
  ];

/** Rows of the tables of accounts by id, in a database that no server changes. */
function rowsIn(path: string): ReadonlyMap<string, readonly string[]> {
  using all = openExport(path);
  return new Map(Object.keys(tables).map((name) => [name, [...all.documents(name)]]));
}

Deno.test("AK3 MF4 PK1 functions and endpoints of accounts by caller, and their tables in exports, replicas and backups", async (t) => {
  using registry = watchFeatures();
  await using folder = new TempFolder();
  const { policy } = testConfig({ dataDir: "" }).accounts;
  await using server = await startTestServer({
    functions: {
      "tasks.ts": `import { untypedQuery } from "syncline/server";
        export const list = untypedQuery(() => []);`,
    },
    config: { replication: replicationTo(folder.at("replica")) },
    accounts: { policy: { ...policy, anonymous: true, userKeys: ["tasks:*"] } },
  });
  const administrator = await bearerOf(server);
  const post = async (path: string, body: object, bearer?: string) =>
    (await server.post(path, body, bearer === undefined ? {} : { bearer })).body;
  const act = async (name: string, args: object, bearer?: string) => {
    const { value, ...answer } = await post("/api/action", { path: name, args }, bearer);
    assert.equal(answer.status, "success", `${name}: ${JSON.stringify(answer)}`);
    return value;
  };
  const user = (await post("/api/auth/signup", { email, password })).accessToken;
  const gone = await post("/api/auth/signin", { email, password });
  await post("/api/auth/signout", { refreshToken: gone.refreshToken });
  const { key } = await act("_admin/apiKeys:create", { name: "ci", functions: ["*"] }, administrator);
  const callers = { guest: undefined, user, administrator, key, "ended session": gone.accessToken };

  await t.step("the tables of callers are complete", () => {
    const listed = [
      ...registry.accountActions,
      ...Object.keys(ownAccountFunctions).map((name) => `_auth:${name}`),
    ];
    assert.deepEqual(functions.map(([, name]) => `_auth:${name}`).sort(), listed.sort());
    const routes = registry.accountRoutes.map(({ method, path }) => `${method} ${path}`)
      .filter((route) => !route.includes(":provider") && route !== "POST /api/auth/signout");
    assert.deepEqual(endpoints.map(([method, path]) => `${method} /api/auth${path}`).sort(), routes.sort());
  });

  for (const [kind, name, args, guest, ofUser, ofAdministrator] of functions) {
    await t.step(`AK3 _auth:${name}`, async () => {
      const results = await Promise.all(
        Object.entries(callers).map(async ([who, bearer]) => {
          const answer = await post(`/api/${kind}`, { path: `_auth:${name}`, args }, bearer);
          return [who, answer.status === "success" ? "ok" : answer.errorData.code];
        }),
      );
      assert.deepEqual(Object.fromEntries(results), {
        guest,
        user: ofUser,
        administrator: ofAdministrator,
        key: "key_not_permitted",
        "ended session": "invalid_token",
      });
    });
  }

  for (const [method, path, body, result] of endpoints) {
    await t.step(`${method} ${path}`, async () => {
      for (const [who, bearer] of Object.entries(callers)) {
        const answer = await fetch(`${server.url}/api/auth${path}`, {
          method,
          headers: {
            "Content-Type": "application/json",
            ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
          },
          ...(method === "POST" && { body: JSON.stringify(body) }),
        });
        const { errorData } = await answer.json();
        assert.equal(answer.status === 200 ? "ok" : errorData.code, result, who);
      }
    });
  }

  /** The tables that accounts without providers fill. */
  const filled = Object.keys(tables).filter((name) =>
    !["_identities", "_oauth_flows", "_brought_identities", "_codes"].includes(name)
  );
  await t.step("MF4 PK1 AK1 AN1 every way to sign in stores its rows", async () => {
    const origin = server.url.replace("127.0.0.1", "localhost");
    for (const base of ["_auth", "_admin/administrators"]) {
      const bearer = base === "_auth" ? user : administrator;
      const { enrolmentId, secret } = await act(`${base}:startTotp`, { password }, bearer);
      const code = codeOf(secret, Date.now(), -STEP_MS);
      await act(`${base}:confirmTotp`, { enrolmentId, code }, bearer);
      const { options } = await act(`${base}:startPasskey`, {}, bearer);
      const made = new TestAuthenticator({ origin }).create(options);
      await act(`${base}:addPasskey`, { response: made, name: "Phone" }, bearer);
    }
    await act("_auth:createApiKey", { name: "mine", functions: ["tasks:list"] }, user);
    // Left open: a sign-in that waits for its second step, and an authenticator app for its first code.
    assert.equal((await post("/api/auth/signin", { email, password })).errorData.code, "mfa_required");
    const other = await post("/api/auth/signup", { email: "other@example.com", password });
    await act("_auth:startTotp", { password }, other.accessToken);
  });

  await t.step("AN4 no table of accounts but the users can be exported", async () => {
    for (const name of Object.keys(tables)) {
      const answer = await fetch(`${server.url}/api/admin/export/${name}`, {
        headers: { Authorization: `Bearer ${administrator}` },
      });
      await answer.body?.cancel();
      assert.equal(answer.status, name === "_users" ? 200 : 404, name);
    }
  });

  const database = join(server.dataDir, "data.db");
  const archive = folder.at("one.tar.zst");
  /** Compares the tables after a restart that restores the state of now. */
  const restores = async (stage: () => Promise<void>, between?: () => Promise<void>) => {
    const before = rowsIn(database);
    await stage();
    // Not in the restored state.
    const late = { email: `${crypto.randomUUID()}@example.com`, password };
    assert.equal(typeof (await post("/api/auth/signup", late)).userId, "string");
    await server.restart(between);
    const restored = rowsIn(database);
    for (const name of Object.keys(tables)) assert.deepEqual(restored.get(name), before.get(name), name);
    for (const name of filled) assert.notEqual(before.get(name)?.length, 0, name);
  };

  await t.step("a replica carries every table of accounts", async () => {
    await shipped(server, administrator);
    await restores(async () => {
      const staged = await server.post("/api/admin/restore/point-in-time", {}, { bearer: administrator });
      assert.equal(staged.status, 200, JSON.stringify(staged.body));
    });
  });

  await t.step("a restored backup has every table of accounts", async () => {
    const { dataDir } = server;
    const parts = { withAux: false, withFiles: false, includeSecret: false };
    await restores(
      () => createBackup({ dataDir, out: archive, ...parts }).then(() => {}),
      () => stageRestore({ dataDir, archive, source: "one", withSecret: false }).then(() => {}),
    );
  });
});
