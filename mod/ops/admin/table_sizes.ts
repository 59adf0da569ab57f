/** Sizes and exact counts of all tables, cached for a while because they read every page of the database. */
import type { TableSize } from "../../engine/mod.ts";
import type { SystemCalls } from "../../functions/system_calls.ts";
import { opsLimits } from "../limits.ts";
import { system } from "./system.ts";

/** Sizes at a time, in milliseconds since the epoch. */
export interface KnownSizes {
  readonly at: number;
  readonly tables: readonly TableSize[];
}

export class TableSizes {
  readonly #calls: SystemCalls;
  readonly #now: () => number;
  #known: KnownSizes | null = null;
  #asking: Promise<KnownSizes> | null = null;

  constructor({ calls, now }: { readonly calls: SystemCalls; readonly now: () => number }) {
    this.#calls = calls;
    this.#now = now;
  }

  async read(): Promise<KnownSizes> {
    if (this.#known !== null && this.#now() - this.#known.at < opsLimits.tableSizesKnownMs) {
      return this.#known;
    }
    return await (this.#asking ??= this.#ask().finally(() => this.#asking = null));
  }

  async #ask(): Promise<KnownSizes> {
    const tables = await this.#calls.query(system.sizes, {});
    return this.#known = { at: this.#now(), tables };
  }
}
