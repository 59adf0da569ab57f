/** The filter of `vectorSearch`: allowed values per field, combined with `or` for one field and `and` across fields. */
import type { Value } from "../../../engine/types.ts";

type Allowed = ReadonlyMap<string, readonly (Value | undefined)[]>;

export class VectorFilter {
  readonly allowed: Allowed;

  constructor(allowed: Allowed) {
    this.allowed = allowed;
  }
}

/** Returns the app's filter in the engine's form. */
export function vectorFilter(
  filter: unknown,
  index: { readonly name: string; readonly filterFields: readonly string[] },
): (readonly [field: string, values: readonly (Value | undefined)[]])[] {
  if (filter === undefined) return [];
  if (typeof filter !== "function") {
    throw new TypeError(
      'The filter of vectorSearch must be a function, such as (q) => q.eq("channel", "general")',
    );
  }
  const built: unknown = filter({
    eq: (field: string, value: Value | undefined) => {
      if (!index.filterFields.includes(field)) {
        throw new TypeError(
          `Vector index "${index.name}" can filter by ${
            index.filterFields.join(", ") || "nothing"
          }, not by "${field}"`,
        );
      }
      return new VectorFilter(new Map([[field, [value]]]));
    },
    or: (...filters: unknown[]) => new VectorFilter(joined(filters)),
    and: (...filters: unknown[]) => new VectorFilter(intersected(filters)),
  });
  return [...part(built).allowed];
}

function part(filter: unknown): VectorFilter {
  if (filter instanceof VectorFilter) return filter;
  throw new TypeError("A vector filter is made of q.eq(field, value), q.or(...) and q.and(...)");
}

function joined(filters: readonly unknown[]): Allowed {
  const values: (Value | undefined)[] = [];
  let field: string | null = null;
  for (const { allowed } of filters.map(part)) {
    for (const [name, more] of allowed) {
      if (allowed.size > 1 || (field !== null && field !== name)) {
        throw new TypeError(
          "q.or() of a vector filter joins values of one field; use q.and() for several fields",
        );
      }
      field = name;
      values.push(...more);
    }
  }
  if (field === null) throw new TypeError("q.or() of a vector filter needs at least one condition");
  return new Map([[field, values]]);
}

function intersected(filters: readonly unknown[]): Allowed {
  const all = new Map<string, readonly (Value | undefined)[]>();
  for (const { allowed } of filters.map(part)) {
    for (const [name, values] of allowed) {
      if (all.has(name)) throw new TypeError(`q.and() of a vector filter has two conditions on "${name}"`);
      all.set(name, values);
    }
  }
  return all;
}
