/** `ctx.db.aggregate(table, name)`: a range of a declared aggregate. */
import type { AggregateRange, IndexBounds } from "../../../engine/mod.ts";
import type { AggregateDefinition, Doc, TableDefinition } from "../../../engine/types.ts";
import type { Frame } from "../runs/call.ts";
import { notJsonHint } from "../runs/json_text.ts";
import { IndexRangeBuilder } from "./index_range.ts";

export class AggregateApi {
  readonly #frame: Frame;
  readonly #table: string;
  readonly #aggregate: AggregateDefinition;
  readonly #bounds: IndexBounds;

  /** @throws TypeError for an unknown aggregate or a range that does not match it. */
  constructor(
    frame: Frame,
    { table, definition, name, range }: {
      readonly table: string;
      readonly definition: TableDefinition;
      readonly name: string;
      readonly range: ((q: never) => unknown) | undefined;
    },
  ) {
    const { aggregates = [] } = definition;
    const aggregate = aggregates.find((candidate) => candidate.name === name);
    if (aggregate === undefined) {
      const names = aggregates.map((candidate) => candidate.name).join(", ");
      throw new TypeError(
        `Table "${table}" has no aggregate "${name}"; its aggregates are ${names || "none"}. ` +
          `Add it in schema.ts: .aggregate("${name}", { by: ["field"] })`,
      );
    }
    const builder = new IndexRangeBuilder(name, [...aggregate.by, "_creationTime"]);
    if (range !== undefined && range(builder as never) !== builder) {
      throw new TypeError(
        `aggregate("${table}", "${name}", ...) must return the q it was given: (q) => q.eq("field", value)`,
      );
    }
    this.#frame = frame;
    this.#table = table;
    this.#aggregate = aggregate;
    this.#bounds = IndexRangeBuilder.bounds(builder);
  }

  get [notJsonHint](): string {
    return "is an aggregate that was not read: end it with .count(), .sum(field), .min(field), .max(field), .at(n) or .indexOf(id)";
  }

  async count(): Promise<number> {
    return (await this.#range()).totals().count;
  }

  async sum(field: string): Promise<number> {
    const { sum } = await this.#totalsOf(field);
    if (Number.isFinite(sum)) return sum;
    throw new RangeError(
      `The sum of "${field}" in aggregate "${this.#aggregate.name}" of table "${this.#table}" exceeds the range of ` +
        "numbers: read a smaller range",
    );
  }

  async min(field: string): Promise<number | null> {
    return (await this.#totalsOf(field)).min;
  }

  async max(field: string): Promise<number | null> {
    return (await this.#totalsOf(field)).max;
  }

  async at(position: number): Promise<Doc | null> {
    if (!Number.isSafeInteger(position)) {
      throw new TypeError(`at() needs a whole number, not ${String(position)}`);
    }
    return (await this.#range()).at(position);
  }

  async indexOf(id: string): Promise<number> {
    if (typeof id !== "string") throw new TypeError(`indexOf() needs the id of a document, not ${typeof id}`);
    return (await this.#range()).indexOf(id);
  }

  async #totalsOf(field: string) {
    const { name, sum } = this.#aggregate;
    const position = sum.indexOf(field);
    if (position < 0) {
      throw new TypeError(
        `Aggregate "${name}" of table "${this.#table}" has no totals of "${field}"; it sums ${
          sum.join(", ") || "no fields"
        }. Add it to the aggregate's sum in schema.ts`,
      );
    }
    const totals = (await this.#range()).totals().fields[position];
    return totals ?? { sum: 0, min: null, max: null };
  }

  async #range(): Promise<AggregateRange> {
    if (this.#frame.busy) await this.#frame.nestedSettled();
    return this.#frame.reads.aggregate(this.#table, this.#aggregate.name, this.#bounds);
  }
}
