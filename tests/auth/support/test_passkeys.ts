/** Users with passkeys, and the steps of registrations, sign-ins and proofs. */
import { password, type TestAccounts } from "./test_accounts.ts";
import type { InvalidValues, PasskeyOptions, TestAuthenticator } from "./test_authenticator.ts";
import { email, verifiedUser } from "./test_factors.ts";

/** The answer of an action that starts a use of a passkey. */
interface Started {
  readonly options: PasskeyOptions;
  readonly expiresIn: number;
}

/** Runs an action or query of the own account. */
export const act = async <Result>(accounts: TestAccounts, name: string, args: object, token: string | null) =>
  await accounts.call(`_auth:${name}`, { ...args }, token) as Result;

/** Returns the options of a registration. */
export const startRegistration = async (
  accounts: TestAccounts,
  token: string | null,
  args: object = { password },
) => (await act<Started>(accounts, "startPasskey", args, token)).options;

export const startSignIn = async (accounts: TestAccounts) =>
  (await act<Started>(accounts, "startPasskeySignIn", {}, null)).options;

export const startProof = async (accounts: TestAccounts, token: string) =>
  (await act<Started>(accounts, "startPasskeyProof", {}, token)).options;

/** Sends the answer of an authenticator, to sign in. */
export const verify = (accounts: TestAccounts, response: object, from = "203.0.113.1") =>
  accounts.post("/passkey/verify", { response }, { from });

/** Signs up a user with a passkey. */
export async function passkeyUser(accounts: TestAccounts, authenticator: TestAuthenticator, address = email) {
  const { accessToken, userId = "" } = await verifiedUser(accounts, address);
  const response = authenticator.create(await startRegistration(accounts, accessToken));
  const { passkeyId } = await act<{ passkeyId: string }>(accounts, "addPasskey", { response }, accessToken);
  return { accessToken, userId, passkeyId };
}

/** Signs in with the newest credential of an authenticator. */
export async function signIn(
  accounts: TestAccounts,
  authenticator: TestAuthenticator,
  invalid: InvalidValues = {},
) {
  return await verify(accounts, authenticator.get(await startSignIn(accounts), invalid));
}
