/**
 * A mutation's transaction: reads see its own writes, and writes can be undone. The writer database begins one mutation of a
 * group at a time, and its isolate calls this interface for `ctx.db`. `release` returns the changed documents; they are durable
 * only once their group commits. `rollback` undoes this mutation alone. After an error of the database in a write, only
 * the whole group can be rolled back. A write refused before, for instance by the schema, changes nothing.
 */
import { documentLimits } from "../limits.ts";
import { type AggregateOwner, AggregateRange } from "./aggregates/aggregate_range.ts";
import type { Tables } from "./catalog.ts";
import type { Connection } from "./connection.ts";
import { DocumentChanges, type DocumentWrite, type WriteGroup } from "./documents/document_changes.ts";
import type { DocumentWriter, StoredDocument } from "./documents/document_writer.ts";
import { EngineError, InvalidFieldsError } from "./errors.ts";
import { ID_CHARS, type NewId } from "./documents/ids.ts";
import { type IndexEntries, indexEntries, sameIndexed } from "./indexes/index_set.ts";
import { engineLimits } from "./limits.ts";
import { countOf, endedError, scanOf, searchOf, vectorSearchOf } from "./query.ts";
import { firstOf, type Scan, type StoredRow } from "./indexes/scan.ts";
import type { SearchOwner } from "./search/search.ts";
import {
  checkNewFields,
  fieldsOf,
  importedDocument,
  type StoredFields,
  withoutSystemFields,
} from "./documents/system_fields.ts";
import type { Table } from "./table.ts";
import type { Savepoint, WriteTransaction } from "./transaction.ts";
import type { Doc, DocumentChange, ReadSet, Value } from "./types.ts";
import { UsageMeter } from "./usage.ts";
import { storableFields } from "./documents/values.ts";
import type { VectorSearcher } from "./vectors/vector_search.ts";
import type {
  IndexBounds,
  ScanOptions,
  ScanRow,
  SearchOptions,
  TakeOptions,
  VectorSearchOptions,
} from "./read_options.ts";

const { parse, stringify } = JSON;

interface DocumentEntries {
  readonly doc: StoredFields;
  readonly entries: IndexEntries | null;
}

export interface MutationSetup {
  readonly connection: Connection;
  readonly tables: Tables;
  readonly group: WriteGroup;
  readonly writer: DocumentWriter;
  readonly vectors: VectorSearcher;
  readonly newId: NewId;
  /** Frozen clock of the mutation, ms since the epoch. */
  readonly at: number;
}

export class MutationTransaction implements WriteTransaction, SearchOwner, AggregateOwner {
  readonly connection: Connection;
  /** Mutations run one at a time, so reads are not recorded. */
  readonly recorder = null;
  readonly usage = new UsageMeter();
  readonly #tables: Tables;
  readonly #group: WriteGroup;
  readonly #writer: DocumentWriter;
  readonly #documents: DocumentChanges;
  readonly #vectors: VectorSearcher;
  readonly #newId: NewId;
  readonly #at: number;
  readonly #creationTimeBefore: number;
  /** Open scans, with a serial number that orders them among savepoints. */
  readonly #scans = new Map<Scan, number>();
  #serial = 0;
  #ended = false;

  constructor({ connection, tables, group, writer, vectors, newId, at }: MutationSetup) {
    this.connection = connection;
    this.#tables = tables;
    this.#group = group;
    this.#writer = writer;
    this.#documents = new DocumentChanges(group, writer);
    this.#vectors = vectors;
    this.#newId = newId;
    this.#at = at;
    this.#creationTimeBefore = group.lastCreationTime;
  }

  get(id: string): Doc | null {
    this.check();
    const table = this.#tables.ofId(id);
    if (table === undefined) return null;
    const stored = this.#load(table, id);
    if (stored === null) return null;
    this.usage.read(stored.text.length);
    return parse(stored.text) as Doc;
  }

  tableOf(id: string): string | null {
    return this.#tables.ofId(id)?.name ?? null;
  }

