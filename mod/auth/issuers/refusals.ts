/**
 * Subjects of other issuers that were refused a moment ago, by whatever names them: who comes again and again costs the
 * writer one turn every now and then, not one a token.
 */
import { othersLimits } from "../limits.ts";

export class Refusals {
  readonly #now: () => number;
  /** Until when each counts, the oldest first. */
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

  /** Who was refused may be let in by now. */
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
