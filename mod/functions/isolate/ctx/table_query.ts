/** `ctx.db.query(table)`: an immutable query builder and its terminal methods. */
import { withHelp } from "../../../explained.ts";
import type { IndexPositions, ScanOptions, ScanRow } from "../../../engine/mod.ts";
import type { Doc, TableDefinition } from "../../../engine/types.ts";
import type { PaginationOptions, PaginationResult } from "../../api/database.ts";
import type { Frame } from "../runs/call.ts";
import {
  type CursorOwner,
  cursorOwner,
  decodeCursor,
  encodeCursor,
  type IndexSource,
  type Place,
  type SearchSource,
} from "./cursor.ts";
import { filterPredicate } from "./filter_expression.ts";
import { IndexRangeBuilder, SearchFilterBuilder } from "./index_range.ts";
import type { TracedRead } from "../runs/read_tracer.ts";
import { notJsonHint } from "../runs/json_text.ts";

type Predicate = (doc: Doc) => boolean;

interface QueryState {
  readonly frame: Frame;
  readonly table: string;
  readonly definition: TableDefinition;
  readonly source: IndexSource | SearchSource | null;
  readonly order: "asc" | "desc" | null;
  readonly predicates: readonly Predicate[];
}

/** A row with its position, for `paginate`. */
interface PlacedRow {
  readonly doc: Doc;
  readonly place: Place;
}

const wholeTable: IndexSource = {
  from: "index",
  index: "by_creation_time",
  fields: ["_creationTime"],
  bounds: { eq: [] },
};

const builtInFields: ReadonlyMap<string, readonly string[]> = new Map([
  ["by_creation_time", ["_creationTime"]],
  ["by_id", ["_id"]],
]);

/** Symbol for access to row positions by the service. App code cannot name it. */
export const positionsIn: unique symbol = Symbol("positions");

export interface QueryPositions {
  /** Counts rows, up to `max`. */
  readonly count: (max: number) => number;
  /** Returns the cursor after a number of rows (at least 1). `null` if there are fewer. */
  readonly cursorBehind: (rows: number) => string | null;
  /** Returns the cursor after the row that is this many rows (at least 1) before a cursor. `null` if there are fewer. */
  readonly cursorBefore: (cursor: string, rows: number) => string | null;
}

export class TableQueryApi {
  readonly #state: QueryState;
  #cursorOwner: CursorOwner | null = null;
  /** The record of the running read, if the call is traced. */
  #trace: TracedRead | null = null;

  constructor(state: QueryState) {
    this.#state = state;
  }

  get [notJsonHint](): string {
    return "is a query that was not run: end it with .collect(), .take(n), .first(), .unique(), .count() or .paginate()";
  }

