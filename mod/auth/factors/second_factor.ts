/** Second factors without HTTP: the second step of a sign-in, and the actions with which users and administrators manage them. */
import { z } from "zod";
import { ServiceError, UserError } from "../../errors.ts";
import type { Identity } from "../../functions/identity.ts";
import type { MainAction } from "../../functions/main_actions.ts";
import type { AccountParts } from "../accounts.ts";
import type { Requester } from "../attempt_limits.ts";
import type { StoredTotp } from "../isolate_functions/factors/challenges.ts";
import type { FactorProof } from "../isolate_functions/factors/factor_rows.ts";
import { authLimits } from "../limits.ts";
import { accountAction, checkPassword } from "../own_account.ts";
import { system } from "../system_calls.ts";
import type { Tokens } from "../tokens/session_tokens.ts";
import { newRecoveryCodes, recoveryHash } from "./recovery_codes.ts";
import type { NewTotpApp } from "./totp_apps.ts";

const text = z.string().max(authLimits.proofCharsMax);

/** A code of the authenticator app, or a recovery code. */
export const proofSchema = z.union([
  z.strictObject({ code: text }),
  z.strictObject({ recoveryCode: text }),
]);
export type GivenProof = z.infer<typeof proofSchema>;

const startArgs = z.strictObject({
  /** Absent if the account has no password. */
  password: z.string().optional(),
});
const confirmArgs = z.strictObject({ enrolmentId: text, code: text });
const noArgs = z.strictObject({});

export class SecondFactor {
  readonly #parts: AccountParts;
  /** Name of the app, shown in authenticator apps. */
  readonly #appName: () => string;

  constructor(parts: AccountParts, { appName }: { readonly appName: () => string }) {
    this.#parts = parts;
    this.#appName = appName;
  }

  actions(): ReadonlyMap<string, MainAction> {
    return new Map([
      ...accountAction("startTotp", startArgs, (args, identity) => this.start(args, identity)),
      ...accountAction("confirmTotp", confirmArgs, (args, identity) => this.confirm(args, identity)),
      ...accountAction("proveFactor", proofSchema, (given, identity) => this.prove(given, identity)),
      ...accountAction("removeTotp", noArgs, (_args, identity) => this.remove(identity)),
      ...accountAction("renewRecoveryCodes", noArgs, (_args, identity) => this.renewRecoveryCodes(identity)),
    ]);
  }

  /** The second step of a sign-in. Throws `invalid_code` for a wrong proof, `invalid_challenge` if the sign-in has ended. */
  async finishSignIn(
    { challenge, given }: { readonly challenge: string; readonly given: GivenProof },
    requester: Requester,
  ): Promise<Tokens> {
    const { calls, hasher, limits, now, sessions } = this.#parts;
    limits.tryCredential(requester.client);
    const tokenHash = hasher.hash("challenge", challenge);
    const found = await calls.mutate(system.findChallenge, { tokenHash, now: now() });
    if (found === null) throw new ServiceError("invalid_challenge");
    const tokens = await limits.attemptFactor(
      { account: `factor ${found.owner}`, client: requester.client },
      async () => {
        const proof = await this.#proofOf(given, found);
        const prepared = sessions.prepare(requester);
        const result = await calls.mutate(system.finishChallenge, {
          tokenHash,
          proof,
          session: prepared.row,
        });
        if (!("refused" in result)) return await sessions.complete(result, prepared);
        if (result.refused === "invalid_challenge") throw new ServiceError("invalid_challenge");
        return null;
      },
    );
    if (tokens === null) throw new ServiceError("invalid_code");
    // Both steps succeeded. Otherwise failures of unknown clients would lock owners with a second factor out of the password step.
    if (found.account !== null) limits.recordClient({ account: found.account, client: requester.client });
    return tokens;
  }

