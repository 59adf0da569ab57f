/** Administrators: setup of the first one, the operations of the command line, and impersonation. */
import { randomBytes } from "node:crypto";
import { ServiceError } from "../../errors.ts";
import type { AdminRole } from "../../functions/admin_roles.ts";
import type { AccountParts } from "../accounts.ts";
import { normalizedEmail } from "../email_address.ts";
import type { AdminSummary, PasswordReset } from "../isolate_functions/admins.ts";
import { checkedPassword } from "../passwords.ts";
import type { Requester } from "../attempt_limits.ts";
import type { Tokens } from "../tokens/session_tokens.ts";
import { system } from "../system_calls.ts";
import { sameSecret } from "../tokens/token_hash.ts";

interface SetupRequest {
  readonly token: string;
  readonly email: string;
  readonly password: string;
}

export class AdminAccounts {
  readonly #parts: AccountParts;
  /** Hash of the setup token, while the server has no administrator. */
  #setupTokenHash: string | null = null;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Whether no administrator exists yet. */
  needsSetup(): Promise<boolean> {
    return this.#parts.calls.query(system.needsSetup, {});
  }

  /** Returns the token that creates the first administrator, or `null` if one exists. Valid until the server stops. */
  async issueSetupToken(): Promise<string | null> {
    if (!await this.#parts.calls.queryInWriter(system.needsSetup, {})) return null;
    const token = randomBytes(32).toString("base64url");
    this.#setupTokenHash = this.#parts.hasher.hash("setup", token);
    return token;
  }

  /** Creates the first administrator. Throws `setup_done`, `invalid_setup_token` and validation errors. */
  async setUp({ token, ...account }: SetupRequest, requester: Requester): Promise<Tokens> {
    const { calls, hasher, limits, passwords, sessions } = this.#parts;
    limits.tryCredential(requester.client);
    if (!await this.needsSetup()) throw new ServiceError("setup_done");
    if (this.#setupTokenHash === null || !sameSecret(hasher.hash("setup", token), this.#setupTokenHash)) {
      throw new ServiceError("invalid_setup_token");
    }
    const { email, password } = checkedAccount(account);
    const prepared = sessions.prepare(requester);
    const session = await calls.mutate(system.setUpFirstAdmin, {
      email,
      passwordHash: await passwords.hash(password),
      session: prepared.row,
    });
    if (session === null) throw new ServiceError("setup_done");
    this.#setupTokenHash = null;
    return await sessions.complete(session, prepared);
  }

  /** Creates an administrator, by default an owner. Throws `email_in_use` and validation errors. */
  async create(
    { role, ...account }: {
      readonly email: string;
      readonly password: string;
      readonly role?: AdminRole | undefined;
    },
  ): Promise<void> {
    const { calls, passwords } = this.#parts;
    const { email, password } = checkedAccount(account);
    const passwordHash = await passwords.hash(password);
    const created = await calls.mutate(system.createAdmin, { email, passwordHash, ...(role && { role }) });
    if (created === null) {
      throw new ServiceError("email_in_use");
    }
  }

  /** Sets an administrator's password and ends their sessions, but keeps their factors. Resolves to `null` if unknown. */
  async resetPassword(
    account: { readonly email: string; readonly password: string },
  ): Promise<PasswordReset | null> {
    const { calls, passwords } = this.#parts;
    const { email, password } = checkedAccount(account);
    return await calls.mutate(system.setAdminPassword, {
      email,
      passwordHash: await passwords.hash(password),
    });
  }

  /** Removes the second factors and passkeys of the accounts with an address. Resolves to whether one exists. Throws `invalid_email`. */
  async removeFactors(email: string): Promise<boolean> {
    const normalized = normalizedEmail(email);
    if (normalized === null) throw new ServiceError("invalid_email");
    return await this.#parts.calls.mutate(system.removeFactors, { email: normalized });
  }

  list(): Promise<AdminSummary[]> {
    return this.#parts.calls.query(system.listAdmins, {});
  }

  /** Ends all sessions of the account with an address. Resolves to the number of sessions; `null` if unknown. */
  async revokeSessions(email: string): Promise<number | null> {
    const normalized = normalizedEmail(email);
    if (normalized === null) throw new ServiceError("invalid_email");
    return await this.#parts.calls.mutate(system.revokeSessions, { email: normalized });
  }
}

function checkedAccount({ email, password }: { readonly email: string; readonly password: string }) {
  const normalized = normalizedEmail(email);
  if (normalized === null) throw new ServiceError("invalid_email");
  return { email: normalized, password: checkedPassword(password) };
}

interface ImpersonationRequest {
  readonly userId: string;
  readonly adminId: string;
  /** The administrator's own session. The impersonation ends with it. */
  readonly adminSession: string;
  /** Fixed expiry of the session; refreshing does not extend it. */
  readonly lifetimeMs: number;
  readonly userAgent: string | null;
}

export class Impersonation {
  readonly #parts: AccountParts;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Opens an impersonation session; `null` if the user does not exist or the administrator's session has ended. */
  async impersonate(
    { userId, adminId, adminSession, lifetimeMs, userAgent }: ImpersonationRequest,
  ): Promise<Tokens | null> {
    const { calls, sessions } = this.#parts;
    const prepared = sessions.prepare({ lifetimeMs, userAgent });
    const session = await calls.mutate(system.impersonate, {
      userId,
      adminId,
      adminSession,
      session: prepared.row,
    });
    return session === null ? null : await sessions.complete(session, prepared);
  }
}
