/** The engine's face to the isolates: databases, and the view of one function run. Everything here is synchronous. */
import type { Inspection } from "./database/inspection.ts";
import type { GenerationReason, JournalHead } from "./journal/journal.ts";
import type { JournalRow } from "./journal/journal_row.ts";
import type { AppliedRows } from "./journal/row_entries.ts";
import type { CommitEntry, Doc, ReadSet, SchemaDefinition } from "./types.ts";
import type {
  IndexBounds,
  ScanOptions,
  ScanRow,
  SearchOptions,
  VectorSearchOptions,
} from "./read_options.ts";
import type { RecordKey, SchemaReport } from "./types.ts";

/** What a run has used of its limits (`functionLimits`). */
export interface Usage {
  documentsRead: number;
  /** Rows of indexes that led to documents. */
  indexRowsRead: number;
  charsRead: number;
  documentsWritten: number;
  /** Rows added to indexes or removed from them. */
  indexRowsWritten: number;
  charsWritten: number;
}

/**
 * The view of one query run, or of one mutation. Documents come back as fresh objects. Reads are recorded in the read set
 * exactly as far as they went: a scan that stops early has read up to its last row only.
 * Throws an `EngineError` that says what to do for unknown tables and indexes, wrong bounds and exceeded limits.
 */
export interface ReadTransaction {
  readonly usage: Usage;
  /** The document with this id, whatever its table; `null` if there is none or the text is not an id. */
  get(id: string): Doc | null;
  /** Name of the table an id belongs to, or `null` for what is not an id of a known table. */
  tableOf(id: string): string | null;
  /** `index` is the name of an index, `by_creation_time`, or `by_id`. Lazy: rows are read as they are asked for. */
  scan(table: string, index: string, bounds: IndexBounds, options: ScanOptions): IterableIterator<ScanRow>;
  /** Documents by relevance; the last word of the query also matches as a prefix. */
  search(table: string, index: string, options: SearchOptions): IterableIterator<Doc>;
  /** The nearest documents by cosine, best first. */
  vectorSearch(table: string, index: string, options: VectorSearchOptions): { id: string; score: number }[];
  /** Looks at the database as a whole; queries only. */
  inspect?(): Inspection;
  /** What was read; for mutations always empty. */
  readSet(): ReadSet;
}

/** The view of one mutation: reads see its own writes. Lives between `beginMutation` and `release` or `rollback`. */
export interface WriteTransaction extends ReadTransaction {
  /** Stores a new document and returns its id. Throws when it does not fit the table's schema. */
  insert(table: string, fields: Record<string, unknown>): string;
  /** Replaces all fields but `_id` and `_creationTime`. Throws when there is no such document. */
  replace(id: string, fields: Record<string, unknown>): void;
  /** Sets the named fields; `undefined` removes one. Throws when there is no such document. */
  patch(id: string, fields: Record<string, unknown>): void;
  /** Throws when there is no such document. */
  delete(id: string): void;
  /**
   * Stores a document with the id and creation time it comes with, checked like any other. One that is there already is
   * refused (`insert`) or replaced (`upsert`). Throws for an id of another table.
   */
  importDocument(
    table: string,
    document: Record<string, unknown>,
    options: { readonly mode: "insert" | "upsert" },
  ): void;
  /** Marks a point inside the mutation to which nested calls can return. */
  savepoint(): Savepoint;
}

export interface Savepoint {
  /** Undoes everything written since. */
  rollback(): void;
  /** Keeps what was written. */
  release(): void;
}

/** A read-only connection; one snapshot at a time. */
export interface ReaderDatabase extends Disposable {
  /** Tells the connection what the tables are; called once after the app is loaded, and the schema was applied by the writer. */
  useSchema(
    schema: SchemaDefinition,
    options?: {
      /** `leave`: tables and indexes that the database does not have are not there for queries either. */
      readonly missing?: "refuse" | "leave";
    },
  ): void;
  /** Opens a snapshot of the newest state and returns its ts. */
  openSnapshot(): number;
  closeSnapshot(): void;
  /** The view of one query run inside the open snapshot. */
  beginQuery(): ReadTransaction;
  /** What a schema would change, and which documents of the open snapshot do not fit it. Looks at all of them. */
  previewSchema(schema: SchemaDefinition, bounds: ViolationLimits): SchemaPreview;
}

/** How much is told of documents that do not fit. */
export interface ViolationLimits {
  /** Documents of each table. */
  readonly documentsMax: number;
  /** Longest reason. */
  readonly charsMax: number;
}

/** Documents of a table that do not fit a schema. */
export interface TableViolations {
  readonly table: string;
  /** How many there are. */
  readonly documents: number;
  readonly first: readonly { readonly id: string; readonly reason: string }[];
}