  /** Creates an authenticator app's secret, which {@linkcode confirm} makes a factor. Throws `invalid_credentials`, and the errors of `enrolmentOwner`. */
  async start(
    { password }: z.output<typeof startArgs>,
    identity: Identity,
  ): Promise<Omit<NewTotpApp, "encrypted"> & { readonly enrolmentId: string }> {
    const { calls, mail, now, policy, totp } = this.#parts;
    if (identity.adminId === null && !policy.totp) {
      throw new UserError("totp_disabled", "Authenticator apps cannot be set up on this server");
    }
    const { owner, email, name, hash } = await calls.mutate(
      system.enrolmentOwner,
      { mail: mail.enabled, now: now() },
      { identity },
    );
    const kind = identity.adminId === null ? "user" : "admin";
    await checkPassword(this.#parts, { account: `${kind} ${email ?? owner}`, password, hash });
    const label = email ?? name ?? owner;
    const { encrypted, ...shown } = await totp.create({ owner, issuer: this.#appName(), label });
    const enrolmentId = await calls.mutate(system.storeEnrolment, { secret: encrypted, now: now() }, {
      identity,
    });
    return { enrolmentId, ...shown };
  }

  /** Confirms an authenticator app with its first code. Resolves to the recovery codes. Throws `invalid_code`, `invalid_enrolment`. */
  async confirm(
    { enrolmentId, code }: z.output<typeof confirmArgs>,
    identity: Identity,
  ): Promise<{ readonly recoveryCodes: readonly string[] }> {
    const { calls, hasher, now, totp } = this.#parts;
    const { owner, secret } = await calls.mutate(system.findEnrolment, { enrolmentId, now: now() }, {
      identity,
    });
    const step = await this.#attempt(
      owner,
      () => totp.stepOf({ owner, encrypted: secret, code, now: now() }),
    );
    const { codes, hashes } = newRecoveryCodes(hasher, owner);
    await calls.mutate(
      system.confirmEnrolment,
      { enrolmentId, step, recoveryHashes: hashes, now: now() },
      { identity },
    );
    return { recoveryCodes: codes };
  }

  /** Proves a factor again in the caller's session. Throws `invalid_code`, `factor_required` without a factor. */
  async prove(given: GivenProof, identity: Identity): Promise<null> {
    const { calls, now } = this.#parts;
    const own = await calls.mutate(system.ownTotp, {}, { identity });
    await this.#attempt(own.owner, async () => {
      const proof = await this.#proofOf(given, own);
      return await calls.mutate(system.proveFactor, { proof, now: now() }, { identity }) ? true : null;
    });
    return null;
  }

  /** Removes the caller's authenticator app. Throws `factor_required` unless a factor was proved recently. */
  async remove(identity: Identity): Promise<null> {
    const { calls, now } = this.#parts;
    return await calls.mutate(system.removeTotp, { now: now() }, { identity });
  }

  /** Replaces the caller's recovery codes. Throws `factor_required` unless a factor was proved recently. */
  async renewRecoveryCodes(identity: Identity): Promise<{ readonly recoveryCodes: readonly string[] }> {
    const { calls, hasher, now } = this.#parts;
    const { owner } = await calls.mutate(system.ownTotp, {}, { identity });
    const { codes, hashes } = newRecoveryCodes(hasher, owner);
    await calls.mutate(system.renewRecoveryCodes, { recoveryHashes: hashes, now: now() }, { identity });
    return { recoveryCodes: codes };
  }

  /** Runs an attempt of a signed-in caller. Its failures do not count against sign-ins. Throws `invalid_code`. */
  async #attempt<Result>(owner: string, run: () => Promise<Result | null>): Promise<Result> {
    const account = `factor of a session of ${owner}`;
    const result = await this.#parts.limits.attemptFactor({ account, client: "socket" }, run);
    if (result === null) throw new ServiceError("invalid_code");
    return result;
  }

  async #proofOf(
    given: GivenProof,
    { owner, totp }: { readonly owner: string; readonly totp: StoredTotp | null },
  ): Promise<FactorProof> {
    const { hasher, now } = this.#parts;
    if ("recoveryCode" in given) {
      return { kind: "recovery", hash: recoveryHash(hasher, { owner, code: given.recoveryCode }) };
    }
    if (totp === null) return { kind: "wrong" };
    const { factor, secret: encrypted } = totp;
    const step = await this.#parts.totp.stepOf({ owner, encrypted, code: given.code, now: now() });
    return step === null ? { kind: "wrong" } : { kind: "totp", factor, step };
  }
}
