/** `ctx.importer` of the service's mutations: stores documents with their original ids and creation times. */
import type { z } from "zod";
import type { Savepoint, ScanOptions } from "../../../engine/mod.ts";
import { tableSchema } from "../../api/schema.ts";
import type { Frame } from "../runs/call.ts";
import type { AppTables } from "../app/app_tables.ts";

/** A document to import: the table's fields, optionally with `_id` and `_creationTime`. */
export type ForeignDocument = Readonly<Record<string, unknown>>;

/** Result of one of several delete calls. */
export interface DeletedSome {
  readonly deleted: number;
  /** The `until` of the next call. `null` when nothing is left. */
  readonly rest: string | null;
}

/** Stores documents in app tables within the mutation's transaction, with the usual checks. */
export class ImportApi {
  readonly #frame: Frame;
  readonly #tables: AppTables;

  constructor(frame: Frame, tables: AppTables) {
    this.#frame = frame;
    this.#tables = tables;
  }

  /** Returns the zod schema of a table. @throws TypeError if the table does not exist. */
  schema(table: string): z.ZodType {
    return tableSchema(this.#tables.readable(this.#frame, table));
  }

  /**
   * Stores a document. Without `_id` it gets a new one. Without `_creationTime` it keeps that of the document it replaces, or
   * gets the current time.
   * @throws EngineError for an id of another table, an existing id (`insert` only) or values that cannot be stored.
   * @throws UnfitFieldsError for fields that do not match the schema.
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
    // Only the engine creates ids. The creation time is set afterwards.
    if (_creationTime !== undefined) {
      writes.importDocument(table, { ...fields, _id: id, _creationTime }, { mode: "upsert" });
    }
  }

  /** Returns a savepoint for undoing later writes. */
  savepoint(): Savepoint {
    return this.#frame.writes.savepoint();
  }

  /** Deletes up to `rowsMax` documents, oldest first: the current ones, or those the last call left (`until`, `rest`). */
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
