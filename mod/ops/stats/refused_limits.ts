/** Counts mutations that a rate limit of the app refused, by the name of the limit. */
import { appRateLimits } from "../../functions/limits.ts";
import type { CallError } from "../../functions/outcome.ts";
import { statsLimits } from "../limits.ts";

export interface RefusedLimit {
  readonly name: string;
  /** Since the server started. */
  readonly count: number;
  /** Milliseconds since the epoch. */
  readonly lastAt: number;
}

export class RefusedLimits {
  readonly #limits = new Map<string, RefusedLimit>();
  #total = 0;

  /** All refusals since the start, including those of limits that are not listed. */
  get total(): number {
    return this.#total;
  }

  /** The first limits that refused a call. */
  get limits(): RefusedLimit[] {
    return [...this.#limits.values()];
  }

  /** Counts the error of a mutation if it is the refusal of a rate limit. */
  add({ kind, data }: CallError, now: number): void {
    if (kind !== "user" || data?.code !== "rate_limited") return;
    const { name } = (data.data ?? {}) as { readonly name?: unknown };
    // Errors that the app throws itself may have other data.
    if (typeof name !== "string" || name.length > appRateLimits.nameCharsMax) return;
    this.#total++;
    const known = this.#limits.get(name);
    if (known === undefined && this.#limits.size >= statsLimits.refusedLimitsMax) return;
    this.#limits.set(name, { name, count: (known?.count ?? 0) + 1, lastAt: now });
  }
}
