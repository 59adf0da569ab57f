/**
 * How functions of the service store documents that come from elsewhere, with their ids and creation times. It stands in
 * the `ctx` of their mutations as `importer`; functions of the app have none.
 */
import type { z } from "zod";
import type { Savepoint, ScanOptions } from "../../../engine/mod.ts";
import { tableSchema } from "../../api/schema.ts";
import type { Frame } from "../runs/call.ts";
import type { Tables } from "../app/tables.ts";

/** A document as it was written elsewhere: the fields of the table, and `_id` and `_creationTime` if it brings them. */
export type ForeignDocument = Readonly<Record<string, unknown>>;

/** What one of several calls deleted. */
export interface DeletedSome {
  readonly deleted: number;
  /** What the next call takes as its `until`; `null` when nothing is left. */
  readonly rest: string | null;
}

/** Stores documents of tables of the app inside the mutation's transaction, checked like any other. */
export class ImportApi {
  readonly #frame: Frame;
  readonly #tables: Tables;

  constructor(frame: Frame, tables: Tables) {
    this.#frame = frame;
    this.#tables = tables;
  }

  /** The zod schema of a table. Throws a `TypeError` that names the tables there are when there is none of this name. */
  schema(table: string): z.ZodType {
    return tableSchema(this.#tables.readable(this.#frame, table));
  }

  /**
   * Stores one document. Without `_id` it gets a new one; without `_creationTime` that of the document it replaces, or
   * now. Throws an `EngineError` for an id of another table, for one that is there already (`insert` only; `upsert`
   * replaces it) and for values that cannot be stored, and an `UnfitFieldsError` for fields that do not fit the table.
   */
  store(table: string, document: ForeignDocument, mode: "insert" | "upsert"): void {
    const { writes, call } = this.#frame;
    const { _id, _creationTime, ...fields } = document;
    if (_id !== undefined) {
      const creationTime = _creationTime ?? this.#creationTimeOf(_id) ?? call.at;
      writes.importDocument(table, { ...fields, _id, _creationTime: creationTime }, { mode });
      return;
    }
    const id = writes.insert(table, fields);
    // Only the engine makes ids: the new document is then given the time it came with.
    if (_creationTime !== undefined) {
      writes.importDocument(table, { ...fields, _id: id, _creationTime }, { mode: "upsert" });
    }
  }

  /** A point to which everything stored after it can be undone. */
  savepoint(): Savepoint {
    return this.#frame.writes.savepoint();
  }

  /**
   * Deletes up to `rowsMax` documents of a table, the oldest first, fewer when they are long. Without `until` all that are
   * there now are meant; with the `rest` of the last call those that it left, and not what came since.
   */
  deleteSome(
    table: string,
    { rowsMax, charsMax, until }: {
      readonly rowsMax: number;
      readonly charsMax: number;
      readonly until: string | null;
    },
  ): DeletedSome {
    this.#tables.checkWritable(this.#frame, table);
    const { writes } = this.#frame;
    const scan = (options: ScanOptions) => writes.scan(table, "by_creation_time", { eq: [] }, options);
    const last = until ?? scan({ order: "desc", expected: 1 }).next().value?.key ?? null;
    if (last === null) return { deleted: 0, rest: null };
    const ids: string[] = [];
    let full = false;
    for (const { doc } of scan({ order: "asc", until: last, expected: rowsMax })) {
      ids.push(doc._id);
      full = ids.length >= rowsMax || writes.usage.charsRead >= charsMax;
      if (full) break;
    }
    for (const id of ids) writes.delete(id);
    return { deleted: ids.length, rest: full ? last : null };
  }

  #creationTimeOf(id: unknown): number | undefined {
    return typeof id === "string" ? this.#frame.reads.get(id)?._creationTime : undefined;
  }
}
