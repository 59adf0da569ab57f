/**
 * The keys of an issuer: fetched once and kept, fetched again when they are old or when a token names a key that is not
 * among them: at once, as issuers change keys when they like, but only so often, as anybody can make tokens that name
 * keys nobody has.
 */
import type { createLocalJWKSet, CryptoKey, JSONWebKeySet } from "jose";
import { z } from "zod";
import { RateLimiter } from "../../kit/rate_limit.ts";
import { othersLimits } from "../limits.ts";
import { type BoundedFetch, OutgoingError } from "../outgoing/bounded_fetch.ts";
import { Remembered } from "../outgoing/remembered.ts";
import { readJson } from "./discovery.ts";

/** Algorithms a signature may have (contract: Authentication, point 3). */
export const signatureAlgorithms = ["RS256", "ES256", "EdDSA"] as const;

/** What tells which key signed a token. */
export interface KeyHint {
  readonly alg: string;
  readonly kid?: string | undefined;
}

const keySetSchema = z.object({
  keys: z.array(z.looseObject({ kty: z.string() })).max(othersLimits.keysMax),
});

type FindKey = ReturnType<typeof createLocalJWKSet>;

export interface KeySetOptions {
  /** Where the set is. */
  readonly url: () => Promise<string>;
  readonly fetch: BoundedFetch;
  readonly now: () => number;
}

export class KeySet {
  readonly #keys: Remembered<FindKey>;
  /** Fetches because of keys that were not in the set. */
  readonly #missed: RateLimiter;

  constructor({ url, fetch, now }: KeySetOptions) {
    this.#keys = new Remembered({
      load: async () => {
        const found = keySetSchema.safeParse(await readJson(await fetch(await url()), "The key set"));
        if (!found.success) throw new OutgoingError("The key set is not one");
        const { createLocalJWKSet } = await import("jose");
        return createLocalJWKSet(found.data as JSONWebKeySet);
      },
      freshMs: othersLimits.keysFreshMs,
      staleMsMax: othersLimits.keysStaleMsMax,
      now,
    });
    this.#missed = new RateLimiter({ ...othersLimits.missedKeyFetches, keysMax: 1, now });
  }

  /** The key that a token's header names, or `null`. Rejects when no key set can be had at all. */
  async find(hint: KeyHint): Promise<CryptoKey | null> {
    if ((hint.kid?.length ?? 0) > othersLimits.keyIdCharsMax) return null;
    const { loads } = this.#keys;
    const found = await keyOf(await this.#keys.get(), hint);
    if (found !== null || this.#keys.loads !== loads) return found;
    // A fetch that is under way answers everybody.
    if (!this.#keys.loading && this.#missed.take("") > 0) return null;
    return await keyOf(await this.#keys.getNew(), hint);
  }
}

async function keyOf(find: FindKey, { alg, kid }: KeyHint): Promise<CryptoKey | null> {
  try {
    return await find({ alg, ...(kid !== undefined && { kid }) });
  } catch (error) {
    const { errors } = await import("jose");
    // None, more than one, or one that cannot be used: in no case is it known which key it is.
    if (error instanceof errors.JOSEError || error instanceof TypeError || error instanceof DOMException) {
      return null;
    }
    throw error;
  }
}
