/** JWTs of configured issuers as credentials (contract: Authentication, point 3). */
import { LRUCache } from "lru-cache";
import type { CommitEntry } from "../../engine/types.ts";
import { ServiceError, UserError } from "../../errors.ts";
import type { Identity } from "../../functions/identity.ts";
import { emailAsGiven } from "../email_address.ts";
import { RowCache } from "../../kit/row_cache.ts";
import { authLimits, externalLimits } from "../limits.ts";
import type { KnownIdentity, ProvidedIdentity } from "../isolate_functions/identities/identity_rows.ts";
import { system, type SystemCalls } from "../system_calls.ts";
import type { KeySet } from "./key_set.ts";
import {
  checkClaims,
  type ClaimsFault,
  type ReadToken,
  readToken,
  type SignatureFault,
  signatureFault,
} from "./signed_token.ts";

export interface TrustedIssuer {
  /** Compared exactly. */
  readonly issuer: string;
  readonly audience: readonly string[];
  /** Whether to link a user with the same address, if both sides have verified it. */
  readonly linkByEmail: boolean;
  readonly keys: KeySet;
}

export type ExternalRefusal =
  | "malformed access token"
  | "unknown token issuer"
  | SignatureFault
  | ClaimsFault;

export type ExternalVerification =
  | { readonly ok: true; readonly identity: Identity; readonly expiresAt: number }
  | { readonly ok: false; readonly error: ExternalRefusal };

export interface ExternalTokensOptions {
  /** By `iss`. */
  readonly issuers: () => ReadonlyMap<string, TrustedIssuer>;
  readonly calls: SystemCalls;
  readonly now: () => number;
}

/** Maximum number of identities looked up concurrently. */
const RECHECKED_AT_ONCE = 256;

export class ExternalTokens {
  readonly #options: ExternalTokensOptions;
  /** Users by issuer and subject. */
  readonly #identities: RowCache<KnownIdentity>;
  /** Recently refused subjects, also by issuer and subject, so that their tokens cause few mutations. */
  readonly #refusals: LRUCache<string, true>;
  /** Admissions in progress, so that concurrent tokens of one subject cause a single mutation. */
  readonly #admissions = new Map<string, Promise<boolean>>();

