/** Sizes and exact counts of all tables, cached for a while because they read every page of the database. */
import type { TableSize } from "../../engine/mod.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import { opsLimits } from "../limits.ts";
import { system } from "./system.ts";

/** Sizes at a time, in milliseconds since the epoch. */
export interface CachedSizes {
  readonly at: number;
  readonly tables: readonly TableSize[];
}

export class TableSizes {
  readonly #calls: SystemCalls;
  readonly #now: () => number;
  #cached: CachedSizes | null = null;
  #loading: Promise<CachedSizes> | null = null;

  constructor({ calls, now }: { readonly calls: SystemCalls; readonly now: () => number }) {
    this.#calls = calls;
    this.#now = now;
  }

  async read(): Promise<CachedSizes> {
    if (this.#cached !== null && this.#now() - this.#cached.at < opsLimits.tableSizesKnownMs) {
      return this.#cached;
    }
    return await (this.#loading ??= this.#ask().finally(() => this.#loading = null));
  }

  async #ask(): Promise<CachedSizes> {
    const tables = await this.#calls.query(system.sizes, {});
    return this.#cached = { at: this.#now(), tables };
  }
}
