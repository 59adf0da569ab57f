/** Accounts with second factors, and the codes of an authenticator app. */
import assert from "node:assert/strict";
import { Secret, TOTP } from "otpauth";
import type { Tokens } from "../../../mod/auth/tokens/session_tokens.ts";
import { type Answer, password, type TestAccounts } from "./test_accounts.ts";

export const email = "a@example.com";
/** Length of the time step of a code. */
export const STEP_MS = 30_000;

/** The code of an authenticator app whose clock is ahead by `offMs`. */
export function codeOf(secret: string, now: number, offMs = 0): string {
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: now + offMs });
}

/** A code that is wrong at any time near `now`. */
export function wrongCode(secret: string, now: number): string {
  const right = new Set([-2, -1, 0, 1, 2].map((steps) => codeOf(secret, now, steps * STEP_MS)));
  return ["000000", "111111", "222222", "333333", "444444", "555555"].find((code) => !right.has(code)) ?? "";
}

export interface Enrolled {
  readonly secret: string;
  readonly recoveryCodes: readonly string[];
  /** Session in which the factor was set up. */
  readonly accessToken: string;
  readonly owner: string;
}

/** Sets up an authenticator app for the owner of a token. Afterwards the clock is past the code that was used. */
export async function enroll(
  accounts: TestAccounts,
  { accessToken, owner, base = "_auth" }: {
    readonly accessToken: string;
    readonly owner: string;
    readonly base?: string;
  },
): Promise<Enrolled> {
  const started = await accounts.call(`${base}:startTotp`, { password }, accessToken) as {
    enrolmentId: string;
    secret: string;
  };
  const { enrolmentId, secret } = started;
  const code = codeOf(secret, accounts.clock.now);
  const confirmed = await accounts.call(`${base}:confirmTotp`, { enrolmentId, code }, accessToken);
  accounts.clock.now += 3 * STEP_MS;
  return { secret, accessToken, owner, ...confirmed as { recoveryCodes: readonly string[] } };
}

/** Signs up a user with a verified address. */
export async function verifiedUser(accounts: TestAccounts, address = email): Promise<Tokens> {
  const tokens = await accounts.signUp(address);
  const { status } = await accounts.post("/verify-email/confirm", {
    token: (await accounts.mailTo(address))?.token,
  }, { from: address });
  assert.equal(status, 200);
  return tokens;
}

/** A user with an authenticator app. */
export async function enrolledUser(accounts: TestAccounts, address = email): Promise<Enrolled> {
  const { accessToken, userId = "" } = await verifiedUser(accounts, address);
  return await enroll(accounts, { accessToken, owner: userId });
}

/** An administrator with an authenticator app. */
export async function enrolledAdmin(accounts: TestAccounts, address = email): Promise<Enrolled> {
  const { accessToken, adminId = "" } = await accounts.signInAdmin(address);
  return await enroll(accounts, { accessToken, owner: adminId, base: "_admin/administrators" });
}

/** Checks that a response contains only a challenge. Returns it. */
export function challengeIn({ status, body }: Answer): string {
  assert.equal(status, 403, JSON.stringify(body));
  const { challenge } = body.errorData.data;
  assert.match(challenge, /^[\w-]{43}$/);
  assert.deepEqual(body, {
    status: "error",
    errorMessage: "A second factor is required to finish the sign-in",
    errorData: { code: "mfa_required", data: { challenge, expiresIn: 300 } },
  });
  return challenge;
}

/** The first step with the password. */
export async function challenge(accounts: TestAccounts, address = email): Promise<string> {
  return challengeIn(await accounts.post("/signin", { email: address, password }));
}

export function codeIn({ body }: Answer): string {
  return body.errorData?.code ?? "none";
}
