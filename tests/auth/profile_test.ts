/** The fields that an app stores for its users, for all ways to create or change a user. */
import assert from "node:assert/strict";
import { z } from "zod";
import {
  authEventArgs,
  createFunctions,
  defineProfile,
  internalMutation,
  type ProfileOf,
  query,
} from "../../mod/functions/api/mod.ts";
import { ProfileBuilder } from "../../mod/functions/api/profile.ts";
import { assembleApp } from "../../mod/functions/isolate/app/loader.ts";
import { authModules } from "../../mod/auth/isolate_functions/mod.ts";
import { presetParts, readAuthConfig } from "../../mod/auth/mod.ts";
import { signed, signingKey, world } from "./support/stand_in.ts";
import { startTestSignIns } from "./support/test_sign_ins.ts";
import { startTestAccounts, type TestAccounts } from "./support/test_accounts.ts";
import type { AppParts } from "./support/in_process_port.ts";

const profile = defineProfile({
  role: z.enum(["member", "editor"]).default("member"),
  team: z.string().max(10).optional(),
  picture: z.url().optional(),
}, {
  fill: ({ provider, issuer, claims }) => ({
    picture: claims["picture"],
    team: provider ?? (issuer === null ? undefined : "robots"),
    nothing: "that the app knows",
  }),
}).index("by_role", ["role"]);

const tables = {};
type Schema = { readonly tables: typeof tables };
const app = createFunctions<Schema, typeof profile>({ tables });

/** As an app's modules are: a hook that writes the profile, and functions that read and write it. */
const parts: AppParts = {
  tables,
  profile,
  functions: {
    "auth:onUserCreated": app.internalMutation({
      args: authEventArgs,
      handler: async (ctx, { user, claims }) => {
        const found = await ctx.db.get(user);
        if (claims["chief"] === true) {
          await ctx.db.patch(user, { profile: { ...found?.profile, role: "editor" } });
        }
      },
    }),
    "people:editors": app.query({
      args: {},
      handler: async (ctx) => {
        const editors = await ctx.db.query("_users").withIndex(
          "by_role",
          (q) => q.eq("profile.role", "editor"),
        ).collect();
        return editors.map(({ profile }) => profile?.picture ?? null);
      },
    }),
    "people:set": app.mutation({
      args: { fields: z.record(z.string(), z.unknown()) },
      handler: async (ctx, { fields }) => {
        const user = ctx.auth.userId();
        if (user !== null) await ctx.db.patch(user, fields as never);
        return null;
      },
    }),
    "people:replace": app.mutation({
      args: {},
      handler: async (ctx) => {
        const user = ctx.auth.userId();
        if (user !== null) await ctx.db.replace(user, { profile: { role: "editor" } });
        return null;
      },
    }),
  },
};

const profilesOf = (accounts: TestAccounts) => accounts.port.rows("_users").map((user) => user["profile"]);
const anonymous = { principal: null, userId: null, adminId: null, sessionId: null };
const system = (accounts: TestAccounts, name: string, args: Record<string, unknown>) =>
  accounts.port.mutate({ udfPath: `_system/auth:${name}`, args, identity: anonymous, origin: "system" });

Deno.test("PF1 PF2 each user has a profile with defaults and the matching known data, however it was created", async () => {
  await using signIns = await startTestSignIns({ app: parts });
  const { accounts } = signIns;
  await accounts.signUp("ann@example.com");
  await accounts.post("/magic/request", { email: "bob@example.com" });
  await accounts.post("/magic/verify", { token: (await accounts.mailTo("bob@example.com"))?.token });
  await system(accounts, "createUser", { email: "eve@example.com", emailVerified: true, passwordHash: null });
  assert.deepEqual(profilesOf(accounts), [{ role: "member" }, { role: "member" }, { role: "member" }]);
  signIns.at.work.overrides = { claims: { picture: "https://work.test/dan.png", chief: true } };
  await signIns.signIn("work", { id: "dan", name: "Dan" });
  // Invalid pictures and fields that are not in the app's schema are omitted.
  signIns.at.work.overrides = { claims: { picture: 7 } };
  await signIns.signIn("work", { id: "kim" });
  await signIns.signIn("github", { id: "4711", name: "Pat" });
  assert.deepEqual(profilesOf(accounts).slice(3), [
    { role: "editor", team: "work", picture: "https://work.test/dan.png" },
    { role: "member", team: "work" },
    { role: "member", team: "github" },
  ]);
  assert.deepEqual(await accounts.call("people:editors", {}, null), ["https://work.test/dan.png"]);
  // Another sign-in does not change the profile.
  signIns.at.work.overrides = { claims: { picture: "https://work.test/new.png" } };
  await signIns.signIn("work", { id: "dan" });
  assert.deepEqual(await accounts.call("people:editors", {}, null), ["https://work.test/dan.png"]);
});

