import assert from "node:assert/strict";
import { z } from "zod";
import {
  authEventArgs,
  defineTable,
  id,
  internalMutation,
  mutation,
  UserError,
} from "../../mod/functions/api/mod.ts";
import { createFunctions } from "../../mod/functions/api/mod.ts";
import { assembleApp } from "../../mod/functions/isolate/app/loader.ts";
import { authModules } from "../../mod/auth/isolate_functions/mod.ts";
import { presetParts, readAuthConfig } from "../../mod/auth/mod.ts";
import { signed, signingKey, world } from "./support/stand_in.ts";
import { fragmentOf, startTestSignIns } from "./support/test_sign_ins.ts";
import { startTestAccounts } from "./support/test_accounts.ts";
import type { AppParts } from "./support/in_process_port.ts";

const tables = {
  members: defineTable({
    user: id("_users"),
    by: z.string(),
    from: z.string().nullable(),
    claims: z.string(),
  }),
  visits: defineTable({ user: id("_users"), by: z.string() }),
};
const app = createFunctions({ tables });

/** An app that creates a member for each user, and rejects banned addresses or claims. */
const parts: AppParts = {
  tables,
  functions: {
    "auth:onUserCreated": app.internalMutation({
      args: authEventArgs,
      handler: async (ctx, { user, by, provider, issuer, claims }) => {
        const row = await ctx.db.get(user);
        await ctx.db.insert("members", {
          user,
          by,
          from: provider ?? issuer,
          claims: JSON.stringify(claims["role"] ?? null),
        });
        if (row?.email?.startsWith("banned") || claims["banned"] === true) {
          throw new UserError("not_invited", "Ask for an invitation", { by });
        }
      },
    }),
    "auth:onSignIn": app.internalMutation({
      args: authEventArgs,
      handler: async (ctx, { user, by }) => {
        await ctx.db.insert("visits", { user, by });
        const row = await ctx.db.get(user);
        if (row?.name === "Suspended") throw new UserError("suspended", "This account is suspended");
      },
    }),
  },
};

Deno.test("OH1 OH3 the hook runs in the transaction that creates a user by password, email or administrator, and in that of each sign-in", async () => {
  await using accounts = await startTestAccounts({ app: parts });
  await accounts.signUp("ann@example.com");
  await accounts.post("/signin", { email: "ann@example.com", password: "correct horse" });
  await accounts.post("/magic/request", { email: "bob@example.com" });
  await accounts.post("/magic/verify", { token: (await accounts.mailTo("bob@example.com"))?.token });
  const identity = { principal: null, userId: null, adminId: null, sessionId: null };
  await accounts.port.mutate({
    udfPath: "_system/auth:createUser",
    args: { email: "eve@example.com", emailVerified: false, passwordHash: null },
    identity,
    origin: "system",
  });
  assert.deepEqual(accounts.port.rows("members").map(({ by }) => by), ["password", "mail", "administrator"]);
  assert.deepEqual(accounts.port.rows("visits").map(({ by }) => by), ["password", "password", "mail"]);
  assert.deepEqual(
    accounts.port.rows("members").map(({ user }) => user),
    accounts.port.rows("_users").map(({ _id }) => _id),
  );
});

