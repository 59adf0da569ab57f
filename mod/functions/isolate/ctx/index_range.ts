/** The `q` of `withIndex` and `withSearchIndex`: collects conditions in index order. */
import type { Bound, IndexBounds, SearchOptions } from "../../../engine/mod.ts";
import type { SearchIndexDefinition, Value } from "../../../engine/types.ts";

type Condition = Value | undefined;

/** Builds the bounds of an index range. Throws if fields are out of order. */
export class IndexRangeBuilder {
  readonly #index: string;
  readonly #fields: readonly string[];
  readonly #eq: Condition[] = [];
  #lower: Bound | undefined;
  #upper: Bound | undefined;

  constructor(index: string, fields: readonly string[]) {
    this.#index = index;
    this.#fields = fields;
  }

  eq(field: string, value: Condition): this {
    if (this.#lower !== undefined || this.#upper !== undefined) {
      throw new TypeError(
        `${this.#about()}: eq("${field}") comes after a range, and a range ends the conditions`,
      );
    }
    this.#check("eq", field);
    this.#eq.push(value);
    return this;
  }

  gt(field: string, value: Condition): this {
    return this.#setLower("gt", field, { value, inclusive: false });
  }

  gte(field: string, value: Condition): this {
    return this.#setLower("gte", field, { value, inclusive: true });
  }

  lt(field: string, value: Condition): this {
    return this.#setUpper("lt", field, { value, inclusive: false });
  }

  lte(field: string, value: Condition): this {
    return this.#setUpper("lte", field, { value, inclusive: true });
  }

  static bounds(builder: IndexRangeBuilder): IndexBounds {
    const lower = builder.#lower;
    const upper = builder.#upper;
    return {
      eq: builder.#eq,
      ...(lower === undefined ? {} : { lower }),
      ...(upper === undefined ? {} : { upper }),
    };
  }

  #setLower(method: string, field: string, bound: Bound): this {
    this.#check(method, field);
    if (this.#lower !== undefined) throw new TypeError(`${this.#about()}: "${field}" has two lower bounds`);
    this.#lower = bound;
    return this;
  }

  #setUpper(method: string, field: string, bound: Bound): this {
    this.#check(method, field);
    if (this.#upper !== undefined) throw new TypeError(`${this.#about()}: "${field}" has two upper bounds`);
    this.#upper = bound;
    return this;
  }

  #check(method: string, field: string): void {
    const expected = this.#fields[this.#eq.length];
    if (field === expected) return;
    throw new TypeError(
      `${this.#about()}: ${method}("${field}") ${
        expected === undefined
          ? "is one condition too many"
          : `is given where a condition on "${expected}" is expected`
      }`,
    );
  }

  #about(): string {
    return `Index "${this.#index}" has the fields ${this.#fields.join(", ")}, in this order`;
  }
}

export class SearchFilterBuilder {
  readonly #index: SearchIndexDefinition;
  readonly #filters: (readonly [field: string, value: Condition])[] = [];
  #query: string | null = null;

  constructor(index: SearchIndexDefinition) {
    this.#index = index;
  }

  search(field: string, query: string): this {
    const { name, searchField } = this.#index;
    if (field !== searchField) {
      throw new TypeError(`Search index "${name}" searches in "${searchField}", not in "${field}"`);
    }
    if (this.#query !== null) throw new TypeError(`Search index "${name}": search() can be given once`);
    if (typeof query !== "string") {
      throw new TypeError(`Search index "${name}": the search query must be a string`);
    }
    this.#query = query;
    return this;
  }

  eq(field: string, value: Condition): this {
    const { name, filterFields } = this.#index;
    if (!filterFields.includes(field)) {
      throw new TypeError(
        filterFields.length === 0
          ? `Search index "${name}" has no filter fields: add "${field}" to its filterFields`
          : `Search index "${name}" can filter by ${filterFields.join(", ")}, not by "${field}"`,
      );
    }
    this.#filters.push([field, value]);
    return this;
  }

  /** Returns the collected options. Throws without a `search`. */
  static options(builder: SearchFilterBuilder): SearchOptions {
    if (builder.#query === null) {
      const { name, searchField } = builder.#index;
      throw new TypeError(`Search index "${name}" needs q.search("${searchField}", text)`);
    }
    return { query: builder.#query, filters: builder.#filters };
  }
}