  scan(table: string, index: string, bounds: IndexBounds, options: ScanOptions): IterableIterator<ScanRow> {
    this.check();
    return scanOf(this, { tables: this.#tables, table, index, bounds, options });
  }

  take(table: string, index: string, bounds: IndexBounds, { order, count }: TakeOptions): Doc[] {
    return firstOf(this.scan(table, index, bounds, { order, expected: count }), count);
  }

  count(table: string, index: string, bounds: IndexBounds): number {
    this.check();
    return countOf(this, { tables: this.#tables, table, index, bounds });
  }

  aggregate(table: string, aggregate: string, bounds: IndexBounds): AggregateRange {
    this.check();
    return new AggregateRange(this, { tables: this.#tables, table, aggregate, bounds });
  }

  search(table: string, index: string, options: SearchOptions): IterableIterator<Doc> {
    this.check();
    return searchOf(this, { tables: this.#tables, table, index, options });
  }

  vectorSearch(table: string, index: string, options: VectorSearchOptions): { id: string; score: number }[] {
    this.check();
    const { recorder } = this;
    return vectorSearchOf({ tables: this.#tables, vectors: this.#vectors, recorder, table, index, options });
  }

  /** Returns an empty read set: mutations run one at a time, so reads are not recorded. */
  readSet(): ReadSet {
    return {};
  }

  insert(tableName: string, fields: Record<string, unknown>): string {
    this.#checkWritable();
    const table = this.#tables.named(tableName);
    checkNewFields(fields);
    const stored = this.#validated(table, fields);
    const id = this.#newId(table.number);
    const _creationTime = this.#group.nextCreationTime(this.#at);
    this.#write(table, {
      id,
      before: null,
      after: this.#serialized(table, { _id: id, _creationTime, ...stored }),
    });
    return id;
  }

  replace(id: string, fields: Record<string, unknown>): void {
    this.#checkWritable();
    const { table, before, doc } = this.#loadExisting(id, "replace");
    this.#update(table, { before, doc, fields: withoutSystemFields(doc, fields) });
  }

  patch(id: string, fields: Record<string, unknown>): void {
    this.#checkWritable();
    const { table, before, doc } = this.#loadExisting(id, "patch");
    const merged: Record<string, unknown> = { ...fieldsOf(doc), ...withoutSystemFields(doc, fields) };
    for (const name of Object.keys(merged)) if (merged[name] === undefined) delete merged[name];
    this.#update(table, { before, doc, fields: merged });
  }

  delete(id: string): void {
    this.#checkWritable();
    const { table, before } = this.#loadExisting(id, "delete");
    this.usage.write(0);
    this.#write(table, { id, before, after: null });
  }

  importDocument(
    tableName: string,
    document: Record<string, unknown>,
    { mode }: { readonly mode: "insert" | "upsert" },
  ): void {
    this.#checkWritable();
    const table = this.#tables.named(tableName);
    const { id, creationTime, fields } = importedDocument(document, {
      until: this.#at + engineLimits.creationTimeAheadMs,
    });
    const owner = this.#tables.ofId(id);
    if (owner !== table) {
      throw new EngineError(
        "not_storable",
        `Cannot import document "${id}" into table "${tableName}": ` +
          (owner === undefined ? "it is not an id of this database" : `it is an id of table "${owner.name}"`),
      );
    }
    const before = this.#load(table, id);
    if (before !== null && mode === "insert") {
      throw new EngineError(
        "not_storable",
        `Cannot import document "${id}": table "${tableName}" has it already`,
      );
    }
    const stored = this.#validated(table, fields);
    const after = this.#serialized(table, { _id: id, _creationTime: creationTime, ...stored });
    this.#put(table, { id, before, after });
  }

  savepoint(): Savepoint {
    this.#checkWritable();
    const { mark } = this.#documents;
    const serial = ++this.#serial;
    let open = true;
    return {
      rollback: () => {
        if (!open || this.#ended) return;
        open = false;
        for (const [scan, begun] of this.#scans) if (begun > serial) scan.invalidate();
        this.#documents.undoTo(mark);
      },
      release: () => {
        open = false;
      },
    };
  }

  /** Ends the transaction and keeps its writes. Returns the changed documents. */
  release(): DocumentChange[] {
    this.#ended = true;
    return this.#documents.changes();
  }

  /** Ends the transaction and undoes its writes. */
  rollback(): void {
    this.#ended = true;
    // After an error of the database the caller must roll back the whole group, so there is nothing to undo here.
    if (!this.#group.failed) this.#documents.undoTo(0);
    this.#group.rewindCreationTime(this.#creationTimeBefore);
  }

  /** Ends the transaction without undoing anything: the whole group is rolled back. */
  abandon(): void {
    this.#ended = true;
  }

  check(): void {
    if (this.#ended) throw endedError();
  }

  noteDelivered(table: Table, { key, rid, text }: StoredRow): void {
    this.usage.found(text.length);
    this.#documents.noteRead({ table, id: key.slice(-ID_CHARS), rid, text, entries: null });
  }

  /** Writes pending search changes. A failure leaves only the rollback of the group. */
  beforeSearch(): void {
    this.#writePending(this.#writer.searches);
  }

  /** The same for the nodes of aggregates. */
  beforeAggregate(): void {
    this.#writePending(this.#writer.aggregates);
  }

  #writePending(pending: { write(): void }): void {
    try {
      pending.write();
    } catch (error) {
      this.#group.fail(error);
      throw error;
    }
  }

  scanOpened(scan: Scan): void {
    this.#scans.set(scan, ++this.#serial);
  }

  scanClosed(scan: Scan): void {
    this.#scans.delete(scan);
  }

  #checkWritable(): void {
    this.check();
    this.#group.check();
  }

  #load(table: Table, id: string): StoredDocument | null {
    const known = this.#documents.current(id);
    if (known !== undefined) return known;
    const row = this.connection.statement(table.sql.get).get(id);
    if (row === undefined) return null;
    const stored: StoredDocument = {
      table,
      id,
      rid: row[0] as number,
      text: row[1] as string,
      entries: null,
    };
    this.#documents.noteRead(stored);
    return stored;
  }

  /** Loads the document of a write. Counts as a read if it was not read before. */
  #loadExisting(
    id: string,
    verb: string,
  ): { readonly table: Table; readonly before: StoredDocument; readonly doc: StoredFields } {
    const table = this.#tables.ofId(id);
    if (table === undefined) {
      throw new EngineError("missing_document", `Cannot ${verb} "${id}": it is not the id of a document`);
    }
    const met = this.#documents.current(id) !== undefined;
    const before = this.#load(table, id);
    if (before === null) {
      throw new EngineError(
        "missing_document",
        `Cannot ${verb} "${id}": table "${table.name}" has no such document, it may have been deleted`,
      );
    }
    if (!met) this.usage.read(before.text.length);
    const doc = parse(before.text) as StoredFields;
    before.entries ??= indexEntries(table.indexes, doc);
    this.#meter(before.entries);
    return { table, before, doc };
  }

  #update(
    table: Table,
    change: {
      readonly before: StoredDocument;
      readonly doc: StoredFields;
      readonly fields: Record<string, unknown>;
    },
  ): void {
    const { before, doc } = change;
    const stored = this.#validated(table, change.fields);
    const after = this.#serialized(
      table,
      { _id: doc._id, _creationTime: doc._creationTime, ...stored },
      { doc, entries: before.entries },
    );
    after.rid = before.rid;
    this.#write(table, { id: before.id, before, after });
  }

  #validated(table: Table, fields: Record<string, unknown>): Record<string, Value> {
    const { name, definition } = table;
    let accepted: Record<string, Value>;
    try {
      accepted = definition.validate(fields);
    } catch (error) {
      if (!(error instanceof InvalidFieldsError)) throw error;
      throw new InvalidFieldsError(`Cannot store this document in table "${name}": ${error.message}`);
    }
    return storableFields(accepted, { reservedNames: !name.startsWith("_") });
  }

  /** `before` is the previous state; its index entries are reused if they are equal. */
  #serialized(table: Table, doc: StoredFields, before?: DocumentEntries): StoredDocument {
    const text = stringify(doc);
    if (text.length > documentLimits.documentCharsMax) {
      throw new EngineError(
        "not_storable",
        `Cannot store this document: it has ${text.length} characters of JSON and the limit is ` +
          `${documentLimits.documentCharsMax}; split it, or store it as a file`,
      );
    }
    this.usage.write(text.length);
    const entries =
      before !== undefined && before.entries !== null && sameIndexed(table.indexes, before.doc, doc)
        ? before.entries
        : indexEntries(table.indexes, doc);
    this.#meter(entries);
    return { table, id: doc._id, rid: 0, text, entries };
  }

  #meter({ keys, aggregates }: IndexEntries): void {
    this.usage.index(keys);
    if (aggregates.length > 0) this.usage.index(aggregates.map(({ key }) => key));
  }

  #put(table: Table, write: DocumentWrite): void {
    const { before, after } = write;
    if (before !== null) before.entries ??= indexEntries(table.indexes, parse(before.text) as StoredFields);
    if (before !== null && after !== null) after.rid = before.rid;
    this.#write(table, write);
  }

  #write(table: Table, write: DocumentWrite): void {
    this.#documents.write(table, write, this.#scans.keys());
  }
}