Deno.test("PF2 a token of another issuer fills the profile of the user it creates", async () => {
  const key = await signingKey("ES256", "k");
  const outside = world({ "id.test": () => Response.json({ keys: [key.jwk] }) });
  const config = { issuers: [{ issuer: "https://id.test", audience: "app", keys: "https://id.test/keys" }] };
  const sources = { env: () => undefined, readFile: () => Promise.reject(new Error()) };
  await using accounts = await startTestAccounts({
    app: parts,
    externalAuth: (now) =>
      readAuthConfig(JSON.stringify(config), { sources, parts: presetParts({ now, fetch: outside.fetch }) }),
  });
  const claims = { iss: "https://id.test", aud: "app", exp: accounts.clock.now / 1000 + 60, sub: "r2" };
  await accounts.identityOf(await signed({ ...claims, picture: "https://id.test/r2.png" }, key));
  assert.deepEqual(profilesOf(accounts), [{
    role: "member",
    team: "robots",
    picture: "https://id.test/r2.png",
  }]);
});

Deno.test("PF3 the app writes only the profile of a user, and only valid fields", async () => {
  await using accounts = await startTestAccounts({ app: parts });
  const { accessToken } = await accounts.signUp("ann@example.com");
  const set = (fields: Record<string, unknown>) => accounts.call("people:set", { fields }, accessToken);
  await set({ profile: { role: "editor", team: "blue" } });
  const account = { role: "editor", team: "blue" };
  assert.deepEqual(profilesOf(accounts), [account]);
  const own = await accounts.call("_auth:account", {}, accessToken) as { profile: ProfileOf<typeof profile> };
  assert.deepEqual(own.profile, account);
  for (
    const [fields, error] of [
      [{ profile: { role: "owner" } }, /profile\.role/],
      [{ profile: { role: "member", team: "far too long" } }, /profile\.team/],
      [{ profile: { role: "member", more: 1 } }, /profile/],
      [
        { profile: { role: "member" }, emailVerified: true },
        /app code cannot write to it, but for the profile/,
      ],
      [{ email: "root@example.com" }, /app code cannot write/],
      [{ name: "Root" }, /app code cannot write/],
    ] as const
  ) await assert.rejects(set(fields), error, JSON.stringify(fields));
  await assert.rejects(accounts.call("people:replace", {}, accessToken), /app code cannot write/);
  assert.deepEqual(profilesOf(accounts), [account]);
});

Deno.test("PF3 PF4 without a profile neither the app nor administrators can write to users", async () => {
  await using accounts = await startTestAccounts({ app: { ...parts, profile: undefined } as never });
  const { accessToken } = await accounts.signUp("ann@example.com");
  await assert.rejects(
    accounts.call("people:set", { fields: { profile: { role: "editor" } } }, accessToken),
    /keeps no profile of its users: export one from auth\.ts/,
  );
  const created = await system(accounts, "createUser", {
    email: "eve@example.com",
    emailVerified: true,
    passwordHash: null,
    profile: { role: "editor" },
  });
  assert.equal(created.outcome.ok ? null : created.outcome.error.data?.code, "invalid_profile");
  assert.deepEqual(profilesOf(accounts), [undefined]);
});

Deno.test("PF4 administrators create and edit users with a profile that fits, field by field", async () => {
  await using accounts = await startTestAccounts({ app: parts });
  const admin = await accounts.signInAdmin("root@example.com");
  const call = (name: string, args: Record<string, unknown>) =>
    accounts.call(`_admin/users:${name}`, args, admin.accessToken) as Promise<never>;
  const { userId } = await call("create", {
    email: "eve@example.com",
    profile: { role: "editor", team: "red" },
  }) as { userId: string };
  assert.deepEqual(profilesOf(accounts), [{ role: "editor", team: "red" }]);
  await call("edit", { userId, profile: { team: null, picture: "https://example.com/eve.png" } });
  assert.deepEqual((await call("get", { userId }) as { profile: unknown }).profile, {
    role: "editor",
    picture: "https://example.com/eve.png",
  });
  for (const profile of [{ role: "owner" }, { more: 1 }, { picture: 7 }]) {
    await assert.rejects(call("edit", { userId, name: "Eve", profile }), /invalid_profile/);
    await assert.rejects(call("create", { email: "kim@example.com", profile }), /invalid_profile/);
  }
  const [eve, ...more] = accounts.port.rows("_users");
  assert.deepEqual([eve?.["name"], more], [undefined, []], "what does not fit changes nothing");
});

Deno.test("PF1 a missing profile, or one that cannot start empty, is an error of the app", () => {
  const load = (exports: Record<string, unknown>) =>
    assembleApp([{ name: "auth.ts", modulePath: "auth", exports }], {
      systemModules: authModules,
      named: [],
    });
  assert.throws(() => defineProfile({ role: z.string() }), /needs a default or must be optional.*role/);
  assert.throws(() => defineProfile({ _role: z.string().optional() }), /Invalid profile field/);
  assert.throws(() => defineProfile({ role: "text" } as never), /is not a zod schema/);
  assert.throws(
    () => load({ profile: { role: z.string() } }),
    /auth\.ts: profile has to be made by defineProfile/,
  );
  const misnamed = defineProfile({ role: z.string().optional() }).index("by_rule", ["rule" as never]);
  assert.throws(() => load({ profile: misnamed }), /auth\.ts: .*profile\.rule/);
  // A function of this name is the app's own affair.
  load({ profile: query({ args: {}, handler: () => null }) });
  const loaded = load({
    profile,
    onUserCreated: internalMutation({ args: authEventArgs, handler: () => null }),
  });
  assert.ok(loaded.profile instanceof ProfileBuilder);
  assert.ok(loaded.schema.get("_users")?.indexes.some(({ name }) => name === "by_role"));
});
