/**
 * A document of a provider or issuer that is kept, renewed when it is old, and asked for ever more seldom while it cannot
 * be had. Who asks for an old one waits a moment for its successor, not for as long as the other side may take.
 */
import { othersLimits } from "../limits.ts";

export interface RememberedOptions<Value> {
  readonly load: () => Promise<Value>;
  /** A value is renewed when it is older than this. */
  readonly freshMs: number;
  /** While it cannot be renewed a value is used up to this age. */
  readonly staleMsMax: number;
  readonly now: () => number;
}

export class Remembered<Value> {
  readonly #options: RememberedOptions<Value>;
  #known: { readonly value: Value; readonly at: number } | null = null;
  /** The one request under way, and what settles when nobody who has an old value need wait for it any longer. */
  #loading: { readonly value: Promise<Value>; readonly patience: Promise<void> } | null = null;
  #loads = 0;
  #failures = 0;
  #retryAt = 0;
  #lastError: unknown = null;

  constructor(options: RememberedOptions<Value>) {
    this.#options = options;
  }

  /** Rejects with what the last attempt failed with, without another one while it is too early for that. */
  async get(): Promise<Value> {
    const { freshMs, staleMsMax, now } = this.#options;
    const known = this.#known;
    if (known !== null && now() - known.at < freshMs) return known.value;
    try {
      if (known === null || now() - known.at >= staleMsMax) return await this.#renew();
      return await this.#renewOr(known.value);
    } catch (error) {
      if (this.#known !== null && now() - this.#known.at < staleMsMax) return this.#known.value;
      throw error;
    }
  }

  /** Values that came so far. */
  get loads(): number {
    return this.#loads;
  }

  /** Whether a value is on its way. */
  get loading(): boolean {
    return this.#loading !== null;
  }

  /** Like `get`, but of a value that is asked for now or on its way already, if one is to be had. */
  async getNew(): Promise<Value> {
    try {
      return await this.#renew();
    } catch {
      return await this.get();
    }
  }

  #renew(): Promise<Value> {
    if (this.#loading === null && this.#options.now() < this.#retryAt) return Promise.reject(this.#lastError);
    return this.#loadOnce().value;
  }

  /** The new value if it comes soon, else the old one. The request goes on, and others who ask do not wait for it anew. */
  async #renewOr(old: Value): Promise<Value> {
    const renewed = this.#renew();
    // Whether anybody still waits for it or not: that it failed is remembered.
    renewed.catch(() => {});
    if (this.#loading === null) return await renewed;
    return await Promise.race([renewed, this.#loading.patience.then(() => old)]);
  }

  #loadOnce(): { readonly value: Promise<Value>; readonly patience: Promise<void> } {
    if (this.#loading !== null) return this.#loading;
    const patience = Promise.withResolvers<void>();
    const timer = setTimeout(patience.resolve, othersLimits.renewalPatienceMs);
    const value = this.#load().finally(() => {
      clearTimeout(timer);
      this.#loading = null;
    });
    return this.#loading = { value, patience: patience.promise };
  }

  async #load(): Promise<Value> {
    const { load, now } = this.#options;
    try {
      const value = await load();
      this.#known = { value, at: now() };
      this.#loads++;
      this.#failures = 0;
      this.#retryAt = 0;
      return value;
    } catch (error) {
      const pauseMs = Math.min(othersLimits.retryMsMax, othersLimits.retryMs * 2 ** this.#failures);
      this.#failures = Math.min(this.#failures + 1, 16);
      this.#retryAt = now() + pauseMs;
      this.#lastError = error;
      throw error;
    }
  }
}
