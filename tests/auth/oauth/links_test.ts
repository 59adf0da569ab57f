import assert from "node:assert/strict";
import { externalLimits } from "../../../mod/auth/limits.ts";
import { type Answer, password } from "../support/test_accounts.ts";
import {
  appUrl,
  fragmentOf,
  type ProviderName,
  startTestSignIns,
  type TestSignIns,
} from "../support/test_sign_ins.ts";

const ann = { id: "4711", email: "ann@elsewhere.example", verified: true, name: "Ann" };

/** Requests a link as the owner of the token. */
async function prepare(
  { accounts }: TestSignIns,
  accessToken: string,
  provider: ProviderName = "github",
): Promise<string> {
  const { link } = await accounts.call("_auth:startLink", { provider, redirectTo: appUrl }, accessToken) as {
    link: string;
  };
  return link;
}

async function depart(
  { accounts }: TestSignIns,
  link: string,
  provider: ProviderName = "github",
): Promise<Answer> {
  return await accounts.get(`/oauth/${provider}?link=${encodeURIComponent(link)}`);
}

/** Follows the redirects to the provider and back. Returns the fragment. */
async function bring(
  signIns: TestSignIns,
  link: string,
  { provider = "github", person = ann }: { provider?: ProviderName; person?: typeof ann } = {},
): Promise<URLSearchParams> {
  const { headers } = await depart(signIns, link, provider);
  const parameters = signIns.at[provider].agree(headers.get("location") ?? "", person);
  const cookie = (headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  return fragmentOf(await signIns.back(provider, parameters, { cookie }));
}

async function linkAll(signIns: TestSignIns, accessToken: string, provider: ProviderName): Promise<void> {
  const token = (await bring(signIns, await prepare(signIns, accessToken, provider), { provider })).get(
    "svc_link_token",
  );
  assert.deepEqual(await signIns.accounts.call("_auth:linkIdentity", { token }, accessToken), { provider });
}

interface Listed {
  readonly identityId: string;
  readonly provider: string | null;
  readonly email: string | null;
}

function list({ accounts }: TestSignIns, accessToken: string): Promise<Listed[]> {
  return accounts.call("_auth:listIdentities", {}, accessToken) as Promise<Listed[]>;
}

Deno.test("OK1 a signed-in user links another identity, signs in with it, and sees the links", async () => {
  await using signIns = await startTestSignIns();
  const { accessToken, userId } = await signIns.accounts.signUp("ann@example.com");
  await linkAll(signIns, accessToken, "github");
  const listed = await list(signIns, accessToken);
  assert.deepEqual(listed.map(({ provider, email }) => [provider, email]), [[
    "github",
    "ann@elsewhere.example",
  ]]);
  const fragment = await signIns.signIn("github", ann);
  assert.equal(fragment.get("svc_user_id"), userId);
  const [user, ...more] = signIns.accounts.port.rows("_users");
  assert.deepEqual(
    [user?.["email"], user?.["emailVerified"], more.length],
    ["ann@example.com", false, 0],
    "the account is as it was",
  );
  assert.equal(signIns.accounts.port.rows("_brought_identities").length, 0);
});

Deno.test("OK2 only the session that requested a link can complete it", async () => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  const victim = await accounts.signUp("ann@example.com");
  const attacker = await accounts.signUp("mallory@example.com");
  const refused = (token: string | null, accessToken: string | null) =>
    assert.rejects(accounts.call("_auth:linkIdentity", { token }, accessToken), /invalid_link|not_signed_in/);
  // The attacker's link in the victim's browser: it would add the victim's identity to the attacker's account.
  const lured = (await bring(signIns, await prepare(signIns, attacker.accessToken))).get("svc_link_token");
  await refused(lured, victim.accessToken);
  await refused(lured, null);
  // The attacker's identity, returned to the victim's page: the attacker could sign in to the victim's account.
  const planted =
    (await bring(signIns, await prepare(signIns, attacker.accessToken), { person: { ...ann, id: "666" } }))
      .get("svc_link_token");
  await refused(planted, victim.accessToken);
  // Another session of the same user did not ask for it either.
  const other = (await accounts.post("/signin", { email: "mallory@example.com", password })).body;
  await refused(planted, other.accessToken);
  await refused("made up", attacker.accessToken);
  assert.deepEqual(accounts.port.rows("_identities"), []);
  await accounts.call("_auth:linkIdentity", { token: planted }, attacker.accessToken);
  await refused(planted, attacker.accessToken);
});

Deno.test("OK2 a link is started once, at its provider, before it expires, and creates no session", async () => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  const { accessToken } = await accounts.signUp("ann@example.com");
  const link = await prepare(signIns, accessToken);
  const early = await signIns.back("github", new URLSearchParams({ code: "x", state: link }), {
    cookie: `svc_oauth_state=${link}`,
  });
  assert.equal(early.status, 400, "it was not begun");
  assert.equal((await depart(signIns, link, "discord")).body.errorData.code, "invalid_code");
  assert.equal((await depart(signIns, "made up")).status, 400);
  assert.equal((await depart(signIns, "")).status, 400);
  assert.equal((await depart(signIns, link)).status, 302);
  assert.equal((await depart(signIns, link)).status, 400);
  const late = await prepare(signIns, accessToken);
  accounts.clock.now += externalLimits.flowMs;
  assert.equal((await depart(signIns, late)).status, 400);
  const fresh = (await accounts.post("/signin", { email: "ann@example.com", password })).body.accessToken;
  const token = (await bring(signIns, await prepare(signIns, fresh))).get("svc_link_token");
  accounts.clock.now += externalLimits.linkMs;
  await assert.rejects(accounts.call("_auth:linkIdentity", { token }, fresh), /invalid_link/);
  await accounts.service.sweep();
  assert.deepEqual(accounts.port.rows("_brought_identities"), []);
  assert.equal(accounts.port.rows("_sessions").length, 2);
});

