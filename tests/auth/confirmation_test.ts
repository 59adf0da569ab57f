/** Changes that add a sign-in method to an account require a recent confirmation. */
import assert from "node:assert/strict";
import { authLimits } from "../../mod/auth/limits.ts";
import { password } from "./support/test_accounts.ts";
import { TestAuthenticator } from "./support/test_authenticator.ts";
import { act, passkeyUser, startProof, startRegistration } from "./support/test_passkeys.ts";
import { startTestSignIns, type TestSignIns } from "./support/test_sign_ins.ts";

const newPassword = "another horse";
const changes = {
  changePassword: { newPassword },
  changeEmail: { email: "new@example.com" },
  startLink: { provider: "github", redirectTo: "https://app.example.com/auth/done" },
};
const changeNames = Object.keys(changes) as (keyof typeof changes)[];

type Caller = (signIns: TestSignIns) => Promise<string | null>;

/** A user without a password. */
async function byMail({ accounts }: TestSignIns): Promise<string> {
  await accounts.post("/magic/request", { email: "mail@example.com" });
  const proof = { token: (await accounts.mailTo("mail@example.com"))?.token };
  return (await accounts.post("/magic/verify", proof)).body.accessToken;
}

const authenticator = new TestAuthenticator();
/** A user with a passkey and no password. */
async function withPasskey(signIns: TestSignIns): Promise<string> {
  const token = await byMail(signIns);
  const response = authenticator.create(await startRegistration(signIns.accounts, token, {}));
  await act(signIns.accounts, "addPasskey", { response }, token);
  return token;
}

const later = (make: Caller, ms: number): Caller => async (signIns) => {
  const token = await make(signIns);
  signIns.accounts.clock.now += ms;
  return token;
};
const { confirmationFreshMs } = authLimits;

const callers: readonly (readonly [name: string, make: Caller, expected: string | null])[] = [
  ["a guest", () => Promise.resolve(null), "not_signed_in"],
  ["a user after a sign-in", later(byMail, confirmationFreshMs - 1), null],
  ["a user long after the sign-in", later(byMail, confirmationFreshMs + 1), "confirmation_required"],
  ["a user after adding a passkey", later(withPasskey, confirmationFreshMs - 1), null],
  ["a user long after using a passkey", later(withPasskey, confirmationFreshMs), "factor_required"],
  ["a user who proved a passkey again", async (signIns) => {
    const token = await later(withPasskey, confirmationFreshMs)(signIns);
    const response = authenticator.get(await startProof(signIns.accounts, token ?? ""));
    await act(signIns.accounts, "provePasskey", { response }, token);
    return token;
  }, null],
  ["an administrator", async ({ accounts }) => {
    return (await accounts.signInAdmin("root@example.com")).accessToken;
  }, "not_signed_in"],
  ["a key of a user", async (signIns) => {
    const { userId } = await signIns.accounts.identityOf(await byMail(signIns));
    const root = await signIns.accounts.signInAdmin("root@example.com");
    const args = { name: "ci", functions: ["*"], userId };
    const created = await signIns.accounts.call("_admin/apiKeys:create", args, root.accessToken);
    return (created as { key: string }).key;
  }, "no_session"],
];
for (const change of changeNames) {
  for (const [name, make, expected] of callers) {
    Deno.test(`MF10 ${change} without a password by ${name}: ${expected ?? "permitted"}`, async () => {
      await using signIns = await startTestSignIns();
      const changed = act(signIns.accounts, change, changes[change], await make(signIns));
      if (expected === null) await changed;
      else await assert.rejects(changed, { message: expected });
      const { port } = signIns.accounts;
      assert.equal(port.rows("_oauth_flows").length, expected === null && change === "startLink" ? 1 : 0);
    });
  }

  Deno.test(`MF10 ${change} in a session that has just ended is refused`, async () => {
    await using signIns = await startTestSignIns();
    const { accounts } = signIns;
    const token = await byMail(signIns);
    const identity = await accounts.identityOf(token);
    await act(accounts, "signOutEverywhere", {}, token);
    const outcome = await accounts.service.actions.get(`_auth:${change}`)?.run(changes[change], identity);
    assert.ok(outcome?.ok === false);
    assert.equal(outcome.error.data?.code, "no_session");
  });
}

Deno.test("MF10 a password confirms a link of an account without a factor", async () => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  const { accessToken } = await accounts.signUp("ann@example.com");
  accounts.clock.now += confirmationFreshMs + 1;
  const link = (args: object) => act(accounts, "startLink", { ...changes.startLink, ...args }, accessToken);
  await assert.rejects(link({}), { message: "confirmation_required" });
  await assert.rejects(link({ password: "wrong horse" }), { message: "invalid_credentials" });
  await link({ password });
});

Deno.test("MF10 a password does not replace the factor that confirms a link", async () => {
  await using signIns = await startTestSignIns();
  const { accounts } = signIns;
  const { accessToken } = await passkeyUser(accounts, authenticator);
  const link = () => act(accounts, "startLink", { ...changes.startLink, password }, accessToken);
  await link();
  accounts.clock.now += authLimits.factorFreshMs;
  await assert.rejects(link(), { message: "factor_required" });
});