  withIndex(name: string, range?: (q: never) => unknown): TableQueryApi {
    const { table, definition } = this.#sourceless("withIndex");
    const fields = indexFields(definition).get(name);
    if (fields === undefined) {
      const names = [...indexFields(definition).keys()].join(", ");
      throw withHelp(
        new TypeError(
          `Table "${table}" has no index "${name}"; its indexes are ${names}. Add it in schema.ts: .index("${name}", ["field"])`,
        ),
        "filter",
      );
    }
    const builder = new IndexRangeBuilder(name, fields);
    if (range !== undefined && range(builder as never) !== builder) {
      throw new TypeError(
        `withIndex("${name}", ...) must return the q it was given: (q) => q.eq("field", value)`,
      );
    }
    return this.#with({
      source: { from: "index", index: name, fields, bounds: IndexRangeBuilder.bounds(builder) },
    });
  }

  withSearchIndex(name: string, filter: (q: never) => unknown): TableQueryApi {
    const { table, definition } = this.#sourceless("withSearchIndex");
    const index = definition.searchIndexes.find((candidate) => candidate.name === name);
    if (index === undefined) {
      const names = definition.searchIndexes.map((candidate) => candidate.name);
      throw new TypeError(
        `Table "${table}" has no search index "${name}"; its search indexes are ${
          names.join(", ") || "none"
        }`,
      );
    }
    const builder = new SearchFilterBuilder(index);
    if (typeof filter !== "function" || filter(builder as never) !== builder) {
      throw new TypeError(
        `withSearchIndex("${name}", ...) needs a function: (q) => q.search("${index.searchField}", text)`,
      );
    }
    return this.#with({
      source: {
        from: "search",
        index: name,
        fields: [index.searchField, ...index.filterFields],
        search: SearchFilterBuilder.options(builder),
      },
    });
  }

  order(order: "asc" | "desc"): TableQueryApi {
    if (order !== "asc" && order !== "desc") throw new TypeError('order() takes "asc" or "desc"');
    if (this.#state.source?.from === "search") {
      throw new TypeError("A search has its own order: the best match first");
    }
    if (this.#state.order !== null) throw new TypeError("The order of this query is already chosen");
    return this.#with({ order });
  }

  filter(condition: unknown): TableQueryApi {
    return this.#with({ predicates: [...this.#state.predicates, filterPredicate(condition)] });
  }

  async collect(): Promise<Doc[]> {
    await this.#nestedSettled();
    return this.#take(Infinity);
  }

  async take(count: number): Promise<Doc[]> {
    if (!Number.isInteger(count) || count < 0) {
      throw new TypeError(`take() needs a whole number of rows from 0 on, not ${String(count)}`);
    }
    await this.#nestedSettled();
    return this.#take(count);
  }

  async first(): Promise<Doc | null> {
    await this.#nestedSettled();
    return this.#take(1)[0] ?? null;
  }

  async unique(): Promise<Doc | null> {
    await this.#nestedSettled();
    const rows = this.#take(2);
    if (rows.length < 2) return rows[0] ?? null;
    throw new Error(
      `unique() found more than one document in table "${this.#state.table}", such as ${rows[0]?._id} and ${
        rows[1]?._id
      }`,
    );
  }

  async count(): Promise<number> {
    const { frame, table, source: given, predicates } = this.#state;
    const source = given ?? wholeTable;
    if (source.from === "search") {
      throw withHelp(
        new TypeError(
          "count() counts the entries of an index and cannot count the results of a search: count the rows of collect()",
        ),
        "count",
      );
    }
    if (predicates.length > 0) {
      throw withHelp(
        new TypeError(
          "count() counts the entries of an index without reading documents, so it cannot apply filter(): " +
            "use an index whose fields have the condition, or count the rows of collect()",
        ),
        "count",
      );
    }
    await this.#nestedSettled();
    this.#traced();
    return frame.reads.count(table, source.index, source.bounds);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Doc, void> {
    await this.#nestedSettled();
    for (const doc of this.#rows()) {
      yield doc;
      await this.#nestedSettled();
    }
  }

  async paginate(options: PaginationOptions): Promise<PaginationResult<Doc>> {
    const { cursor, numItems, endCursor, maximumRowsRead, maximumCharsRead } = options ?? {};
    if (!Number.isInteger(numItems) || numItems < 1) {
      throw new TypeError(`paginate() needs numItems, a whole number from 1 on, not ${String(numItems)}`);
    }
    for (const [name, bound] of Object.entries({ maximumRowsRead, maximumCharsRead })) {
      if (bound === undefined || (Number.isInteger(bound) && bound >= 1)) continue;
      throw new TypeError(`${name} of paginate() must be a whole number from 1 on`);
    }
    await this.#nestedSettled();
    const after = this.#placeOf(cursor);
    const until = this.#placeOf(endCursor);
    if (after?.at === "end") return { page: [], isDone: true, continueCursor: this.#cursorAt(after) };
    const page: Doc[] = [];
    let last: Place | null = null;
    let full: Place | null = null;
    let rowsRead = 0;
    const { usage } = this.#state.frame.reads;
    const charsEnough = usage.charsRead + (maximumCharsRead ?? Infinity);
    for (const row of this.#placedRows({ after, until, expected: numItems })) {
      last = row.place;
      if (this.#passes(row.doc) && page.push(row.doc) === numItems) full = last;
      rowsRead++;
      const enough = until === null && (page.length >= numItems || rowsRead === maximumRowsRead);
      if (enough || usage.charsRead >= charsEnough) {
        return { page, isDone: false, continueCursor: this.#cursorAt(last) };
      }
    }
    const end: Place = until ?? { at: "end" };
    return {
      page,
      isDone: end.at === "end",
      continueCursor: this.#cursorAt(end),
      ...(full !== null && page.length > 2 * numItems && { splitCursor: this.#cursorAt(full) }),
    };
  }

  /** @throws TypeError for searches and for queries with filters, whose rows have no position before they are read. */
  [positionsIn](inspection: IndexPositions): QueryPositions {
    const { table, source: given, order, predicates } = this.#state;
    const source = given ?? wholeTable;
    if (source.from === "search" || predicates.length > 0) {
      throw new TypeError("Only queries on an index, without filters, have row positions");
    }
    const rows = { table, index: source.index, bounds: source.bounds, order: order ?? "asc" } as const;
    return {
      count: (max) => inspection.countRows(rows, max),
      cursorBehind: (count) => {
        const key = inspection.keyAt(rows, count - 1);
        return key === null ? null : this.#cursorAt({ at: "key", key });
      },
      cursorBefore: (cursor, count) => {
        const place = this.#placeOf(cursor);
        if (place?.at !== "key") throw new TypeError("The cursor does not refer to a row");
        // In reverse order, the rows before it come next.
        const turned = { ...rows, order: rows.order === "asc" ? "desc" : "asc", after: place.key } as const;
        const key = inspection.keyAt(turned, count - 1);
        return key === null ? null : this.#cursorAt({ at: "key", key });
      },
    };
  }

  #placeOf(cursor: string | null | undefined): Place | null {
    return cursor === null || cursor === undefined ? null : decodeCursor(cursor, this.#owner());
  }

  #cursorAt(place: Place): string {
    return encodeCursor(place, this.#owner().mark);
  }

  /** Created lazily: the engine's errors for invalid conditions are clearer. */
  #owner(): CursorOwner {
    const { table, source, order } = this.#state;
    return this.#cursorOwner ??= cursorOwner({ table, source: source ?? wholeTable, order: order ?? "asc" });
  }

  #with(change: Partial<QueryState>): TableQueryApi {
    return new TableQueryApi({ ...this.#state, ...change });
  }

  #sourceless(method: string): QueryState {
    const { source, order, predicates } = this.#state;
    if (source !== null) throw new TypeError(`${method}() must be the only choice of an index in a query`);
    if (order !== null || predicates.length > 0) {
      throw new TypeError(`${method}() comes directly after query(), before order() and filter()`);
    }
    return this.#state;
  }

  /** Waits while a nested function uses the transaction. */
  #nestedSettled(): Promise<void> | undefined {
    return this.#state.frame.busy ? this.#state.frame.nestedSettled() : undefined;
  }

  #passes(doc: Doc): boolean {
    const trace = this.#trace;
    for (const predicate of this.#state.predicates) {
      if (!(trace === null ? predicate(doc) : trace.passes(doc, predicate))) return false;
    }
    if (trace !== null) trace.returned++;
    return true;
  }

  /** Begins the record of a read of a traced call. */
  #traced(): TracedRead | null {
    const { frame: { call: { tracer } }, table, definition, source } = this.#state;
    return this.#trace = tracer === null
      ? null
      : tracer.begin(table, { definition, source: source ?? wholeTable });
  }

  #take(count: number): Doc[] {
    if (count === 0) return [];
    const { source, predicates } = this.#state;
    if (predicates.length === 0 && source?.from !== "search") {
      const { frame, table, order } = this.#state;
      const { index, bounds } = source ?? wholeTable;
      const rows = frame.reads.take(table, index, bounds, { order: order ?? "asc", count });
      const trace = this.#traced();
      if (trace !== null) {
        trace.documents += rows.length;
        trace.returned += rows.length;
      }
      return rows;
    }
    const rows: Doc[] = [];
    for (const doc of this.#rows()) {
      rows.push(doc);
      if (rows.length === count) break;
    }
    return rows;
  }

  *#rows(): Generator<Doc, void> {
    for (const { doc } of this.#placedRows({ after: null, until: null, expected: undefined })) {
      if (this.#passes(doc)) yield doc;
    }
  }

  *#placedRows(
    range: {
      readonly after: Place | null;
      readonly until: Place | null;
      readonly expected: number | undefined;
    },
  ): Generator<PlacedRow, void> {
    const { frame, table } = this.#state;
    const source = this.#state.source ?? wholeTable;
    const { after, until, expected } = range;
    const trace = this.#traced();
    if (source.from === "search") {
      let offset = 0;
      for (const doc of frame.reads.search(table, source.index, source.search)) {
        if (until?.at === "offset" && offset >= until.offset) return;
        offset++;
        if (trace !== null) trace.documents++;
        if (after?.at === "offset" && offset <= after.offset) continue;
        yield { doc, place: { at: "offset", offset } };
      }
      return;
    }
    const rows = this.#scan(source, {
      ...(after?.at === "key" ? { after: after.key } : {}),
      ...(until?.at === "key" ? { until: until.key } : {}),
      ...(expected === undefined ? {} : { expected }),
    });
    for (const { doc, key } of rows) {
      if (trace !== null) trace.documents++;
      yield { doc, place: { at: "key", key } };
    }
  }

  #scan({ index, bounds }: IndexSource, options: Omit<ScanOptions, "order">): IterableIterator<ScanRow> {
    const { frame, table, order } = this.#state;
    return frame.reads.scan(table, index, bounds, { ...options, order: order ?? "asc" });
  }
}

/** Fields of a table's indexes by name. Computed on first use. */
const fieldsByDefinition = new WeakMap<TableDefinition, ReadonlyMap<string, readonly string[]>>();

function indexFields(definition: TableDefinition): ReadonlyMap<string, readonly string[]> {
  const known = fieldsByDefinition.get(definition);
  if (known !== undefined) return known;
  const fields = new Map(builtInFields);
  for (const index of definition.indexes) fields.set(index.name, [...index.fields, "_creationTime"]);
  fieldsByDefinition.set(definition, fields);
  return fields;
}

export function tableQuery(
  frame: Frame,
  { table, definition }: { readonly table: string; readonly definition: TableDefinition },
): TableQueryApi {
  return new TableQueryApi({ frame, table, definition, source: null, order: null, predicates: [] });
}
