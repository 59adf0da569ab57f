/** Cached keys of an issuer, fetched when old or when a token names an unknown key (rate limited: anyone can do that). */
import type { createLocalJWKSet, CryptoKey, JSONWebKeySet } from "jose";
import { z } from "zod";
import { RateLimiter } from "../../kit/rate_limit.ts";
import { externalLimits } from "../limits.ts";
import { type BoundedFetch, OutgoingError } from "../outgoing/bounded_fetch.ts";
import { RenewedValue } from "../outgoing/renewed_value.ts";
import { readJson } from "./discovery.ts";

/** Allowed signature algorithms (contract: Authentication, point 3). */
export const signatureAlgorithms = ["RS256", "ES256", "EdDSA"] as const;

/** The header fields that select the key. */
export interface KeyHint {
  readonly alg: string;
  readonly kid?: string | undefined;
}

const keySetSchema = z.object({
  keys: z.array(z.looseObject({ kty: z.string() })).max(externalLimits.keysMax),
});

type FindKey = ReturnType<typeof createLocalJWKSet>;

export interface KeySetOptions {
  readonly url: () => Promise<string>;
  readonly fetch: BoundedFetch;
  readonly now: () => number;
}

export class KeySet {
  readonly #keys: RenewedValue<FindKey>;
  /** Rate limit of fetches caused by unknown keys. */
  readonly #missed: RateLimiter;

  constructor({ url, fetch, now }: KeySetOptions) {
    this.#keys = new RenewedValue({
      load: async () => {
        const found = keySetSchema.safeParse(await readJson(await fetch(await url()), "The key set"));
        if (!found.success) throw new OutgoingError("The key set is not valid");
        const { createLocalJWKSet } = await import("jose");
        return createLocalJWKSet(found.data as JSONWebKeySet);
      },
      freshMs: externalLimits.keysFreshMs,
      staleMsMax: externalLimits.keysStaleMsMax,
      now,
    });
    this.#missed = new RateLimiter({ ...externalLimits.missedKeyFetches, keysMax: 1, now });
  }

  /** Returns the key named by a token's header, or `null`. Rejects if no key set is available. */
  async find(hint: KeyHint): Promise<CryptoKey | null> {
    if ((hint.kid?.length ?? 0) > externalLimits.keyIdCharsMax) return null;
    const { loads } = this.#keys;
    const found = await keyOf(await this.#keys.get(), hint);
    if (found !== null || this.#keys.loads !== loads) return found;
    // A running fetch serves all callers.
    if (!this.#keys.loading && this.#missed.take("") > 0) return null;
    return await keyOf(await this.#keys.getNew(), hint);
  }
}

async function keyOf(find: FindKey, { alg, kid }: KeyHint): Promise<CryptoKey | null> {
  try {
    return await find({ alg, ...(kid !== undefined && { kid }) });
  } catch (error) {
    const { errors } = await import("jose");
    // Zero, several, or an unusable key: the signing key cannot be determined.
    if (error instanceof errors.JOSEError || error instanceof TypeError || error instanceof DOMException) {
      return null;
    }
    throw error;
  }
}
