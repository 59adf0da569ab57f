/** A cached document of a provider or issuer, renewed with backoff. Callers with an old value wait only briefly. */
import { externalLimits } from "../limits.ts";

export interface RenewedValueOptions<Value> {
  readonly load: () => Promise<Value>;
  readonly freshMs: number;
  /** Maximum age of the value while it cannot be renewed. */
  readonly staleMsMax: number;
  readonly now: () => number;
}

export class RenewedValue<Value> {
  readonly #options: RenewedValueOptions<Value>;
  #known: { readonly value: Value; readonly at: number } | null = null;
  /** The running request, and a promise that settles when callers with an old value stop waiting. */
  #loading: { readonly value: Promise<Value>; readonly patience: Promise<void> } | null = null;
  #loads = 0;
  #failures = 0;
  #retryAt = 0;
  #lastError: unknown = null;

  constructor(options: RenewedValueOptions<Value>) {
    this.#options = options;
  }

  /** Rejects with the error of the last attempt during the backoff. */
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

  get loads(): number {
    return this.#loads;
  }

  /** Whether a request is running. */
  get loading(): boolean {
    return this.#loading !== null;
  }

  /** Like `get`, but returns a value requested now or already in flight, if possible. */
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

  /** Returns the new value if it arrives soon, otherwise the old one. The request continues. */
  async #renewOr(old: Value): Promise<Value> {
    const renewed = this.#renew();
    // Even if no caller waits any longer, the failure is recorded.
    renewed.catch(() => {});
    if (this.#loading === null) return await renewed;
    return await Promise.race([renewed, this.#loading.patience.then(() => old)]);
  }

  #loadOnce(): { readonly value: Promise<Value>; readonly patience: Promise<void> } {
    if (this.#loading !== null) return this.#loading;
    const patience = Promise.withResolvers<void>();
    const timer = setTimeout(patience.resolve, externalLimits.renewalPatienceMs);
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
      const pauseMs = Math.min(externalLimits.retryMsMax, externalLimits.retryMs * 2 ** this.#failures);
      this.#failures = Math.min(this.#failures + 1, 16);
      this.#retryAt = now() + pauseMs;
      this.#lastError = error;
      throw error;
    }
  }
}