Deno.test("OK2 if the requesting session has ended, the returned identity is not stored", async () => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  const { accessToken, refreshToken } = await accounts.signUp("ann@example.com");
  const link = await prepare(signIns, accessToken);
  await accounts.post("/signout", { refreshToken });
  assert.equal((await bring(signIns, link)).get("svc_error"), "session_expired");
  assert.deepEqual(accounts.port.rows("_brought_identities"), []);
});

Deno.test("OK3 an identity of another account cannot be linked, and one that is linked already is no fault", async () => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  await signIns.signIn("github", ann);
  const { accessToken } = await accounts.signUp("bob@example.com");
  const token = (await bring(signIns, await prepare(signIns, accessToken))).get("svc_link_token");
  await assert.rejects(accounts.call("_auth:linkIdentity", { token }, accessToken), /identity_in_use/);
  await linkAll(signIns, accessToken, "discord");
  await linkAll(signIns, accessToken, "discord");
  assert.equal((await list(signIns, accessToken)).length, 1);
});

Deno.test("OK4 an identity is unlinked, except the last sign-in method", async () => {
  await using signIns = await startTestSignIns({ mail: false });
  const { accounts } = signIns;
  const fragment = await signIns.signIn("github", ann);
  const accessToken = fragment.get("svc_access_token") ?? "";
  const unlink = (identityId: string | undefined, by = accessToken) =>
    accounts.call("_auth:unlinkIdentity", { identityId }, by);
  const [only] = await list(signIns, accessToken);
  await assert.rejects(unlink(only?.identityId), /last_way_in/);
  const stranger = await accounts.signUp("bob@example.com");
  await assert.rejects(unlink(only?.identityId, stranger.accessToken), /identity_not_found/);
  await linkAll(signIns, accessToken, "discord");
  await unlink(only?.identityId);
  await assert.rejects(unlink(only?.identityId), /identity_not_found/);
  const [last] = await list(signIns, accessToken);
  assert.equal(last?.provider, "discord");
  await assert.rejects(unlink(last?.identityId), /last_way_in/);
  await accounts.call("_auth:changePassword", { newPassword: password }, accessToken);
  await unlink(last?.identityId);
  assert.deepEqual(await list(signIns, accessToken), []);
});

Deno.test("OK4 a confirmed address is a sign-in method if email can be sent", async () => {
  await using signIns = await startTestSignIns();
  const accessToken = (await signIns.signIn("github", ann)).get("svc_access_token") ?? "";
  const [only] = await list(signIns, accessToken);
  await signIns.accounts.call("_auth:unlinkIdentity", { identityId: only?.identityId }, accessToken);
  const other =
    (await signIns.signIn("github", { ...ann, id: "1", verified: false })).get("svc_access_token") ?? "";
  const [unverified] = await list(signIns, other);
  await assert.rejects(
    signIns.accounts.call("_auth:unlinkIdentity", { identityId: unverified?.identityId }, other),
    /last_way_in/,
  );
});

Deno.test("OK5 only the user can change sign-in methods: no impersonator, no guest, no token of another issuer", async () => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  const { userId } = await accounts.signUp("ann@example.com");
  const admin = await accounts.signInAdmin("root@example.com");
  const { sessionId } = await accounts.identityOf(admin.accessToken);
  const acting = await accounts.service.sessions.impersonate({
    userId: userId ?? "",
    adminId: admin.adminId ?? "",
    adminSession: sessionId ?? "",
    lifetimeMs: 60_000,
    userAgent: null,
  });
  const token = acting?.accessToken ?? "";
  for (
    const [path, args] of [["_auth:startLink", { provider: "github" }], ["_auth:linkIdentity", {
      token: "x",
    }], ["_auth:unlinkIdentity", { identityId: "x" }]] as const
  ) {
    await assert.rejects(accounts.call(path, args, token), /impersonated/, path);
    await assert.rejects(accounts.call(path, args, null), /not_signed_in/, path);
    await assert.rejects(accounts.call(path, args, admin.accessToken), /not_signed_in/, path);
  }
});

Deno.test("OK2 OA18 the token of a link signs no one in, and the token of a sign-in links nothing", async () => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  const { accessToken } = await accounts.signUp("ada@example.com");
  const link = (await bring(signIns, await prepare(signIns, accessToken))).get("svc_link_token");
  const { status, body } = await accounts.post("/oauth/verify", { token: link }, { bearer: accessToken });
  assert.deepEqual([status, body.errorData.code], [400, "invalid_code"]);
  const { headers } = await accounts.get(
    `/oauth/github?redirect_to=${encodeURIComponent(appUrl)}&app_state=mine`,
  );
  const parameters = signIns.at.github.agree(headers.get("location") ?? "", ann);
  const cookie = (headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const token = fragmentOf(await signIns.back("github", parameters, { cookie })).get("svc_sign_in_token");
  await assert.rejects(accounts.call("_auth:linkIdentity", { token }, accessToken), /invalid_link/);
  assert.deepEqual(await list(signIns, accessToken), []);
  // The refused call did not use it up.
  assert.equal((await accounts.post("/oauth/verify", { token })).status, 200);
});