Deno.test("OH1 OH3 it also runs once for a user created by a provider or an issuer's token, with the known profile data", async () => {
  const key = await signingKey("ES256", "k");
  await using signIns = await startTestSignIns({ app: parts });
  const ann = { id: "4711", email: "ann@example.com", verified: true };
  await signIns.signIn("github", ann);
  await signIns.signIn("github", ann);
  const { port } = signIns.accounts;
  assert.deepEqual(port.rows("members").map(({ by, from }) => [by, from]), [["provider", "github"]]);
  assert.deepEqual(port.rows("visits").map(({ by }) => by), ["provider", "provider"]);

  const outside = world({ "id.test": () => Response.json({ keys: [key.jwk] }) });
  const config = { issuers: [{ issuer: "https://id.test", audience: "app", keys: "https://id.test/keys" }] };
  const sources = { env: () => undefined, readFile: () => Promise.reject(new Error()) };
  await using accounts = await startTestAccounts({
    app: parts,
    externalAuth: (now) =>
      readAuthConfig(JSON.stringify(config), { sources, parts: presetParts({ now, fetch: outside.fetch }) }),
  });
  const claims = { iss: "https://id.test", aud: "app", exp: accounts.clock.now / 1000 + 60 };
  const token = await signed({ ...claims, sub: "ann", role: "chief" }, key);
  await Promise.all([token, token].map((text) => accounts.identityOf(text)));
  const rows = accounts.port.rows("members").map((row) => [row["by"], row["from"], row["claims"]]);
  assert.deepEqual(rows, [["token", "https://id.test", '"chief"']]);
  const banned = await signed({ ...claims, sub: "mallory", banned: true }, key);
  assert.deepEqual(await accounts.service.authenticator.verify(banned), {
    ok: false,
    error: "invalid access token claims",
  });
  assert.equal(accounts.port.rows("_users").length, 1);
});

Deno.test("OH2 a user refused by the app gets the app's error code, and nothing is stored", async () => {
  await using signIns = await startTestSignIns({ app: parts });
  const { accounts } = signIns;
  const answer = await accounts.post("/signup", { email: "banned@example.com", password: "correct horse" });
  assert.deepEqual([answer.status, answer.body], [400, {
    status: "error",
    errorMessage: "Ask for an invitation",
    errorData: { code: "not_invited", data: { by: "password" } },
  }]);
  await accounts.post("/magic/request", { email: "banned@example.com" });
  const mail = await accounts.mailTo("banned@example.com");
  assert.equal(
    (await accounts.post("/magic/verify", { token: mail?.token })).body.errorData.code,
    "not_invited",
  );
  const fragment = await signIns.signIn("github", { id: "1", email: "banned@example.com", verified: true });
  assert.deepEqual([...fragment], [["svc_error", "not_invited"], [
    "svc_error_description",
    "Ask for an invitation",
  ]]);
  for (const table of ["_users", "_identities", "_passwords", "_sessions", "members", "visits"]) {
    assert.deepEqual(accounts.port.rows(table), [], table);
  }
});

Deno.test("OH3 a sign-in that the app refuses opens no session", async () => {
  await using signIns = await startTestSignIns({ app: parts });
  const { accounts } = signIns;
  const person = { id: "1", email: "ann@example.com", verified: true };
  const first = await signIns.signIn("github", person);
  await accounts.call("_auth:setName", { name: "Suspended" }, first.get("svc_access_token"));
  const started = await signIns.begin("github");
  const again = fragmentOf(
    await signIns.back("github", signIns.at.github.agree(started.location, person), started),
  );
  assert.equal(again.get("svc_error"), "suspended");
  assert.equal(accounts.port.rows("_sessions").length, 1);
  assert.equal(accounts.port.rows("visits").length, 1);
});

Deno.test("OH4 the hook cannot be called by clients or their functions, and cannot be public", async () => {
  await using accounts = await startTestAccounts({ app: parts });
  const { accessToken, userId } = await accounts.signUp("ann@example.com");
  const event = { user: userId, by: "password", provider: null, issuer: null, claims: {} };
  await assert.rejects(accounts.call("auth:onUserCreated", event, accessToken), /unknown_function/);
  const load = (exports: Record<string, unknown>) =>
    assembleApp([{ name: "auth.ts", modulePath: "auth", exports }], {
      systemModules: authModules,
      named: [],
    });
  const handler = () => null;
  for (const name of ["onUserCreated", "onUserPromoted", "onSignIn"]) {
    assert.throws(
      () => load({ [name]: mutation({ args: {}, handler }) }),
      /auth\.ts: .* has to be an internalMutation/,
    );
    load({ [name]: internalMutation({ args: authEventArgs, handler }) });
  }
  load({ signIn: mutation({ args: {}, handler }) });
});