/** What a schema would change; indexes are named `table.index`. */
export interface SchemaPreview extends Omit<SchemaReport, "unreachableTables"> {
  /** Tables with documents that the schema does not have. */
  readonly unreachable: readonly { readonly table: string; readonly documents: number }[];
  readonly misfits: readonly TableViolations[];
}

export interface SchemaOptions {
  /** Numbers for tables that the database does not have yet, so that ids from elsewhere are theirs. */
  readonly tableNumbers?: ReadonlyMap<string, number>;
  /**
   * For a database whose history is kept elsewhere: the version of the code that is served from now on, `null`: none is named.
   * Where it is another one than before this is a commit of its own, which changes no document.
   */
  readonly version?: string | null;
}

/** A change of tables that is made but not committed. */
export interface StagedChange<Result> {
  /** What has to be kept elsewhere before it is committed here; `null`: nothing, or nowhere. */
  readonly row: JournalRow | null;
  commit(): Result;
  undo(): void;
}

/** The only connection that writes. A group is one SQLite transaction; what a failed mutation wrote in it is undone from a list in memory. */
export interface WriterDatabase extends Disposable {
  /**
   * Begins with what is in the database now, before anything was done: it was opened while another one still wrote to it. Only
   * where the history is kept elsewhere.
   */
  reload(): void;
  /** Current ts, including mutations released in the open group. */
  readonly ts: number;
  /**
   * Makes tables and indexes fit the schema: builds new ones, drops removed indexes, checks every document of a table
   * whose definition may have changed. Throws a `SchemaError` naming table, id and field, and changes nothing then.
   * Tables that the schema no longer has keep their documents but cannot be reached.
   */
  applySchema(schema: SchemaDefinition, options?: SchemaOptions): SchemaReport;
  /** The same, but for the commit: of a database whose history is kept elsewhere. */
  stageSchema(schema: SchemaDefinition, options?: SchemaOptions): StagedChange<SchemaReport>;
  /**
   * Applies journal rows of another database inside the open group: the one way in which a history is followed. Each has to
   * be the next of the history that this database stands at the end of, or an `EngineError` says so; whatever this throws,
   * the group can only be rolled back then. Of a document whose keys stay as they are only the last state is written.
   * Gives back what whoever has the rows needs beside them to tell of their commits; rows that change tables or indexes
   * come one by one where it is told.
   */
  applyRows(rows: readonly JournalRow[]): AppliedRows;
  /** Where the history stands that this database keeps, or follows; `null` without one. */
  readonly history: JournalHead | null;
  /**
   * The rows of a generation up to `seq` are safe elsewhere: removes some of them, outside of a group. Gives back whether
   * there are more to remove.
   */
  confirmJournal(confirmed: { readonly generation: string; readonly seq: number }): boolean;
  /** Ends a generation, if it is the present one, outside of a group; rows that wait are dropped. */
  restartJournal(restart: { readonly generation: string; readonly reason: GenerationReason }): void;
  /**
   * A group was undone by this error: where the disk had no room, the write-ahead log is copied, so that it begins anew.
   * `again`: that has been done and was not enough. Then the journal is dropped and another generation begins, but only
   * where much of it waits: dropping less would take commits from the replica and make no room. Called outside of a group.
   * Gives back whether there may be room now that there was not before.
   */
  freeDiskSpace(error: unknown, options: { readonly again: boolean }): boolean;
  openGroup(): void;
  /** The view of the next mutation. `at`: its frozen clock, ms since the epoch. */
  beginMutation(options: { readonly at: number }): WriteTransaction;
  /** Ends the open mutation, keeping its writes. Gives it the next ts and an entry if it wrote, else `null`. */
  releaseMutation(): CommitEntry | null;
  /** Ends the open mutation, undoing its writes. */
  rollbackMutation(): void;
  /** The recorded answer of a mutation, or `null`. */
  findRecord(key: RecordKey): string | null;
  /** Records an answer, one line of text, in the open group, for a key that has none. Does not advance ts. */
  saveRecord(key: RecordKey, answer: string): void;
  /**
   * Does all that a commit of the open group needs but the commit itself, which is then `commitGroup` or `rollbackGroup`.
   * Gives back the row that has to be kept elsewhere before; `null`: there is none.
   */
  prepareCommit(text: string | null): JournalRow | null;
  /** Keeps `text` as the newest group's and commits. */
  commitGroup(text: string | null): void;
  /** Called after a group of so many calls, when its answers are out: does what would delay a commit later, if it is quiet. */
  maintain(calls: number): void;
  /** Undoes the whole open group. */
  rollbackGroup(): void;
  /** Text of the newest committed group, or `null` in a new database. */
  lastGroup(): string | null;
}
