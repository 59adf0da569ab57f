/** The engine's synchronous interface for isolates: databases, and the transaction of a function run. */
import type { AggregateRange } from "./aggregates/aggregate_range.ts";
import type { Inspection } from "./database/inspection.ts";
import type { GenerationReason, JournalHead } from "./journal/history_head.ts";
import type { JournalRow } from "./journal/journal_row.ts";
import type { AppliedRows } from "./journal/row_entries.ts";
import type { CommitEntry, Doc, ReadSet, SchemaDefinition } from "./types.ts";
import type {
  IndexBounds,
  ScanOptions,
  ScanRow,
  SearchOptions,
  TakeOptions,
  VectorSearchOptions,
} from "./read_options.ts";
import type { RecordKey, SchemaReport } from "./types.ts";

/** Resources that a run has used, limited by `functionLimits`. */
export interface Usage {
  documentsRead: number;
  indexRowsRead: number;
  charsRead: number;
  documentsWritten: number;
  indexRowsWritten: number;
  charsWritten: number;
}

/**
 * The transaction of one query or mutation. Documents are fresh objects. A query's read set covers exactly what it read: a
 * scan that stops early covers up to its last row. A mutation's read set is empty. Throws an `EngineError` with advice for
 * unknown tables and indexes, invalid bounds and exceeded limits.
 */
export interface ReadTransaction {
  readonly usage: Usage;
  /** Returns the document with this id from any table; `null` if there is none or the string is not an id. */
  get(id: string): Doc | null;
  /** Returns the table name of an id; `null` if the table is unknown. */
  tableOf(id: string): string | null;
  /** Scans an index, `by_creation_time` or `by_id`. Rows are read lazily. */
  scan(table: string, index: string, bounds: IndexBounds, options: ScanOptions): IterableIterator<ScanRow>;
  /** Returns the first documents of a range, as many as `count` if there are enough. */
  take(table: string, index: string, bounds: IndexBounds, options: TakeOptions): Doc[];
  /** Counts the entries of an index range, including the transaction's own writes. Reads no documents. */
  count(table: string, index: string, bounds: IndexBounds): number;
  /** Returns a range of a declared aggregate, to read in logarithmic time. */
  aggregate(table: string, aggregate: string, bounds: IndexBounds): AggregateRange;
  /** Returns documents by score, then creation time, then id. The last word of the query also matches as a prefix. */
  search(table: string, index: string, options: SearchOptions): IterableIterator<Doc>;
  /** Returns the nearest documents by cosine similarity, then creation time, then id. */
  vectorSearch(table: string, index: string, options: VectorSearchOptions): { id: string; score: number }[];
  /** Inspects the whole database. Queries only. */
  inspect?(): Inspection;
  readSet(): ReadSet;
}

/** A mutation's transaction, which sees its own writes. Valid until `releaseMutation` or `rollbackMutation`. */
export interface WriteTransaction extends ReadTransaction {
  /** Stores a new document and returns its id. Throws if it does not match the table's schema. */
  insert(table: string, fields: Record<string, unknown>): string;
  /** Replaces all fields except `_id` and `_creationTime`. Throws if the document does not exist. */
  replace(id: string, fields: Record<string, unknown>): void;
  /** Sets the given fields; `undefined` removes one. Throws if the document does not exist. */
  patch(id: string, fields: Record<string, unknown>): void;
  delete(id: string): void;
  /** Stores a validated document with its id and time. `insert` refuses an existing one. Throws for another table's id. */
  importDocument(
    table: string,
    document: Record<string, unknown>,
    options: { readonly mode: "insert" | "upsert" },
  ): void;
  /** Creates a savepoint for nested calls. End savepoints innermost first. */
  savepoint(): Savepoint;
}

export interface Savepoint {
  rollback(): void;
  release(): void;
}

/** A read-only connection with one snapshot at a time. */
export interface ReaderDatabase extends Disposable {
  /** Sets the schema, once, after the app is loaded and the writer has applied the schema. */
  useSchema(
    schema: SchemaDefinition,
    options?: {
      /** `leave`: queries cannot use tables and indexes that the database does not have. */
      readonly missing?: "refuse" | "leave";
    },
  ): void;
  openSnapshot(): number;
  closeSnapshot(): void;
  beginQuery(): ReadTransaction;
  /** Returns what a schema would change, and documents that do not match it. Reads all. */
  previewSchema(schema: SchemaDefinition, bounds: ViolationLimits): SchemaPreview;
}

