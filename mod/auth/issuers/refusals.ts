/**
 * Recently refused subjects of external issuers, so that repeated tokens of a refused subject cause few mutations.
 */
import { othersLimits } from "../limits.ts";

export class Refusals {
  readonly #now: () => number;
  /** Expiry of each entry, oldest first. */
  readonly #until = new Map<string, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  has(key: string): boolean {
    const until = this.#until.get(key);
    if (until === undefined || until > this.#now()) return until !== undefined;
    this.#until.delete(key);
    return false;
  }

  add(key: string): void {
    this.#until.delete(key);
    this.#until.set(key, this.#now() + othersLimits.refusalKeptMs);
    if (this.#until.size <= othersLimits.refusalsKeptMax) return;
    const [oldest] = this.#until.keys();
    if (oldest !== undefined) this.#until.delete(oldest);
  }

  /** Removes an entry, because the subject may be admitted now. */
  forget(key: string): void {
    this.#until.delete(key);
  }

  clear(): void {
    this.#until.clear();
  }

  get size(): number {
    return this.#until.size;
  }
}