  constructor(options: ExternalTokensOptions) {
    this.#options = options;
    this.#refusals = new LRUCache({
      max: externalLimits.refusalsKeptMax,
      ttl: externalLimits.refusalKeptMs,
      // Without a timer, and by the clock of the server.
      ttlResolution: 0,
      perf: { now: options.now },
    });
    this.#identities = new RowCache({
      rowsMax: externalLimits.cachedIdentitiesMax,
      idOf: keyOf,
      load: (key) => {
        const [issuer = "", subject = ""] = JSON.parse(key) as string[];
        return options.calls.query(system.findSubject, { issuer, subject });
      },
    });
  }

  /** Verifies issuer, signature, times and audience. Throws `unavailable` if the issuer's keys cannot be fetched. */
  async verify(text: string): Promise<ExternalVerification> {
    const { issuers, now } = this.#options;
    const token = readToken(text, "access");
    if (token === null) return { ok: false, error: "malformed access token" };
    const { iss } = token.claims;
    const issuer = typeof iss === "string" ? issuers().get(iss) : undefined;
    if (issuer === undefined) return { ok: false, error: "unknown token issuer" };
    const fault = await signatureFault(token, issuer.keys).catch((error) => {
      throw new ServiceError("unavailable", "Cannot fetch the keys of the token's issuer", { cause: error });
    });
    if (fault !== null) return { ok: false, error: fault };
    const standing = checkClaims(token.claims, { audience: issuer.audience, now: now() });
    if (!standing.ok) return standing;
    const userId = await this.#userOf(standing.subject, { issuer, token });
    if (userId === null) return { ok: false, error: "invalid access token claims" };
    const identity = {
      principal: `user:${userId}`,
      userId,
      adminId: null,
      sessionId: null,
      claims: token.claims,
    };
    return { ok: true, identity, expiresAt: standing.expiresAt };
  }

  /** Applies commits. Returns the principals whose tokens are no longer valid, except for deleted users. */
  applyCommits(entries: readonly CommitEntry[]): string[] {
    const unlinked: string[] = [];
    for (const { changes } of entries) {
      for (const { table, id, doc } of changes) {
        if (table === "_identities" && typeof doc === "string") this.#linked(doc);
        if (doc !== null || (table !== "_users" && table !== "_identities")) continue;
        for (const known of [...this.#identities.rows()]) {
          if (id !== (table === "_users" ? known.userId : known.identityId)) continue;
          this.#identities.invalidate(keyOf(known));
          if (table === "_identities") unlinked.push(`user:${known.userId}`);
        }
        // The subject of an identity that is being looked up is not known yet.
        this.#identities.invalidateLookups();
      }
    }
    return unlinked;
  }

  /** Looks up all cached subjects again after commits may have been missed. Returns the principals that are gone. */
  async recheck(): Promise<string[]> {
    const known = [...this.#identities.rows()];
    this.#identities.clear();
    this.#refusals.clear();
    const gone: string[] = [];
    for (let from = 0; from < known.length; from += RECHECKED_AT_ONCE) {
      await Promise.all(
        known.slice(from, from + RECHECKED_AT_ONCE).map(async (identity) => {
          const found = await this.#identities.find(keyOf(identity));
          if (found?.userId !== identity.userId) gone.push(`user:${identity.userId}`);
        }),
      );
    }
    return gone;
  }

  async #userOf(
    subject: string,
    { issuer, token }: { readonly issuer: TrustedIssuer; readonly token: ReadToken },
  ): Promise<string | null> {
    const key = keyOf({ issuer: issuer.issuer, subject });
    if (this.#refusals.has(key)) return null;
    const known = await this.#identities.find(key);
    if (known !== null) return known.userId;
    // Refused during the lookup.
    if (this.#refusals.has(key)) return null;
    let admission = this.#admissions.get(key);
    if (admission === undefined) {
      admission = this.#admit(subject, { issuer, token }).then((isAdmitted) => {
        if (!isAdmitted) this.#refusals.set(key, true);
        return isAdmitted;
      }).finally(() => this.#admissions.delete(key));
      this.#admissions.set(key, admission);
    }
    return await admission ? (await this.#identities.find(key))?.userId ?? null : null;
  }

  /** Creates the subject's user. Resolves to whether it was admitted. */
  async #admit(
    subject: string,
    { issuer, token }: { readonly issuer: TrustedIssuer; readonly token: ReadToken },
  ): Promise<boolean> {
    try {
      return await this.#options.calls.mutate(system.admitSubject, {
        arrival: {
          identity: identityFromClaims(token, { issuer: issuer.issuer, subject }),
          claims: token.claims,
          signups: true,
          linkByEmail: issuer.linkByEmail,
          takenEmail: "without",
        },
      });
    } catch (error) {
      // A hook of the app refused the user.
      if (error instanceof UserError) return false;
      throw error;
    }
  }

  /** Handles a stored identity: its subject now has a user. */
  #linked(doc: string): void {
    if (this.#refusals.size === 0) return;
    const { issuer, subject } = JSON.parse(doc) as { readonly issuer: string; readonly subject: string };
    this.#refusals.delete(keyOf({ issuer, subject }));
  }
}

function keyOf({ issuer, subject }: { readonly issuer: string; readonly subject: string }): string {
  return JSON.stringify([issuer, subject]);
}

/** Returns the person described by the token's claims (OpenID Connect Core, section 5.1). */
export function identityFromClaims(
  { claims }: Pick<ReadToken, "claims">,
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
): ProvidedIdentity {
  const { email: address, email_verified: verified, name } = claims;
  // Some providers send booleans as strings.
  const counts = typeof address === "string" && (verified === true || verified === "true");
  const email = counts ? emailAsGiven(address) : null;
  const shown = typeof name === "string" ? name.trim().slice(0, authLimits.nameCharsMax).toWellFormed() : "";
  return { issuer, subject, ...(email !== null && { email }), ...(shown !== "" && { name: shown }) };
}