export interface ViolationLimits {
  readonly documentsMax: number;
  readonly charsMax: number;
}

/** Documents of a table that do not match a schema. */
export interface TableViolations {
  readonly table: string;
  readonly documents: number;
  readonly first: readonly { readonly id: string; readonly reason: string }[];
}

/** The changes a schema would make; indexes are named `table.index`. */
export interface SchemaPreview extends Omit<SchemaReport, "unreachableTables"> {
  readonly unreachable: readonly { readonly table: string; readonly documents: number }[];
  readonly misfits: readonly TableViolations[];
}

export interface SchemaOptions {
  /** Numbers for new tables, to match ids from another database. */
  readonly tableNumbers?: ReadonlyMap<string, number>;
  /** The new code version (`null`: none), with an `external` journal. A commit without document changes. */
  readonly version?: string | null;
}

export interface StagedChange<Result> {
  /** The row to store in the external history before `commit`; `null` if there is none. */
  readonly row: JournalRow | null;
  commit(): Result;
  undo(): void;
}

/** The only connection that writes, one transaction per group. Failed mutations are undone from memory. */
export interface WriterDatabase extends Disposable {
  /** Reloads the state at the start, if another process wrote after opening. With an `external` journal only. */
  reload(): void;
  /** Current ts, including released mutations of the open group. */
  readonly ts: number;
  /**
   * Applies a schema: builds new indexes, drops removed ones, and validates the documents of tables whose definition
   * may have changed. Throws a `SchemaError` with table, id and field, and then changes nothing. Tables that are no
   * longer in the schema keep their documents, which become inaccessible.
   */
  applySchema(schema: SchemaDefinition, options?: SchemaOptions): SchemaReport;
  /** Like `applySchema`, but without the commit. */
  stageSchema(schema: SchemaDefinition, options?: SchemaOptions): StagedChange<SchemaReport>;
  /**
   * Applies journal rows of another database in the open group. Each must be the next of this database's history;
   * otherwise it throws an `EngineError`. After any error the group can only be rolled back. Only the last state of
   * documents with unchanged keys is written. Returns what `rowEntries` needs besides the rows. To get entries for rows
   * that change tables or indexes, apply them one at a time.
   */
  applyRows(rows: readonly JournalRow[]): AppliedRows;
  /** Position of the history that this database keeps or follows; `null` without one. */
  readonly history: JournalHead | null;
  /** Removes some rows up to `seq`, safe elsewhere. Call it outside a group. Returns whether more remain. */
  confirmJournal(confirmed: { readonly generation: string; readonly seq: number }): boolean;
  /** Ends a generation if it is the current one, and drops pending rows. Call it outside a group. */
  restartJournal(restart: { readonly generation: string; readonly reason: GenerationReason }): void;
  /**
   * Frees disk space after an error rolled back a group, if the disk is full. The first call runs a checkpoint. With
   * `again` it drops the journal and starts a new generation, but only if enough rows are pending: dropping fewer would
   * lose commits for the replica without freeing space. Call it outside a group. Returns whether there may be more
   * space now.
   */
  freeDiskSpace(error: unknown, options: { readonly again: boolean }): boolean;
  openGroup(): void;
  /** Starts the next mutation. `at` is its frozen clock, ms since the epoch. */
  beginMutation(options: { readonly at: number }): WriteTransaction;
  /** Ends the mutation and keeps its writes. Returns its commit entry with the next ts, `null` if none. */
  releaseMutation(): CommitEntry | null;
  rollbackMutation(): void;
  /** Returns the recorded answer of a mutation, or `null`. */
  findRecord(key: RecordKey): string | null;
  /** Records an answer, one line, in the open group, for a new key. Does not advance ts. */
  saveRecord(key: RecordKey, answer: string): void;
  /** Prepares the commit: `commitGroup` or `rollbackGroup` is next. Returns the row to append first, or `null`. */
  prepareCommit(text: string | null): JournalRow | null;
  commitGroup(text: string | null): void;
  /** Called after a group's answers are sent, with the number of calls: does maintenance under light load. */
  maintain(calls: number): void;
  rollbackGroup(): void;
  /** Returns the text of the newest committed group that changed the database; `null` in a new database. */
  lastGroup(): string | null;
}
