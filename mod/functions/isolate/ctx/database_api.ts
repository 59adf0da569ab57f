/** `ctx.db`: documents by id, queries and writes. Misuse throws errors that say what to do. */
import type { Doc } from "../../../engine/types.ts";
import type { Frame } from "../runs/call.ts";
import { failedAt } from "../runs/unhandled_failures.ts";
import { AggregateApi } from "./aggregate_api.ts";
import { tableQuery, type TableQueryApi } from "./table_query.ts";
import type { AppTables } from "../app/app_tables.ts";
import { vectorFilter } from "./vector_filter.ts";

type Fields = Record<string, unknown>;

const VECTOR_RESULTS = 10;

/** Serves queries and mutations. The frame says whether it may write. */
export class DatabaseApi {
  readonly #frame: Frame;
  readonly #tables: AppTables;

  constructor(frame: Frame, tables: AppTables) {
    this.#frame = frame;
    this.#tables = tables;
  }

  async get(first: string, second?: string): Promise<Doc | null> {
    if (this.#frame.busy) await this.#frame.nestedSettled();
    const { reads } = this.#frame;
    const id = this.#id("get", arguments.length > 1 ? second : first, arguments.length > 1 ? first : null);
    const table = reads.tableOf(id);
    if (table === null) return null;
    this.#tables.readable(this.#frame, table);
    const found = reads.get(id);
    this.#frame.call.tracer?.document(table, found !== null);
    return found;
  }

  query(table: string): TableQueryApi {
    // Throws here if the frame has ended, instead of when rows are read.
    void this.#frame.reads;
    return tableQuery(this.#frame, { table, definition: this.#tables.readable(this.#frame, table) });
  }

  aggregate(table: string, name: string, range?: (q: never) => unknown): AggregateApi {
    // As in `query`.
    void this.#frame.reads;
    return new AggregateApi(this.#frame, {
      table,
      definition: this.#tables.readable(this.#frame, table),
      name,
      range,
    });
  }

  normalizeId(table: string, id: string): string | null {
    this.#tables.readable(this.#frame, table);
    return typeof id === "string" && this.#frame.reads.tableOf(id) === table ? id : null;
  }

  async vectorSearch(
    table: string,
    name: string,
    query: { readonly vector: readonly number[]; readonly limit?: number; readonly filter?: unknown },
  ): Promise<{ _id: string; _score: number }[]> {
    if (this.#frame.busy) await this.#frame.nestedSettled();
    const definition = this.#tables.readable(this.#frame, table);
    const index = definition.vectorIndexes.find((candidate) => candidate.name === name);
    if (index === undefined) {
      const names = definition.vectorIndexes.map((candidate) => candidate.name).join(", ");
      throw new TypeError(
        `Table "${table}" has no vector index "${name}"; its vector indexes are ${names || "none"}`,
      );
    }
    const { vector, limit = VECTOR_RESULTS, filter } = query ?? {};
    const filters = vectorFilter(filter, index);
    const found = this.#frame.reads.vectorSearch(table, name, { vector, limit, filters });
    return found.map(({ id, score }) => ({ _id: id, _score: score }));
  }

  async insert(table: string, fields: Fields): Promise<string> {
    try {
      if (this.#frame.busy) await this.#frame.nestedSettled();
      const { writes } = this.#frame;
      this.#tables.checkWritable(this.#frame, table);
      checkFields("insert", fields);
      if (fields["_id"] !== undefined || fields["_creationTime"] !== undefined) {
        throw new TypeError("insert() cannot be given _id or _creationTime: the database makes them");
      }
      return writes.insert(table, fields);
    } catch (error) {
      throw failedAt(this.#frame, `ctx.db.insert("${String(table)}", ...)`, error);
    }
  }

  async patch(
    ...args: [id: string, fields: Fields] | [table: string, id: string, fields: Fields]
  ): Promise<void> {
    try {
      if (this.#frame.busy) await this.#frame.nestedSettled();
      const { writes } = this.#frame;
      const { id, fields } = this.#target("patch", args);
      writes.patch(id, fields);
    } catch (error) {
      throw failedAt(this.#frame, "ctx.db.patch()", error);
    }
  }

  async replace(
    ...args: [id: string, fields: Fields] | [table: string, id: string, fields: Fields]
  ): Promise<void> {
    try {
      if (this.#frame.busy) await this.#frame.nestedSettled();
      const { writes } = this.#frame;
      const { id, fields } = this.#target("replace", args);
      writes.replace(id, fields);
    } catch (error) {
      throw failedAt(this.#frame, "ctx.db.replace()", error);
    }
  }

  async delete(...args: [id: string] | [table: string, id: string]): Promise<void> {
    try {
      if (this.#frame.busy) await this.#frame.nestedSettled();
      const { writes } = this.#frame;
      const id = args.length > 1 ? this.#id("delete", args[1], args[0]) : this.#id("delete", args[0], null);
      this.#checkWritableId("delete", id);
      writes.delete(id);
    } catch (error) {
      throw failedAt(this.#frame, "ctx.db.delete()", error);
    }
  }

  #target(
    method: string,
    args: [id: string, fields: Fields] | [table: string, id: string, fields: Fields],
  ): { id: string; fields: Fields } {
    const [id, fields] = args.length === 3
      ? [this.#id(method, args[1], args[0]), args[2]]
      : [this.#id(method, args[0], null), args[1]];
    checkFields(method, fields);
    this.#checkWritableId(method, id, method === "patch" ? Object.keys(fields) : undefined);
    return { id, fields: this.#withoutSystemFields(method, id, fields) };
  }

  /** Accepts a whole document as fields if its id and creation time are unchanged. */
  #withoutSystemFields(method: string, id: string, fields: Fields): Fields {
    if (!("_id" in fields) && !("_creationTime" in fields)) return fields;
    const { _id, _creationTime, ...own } = fields;
    const stored = this.#frame.reads.get(id);
    if (
      (_id !== undefined && _id !== id) ||
      (_creationTime !== undefined && stored !== null && _creationTime !== stored._creationTime)
    ) {
      throw new TypeError(`${method}() cannot change _id or _creationTime: leave them out`);
    }
    return own;
  }

  #checkWritableId(method: string, id: string, patched?: readonly string[]): void {
    const table = this.#frame.reads.tableOf(id);
    if (table === null) throw new TypeError(`${method}() needs the id of a document: "${id}" is not one`);
    this.#tables.checkWritable(this.#frame, table, patched);
  }

  #id(method: string, id: unknown, table: string | null): string {
    if (typeof id !== "string") {
      throw new TypeError(`${method}() needs the id of a document, not ${id === null ? "null" : typeof id}`);
    }
    if (table === null) return id;
    this.#tables.readable(this.#frame, table);
    const found = this.#frame.reads.tableOf(id);
    if (found !== null && found !== table) {
      throw new TypeError(`${method}("${table}", ...) was given an id of table "${found}": ${id}`);
    }
    return id;
  }
}

function checkFields(method: string, fields: unknown): asserts fields is Fields {
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
    throw new TypeError(`${method}() needs an object with the fields of the document`);
  }
}
