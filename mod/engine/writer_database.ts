/** The writing connection: groups of mutations, commit entries, replay records and schema changes. */
import { loadTables, storedTables, Tables } from "./catalog.ts";
import { APPLICATION_ID, Checkpoints, Connection, FORMAT_VERSION, isDiskFullError } from "./connection.ts";
import { DocumentWriter } from "./documents/document_writer.ts";
import { type NewId, newId } from "./documents/ids.ts";
import { EngineError, UnusableDatabaseError } from "./errors.ts";
import {
  applyCatalog,
  type CatalogState,
  catalogState,
  servedVersion,
  setServedVersion,
} from "./journal/catalog_state.ts";
import { historySource, isClusterSource } from "./journal/history_ownership.ts";
import {
  endGeneration,
  type GenerationReason,
  hasJournal,
  Journal,
  type JournalHead,
  moveHead,
  readHead,
} from "./journal/journal.ts";
import { checkFollows, type JournalRow, nextRow, readRow } from "./journal/journal_row.ts";
import { RowApplier } from "./journal/row_applier.ts";
import type { AppliedRows } from "./journal/row_entries.ts";
import { MutationTransaction } from "./mutation.ts";
import type { RecordRun } from "./record_runs.ts";
import { CREATE_DATABASE_SQL, upgradeFormat } from "./database/database_format.ts";
import { ReplayRecords } from "./replay_records.ts";
import { changeSchema } from "./schema_change.ts";
import type { SchemaOptions, StagedChange, WriterDatabase } from "./transaction.ts";
import type { CommitEntry, RecordKey, SchemaDefinition, SchemaReport } from "./types.ts";
import { VectorSearcher } from "./vectors/vector_search.ts";
import { WriteGroup } from "./documents/document_changes.ts";

const { now: systemNow } = Date;

interface OpenGroup {
  readonly writes: WriteGroup;
  readonly tsBefore: number;
  /** Entries of released mutations, for the journal. */
  readonly entries: CommitEntry[];
}

export interface WriterOptions {
  /** Clock for the expiry of replay records, ms since the epoch. */
  readonly now?: () => number;
  /** Generates the ids of new documents; random by default. */
  readonly newId?: NewId;
  /** Maximum file size in pages of 4 KiB. Beyond it writes fail as on a full disk. */
  readonly pagesMax?: number;
  /** Page cache; defaults to `engineLimits.writerCacheBytes`. */
  readonly cacheBytes?: number;
  /**
   * `on` keeps a journal with a limit for pending bytes. `applied` follows the history of another database. Without a
   * journal the first change ends an existing history.
   */
  readonly journal?:
    | { readonly kind: "on"; readonly pendingBytesMax: number }
    | { readonly kind: "applied" }
    /** Continues a history that is stored elsewhere: each row must be stored there before its commit here. */
    | { readonly kind: "external" };
}

/**
 * Opens or creates the database for writing. There must be one writer at a time. Throws an `EngineError` if the file is
 * damaged, foreign or newer.
 */
export function openWriterDatabase(path: string, options: WriterOptions = {}): WriterDatabase {
  const { pagesMax, cacheBytes } = options;
  const connection = Connection.openWriter(path, { pagesMax, cacheBytes });
  try {
    createIfEmpty(connection);
    const kind = options.journal?.kind;
    const source = historySource(connection);
    if (kind !== "applied" && kind !== "external") refuseFollowed(source, path);
    // After a power failure, lost commits are applied again from the cluster's log before the server answers.
    else if (source !== null && isClusterSource(source)) connection.deferSync();
    return new SqliteWriterDatabase(connection, { ...options, now: options.now ?? systemNow });
  } catch (error) {
    connection[Symbol.dispose]();
    throw error;
  }
}

/** A follower cannot continue after commits of its own. */
function refuseFollowed(source: string | null, path: string): void {
  if (source === null) return;
  throw new UnusableDatabaseError(path, {
    reason: `its commits come from "${source}"`,
    advice: isClusterSource(source)
      ? "serve it with --cluster, or restore a backup of it in another folder to make it a database of its own"
      : `serve it with --follow ${source}, or with --promote beside that to make it a database of its own`,
  });
}

function createIfEmpty(connection: Connection): void {
  connection.execute("BEGIN IMMEDIATE");
  if (connection.statement("PRAGMA user_version").get()?.[0] === 0) {
    connection.execute(
      `${CREATE_DATABASE_SQL}
       PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT_VERSION}`,
    );
  }
  connection.execute("COMMIT");
}

class SqliteWriterDatabase implements WriterDatabase {
  readonly #connection: Connection;
  readonly #now: () => number;
  readonly #newId: NewId;
  readonly #records: ReplayRecords;
  readonly #writer: DocumentWriter;
  readonly #vectors: VectorSearcher;
  readonly #checkpoints: Checkpoints;
  #upgraded = false;
  readonly #journal: Journal | null;
  /** Whether the next change ends a history that an earlier writer kept. */
  #endsHistory: boolean;
  /** Whether the open transaction has ended it. */
  #hasEndedHistory = false;
  /** Position of a history that is stored elsewhere. */
  #applied: JournalHead | null = null;
  /** Whether this writer creates rows for a history that is stored elsewhere. */
  readonly #makesRows: boolean;
  /** Result of `prepareCommit`; `null` before it. */
  #prepared: { readonly row: JournalRow | null } | null = null;
  #tables = new Tables([]);
  #ts: number;
  #lastCreationTime: number;
  #group: OpenGroup | null = null;
  #mutation: MutationTransaction | null = null;
  #at = 0;

  constructor(
    connection: Connection,
    { now, newId: ids = newId, journal }: Pick<WriterOptions, "journal" | "newId"> & {
      readonly now: () => number;
    },
  ) {
    this.#connection = connection;
    this.#now = now;
    this.#newId = ids;
    const row = connection.statement("SELECT ts, lastCreationTime FROM syncline_state").get();
    const [ts, lastCreationTime] = row as [number, number];
    this.#ts = ts;
    this.#lastCreationTime = lastCreationTime;
    this.#records = new ReplayRecords(connection, now);
    this.#writer = new DocumentWriter(connection);
    this.#vectors = new VectorSearcher(connection);
    this.#checkpoints = new Checkpoints(connection);
    this.#makesRows = journal?.kind === "external";
    this.#journal = journal?.kind === "on" ? Journal.open(connection, { ...journal, now, ts }) : null;
    const history = this.#journal === null && hasJournal(connection) ? readHead(connection) : null;
    this.#endsHistory = journal === undefined && history !== null && history.generation !== null;
    if (journal?.kind !== "applied" && journal?.kind !== "external") return;
    this.#applied = history;
    if (this.#makesRows) {
      if (history === null || history.generation === null) {
        throw new EngineError("bad_entry", "This database has no history that is kept elsewhere");
      }
    } else this.#tables = storedTables(connection);
  }

  reload(): void {
    if (!this.#makesRows || this.#group !== null) throw new RangeError("The writer is already in use");
    const row = this.#connection.statement("SELECT ts, lastCreationTime FROM syncline_state").get();
    [this.#ts, this.#lastCreationTime] = row as [number, number];
    this.#applied = readHead(this.#connection);
    // Rows applied by the other process may have rotated the record tables.
    this.#records.forget();
  }

  get ts(): number {
    return this.#ts;
  }

  get history(): JournalHead | null {
    return this.#journal?.head ?? this.#applied;
  }

  applySchema(schema: SchemaDefinition, options?: SchemaOptions): SchemaReport {
    return this.stageSchema(schema, options).commit();
  }

  stageSchema(schema: SchemaDefinition, options?: SchemaOptions): StagedChange<SchemaReport> {
    return this.#changeTables(this.#schemaChange(schema, options), options?.version);
  }

  #schemaChange(schema: SchemaDefinition, { tableNumbers }: SchemaOptions = {}) {
    return () => ({
      result: changeSchema(this.#connection, schema, { tableNumbers: tableNumbers ?? new Map() }),
      tables: loadTables(this.#connection, schema),
    });
  }

  /** Changes tables in an open transaction, and uses the new tables after its commit. */
  #changeTables<Result>(
    change: () => { readonly result: Result; readonly tables: Tables },
    version?: string | null,
  ): StagedChange<Result> {
    if (this.#group !== null) {
      throw new EngineError("bad_schema", "Cannot apply a schema inside an open group");
    }
    const tsBefore = this.#ts;
    const undo = () => {
      this.#ts = tsBefore;
      this.#journal?.discard();
      this.#hasEndedHistory = false;
      if (this.#connection.inTransaction) this.#connection.execute("ROLLBACK");
      if (this.#makesRows) this.#applied = readHead(this.#connection);
    };
    this.#begin();
    try {
      const journaled = this.#journal !== null || this.#endsHistory || this.#makesRows;
      const before = journaled ? JSON.stringify(catalogState(this.#connection)) : "";
      const { result, tables } = change();
      const entries = version === undefined || !this.#makesRows ? [] : this.#setVersion(version);
      const after = journaled ? catalogState(this.#connection) : null;
      let row: JournalRow | null = null;
      if (after !== null && JSON.stringify(after) !== before) {
        const lastCreationTime = this.#lastCreationTime;
        row = this.#record({ entries, records: [], lastCreationTime, tsBefore, catalog: after });
      }
      return {
        row,
        undo,
        commit: () => {
          try {
            this.#connection.execute("COMMIT");
          } catch (error) {
            undo();
            throw error;
          }
          this.#recorded();
          this.#tables = tables;
          return result;
        },
      };
    } catch (error) {
      undo();
      throw error;
    }
  }

  /** Returns the commit that changes the code version; none if it stays the same. */
  #setVersion(version: string | null): readonly CommitEntry[] {
    if (version === servedVersion(this.#connection)) return [];
    setServedVersion(this.#connection, version);
    this.#ts++;
    this.#connection.statement("UPDATE syncline_state SET ts = ?").run(this.#ts);
    return [{ ts: this.#ts, at: this.#now(), changes: [] }];
  }

  openGroup(): void {
    if (this.#group !== null) throw new RangeError("A group is open already");
    this.#begin();
    this.#group = { writes: new WriteGroup(this.#lastCreationTime), tsBefore: this.#ts, entries: [] };
  }

  /**
   * Begins a transaction. The first one upgrades the file: when it was opened, a process of an older version may still
   * have been writing to it.
   */
  #begin(): void {
    if (!this.#upgraded) upgradeFormat(this.#connection);
    this.#upgraded = true;
    this.#connection.statement("BEGIN IMMEDIATE").run();
  }

  applyRows(rows: readonly JournalRow[]): AppliedRows {
    const { writes } = this.#openGroup();
    if (this.#mutation !== null) throw new RangeError("Release or roll back the open mutation first");
    writes.check();
    try {
      let changes = new RowApplier(this.#connection, { writer: this.#writer, tables: this.#tables });
      for (const row of rows) {
        const head = checkFollows({ head: this.#applied, ts: this.#ts }, row);
        const { commits, records, lastCreationTime, catalog } = readRow(row);
        if (catalog !== null) {
          changes.write();
          this.#becomeCatalog(catalog);
          changes = new RowApplier(this.#connection, { writer: this.#writer, tables: this.#tables });
        }
        for (const commit of commits) changes.add(commit);
        writes.rewindCreationTime(lastCreationTime);
        for (const run of records) this.#records.saveRun(run);
        this.#ts = row.ts;
        this.#applied = { ...head, seq: row.seq, ts: row.ts, sum: row.sum };
      }
      return changes.write();
    } catch (error) {
      writes.fail(error);
      throw error;
    }
  }

  #becomeCatalog(catalog: CatalogState): void {
    this.#writer.searches.write();
    applyCatalog(this.#connection, catalog);
    this.#tables = storedTables(this.#connection);
    this.#vectors.forget();
  }

  confirmJournal(confirmed: { readonly generation: string; readonly seq: number }): boolean {
    if (this.#group !== null) throw new RangeError("A group is open");
    return this.#journal?.confirm(confirmed) ?? false;
  }

  restartJournal(restart: { readonly generation: string; readonly reason: GenerationReason }): void {
    if (this.#group !== null) throw new RangeError("A group is open");
    this.#journal?.restart(restart);
  }

  freeDiskSpace(error: unknown, { again }: { readonly again: boolean }): boolean {
    if (this.#group !== null) throw new RangeError("A group is open");
    if (this.#journal === null || !isDiskFullError(error)) return false;
    try {
      if (!again && this.#checkpoints.checkpoint()) return true;
      return this.#journal.dropBacklog();
    } catch {
      // A checkpoint needs free space in the file, and dropping rows needs some in the log.
      return false;
    }
  }

  /** Adds the open transaction to the journal. Returns the row to store elsewhere first, if any. */
  #record(
    change: {
      readonly tsBefore: number;
      readonly entries: readonly CommitEntry[];
      readonly records: readonly RecordRun[];
      readonly lastCreationTime: number;
      readonly catalog: CatalogState | null;
    },
  ): JournalRow | null {
    this.#journal?.append({ ...change, ts: this.#ts });
    const { tsBefore, records, catalog } = change;
    const changes = this.#ts !== tsBefore || records.length > 0 || catalog !== null;
    if (this.#endsHistory && changes) {
      endGeneration(this.#connection, "written");
      this.#hasEndedHistory = true;
    }
    let row: JournalRow | null = null;
    if (this.#makesRows && changes && this.#applied !== null) {
      row = nextRow(this.#applied, { ...change, ts: this.#ts, now: this.#now });
      this.#applied = { ...this.#applied, seq: row.seq, ts: row.ts, sum: row.sum };
    }
    if (this.#applied !== null && (row !== null || !this.#makesRows)) {
      moveHead(this.#connection, this.#applied);
    }
    return row;
  }

  /** Called after the transaction's commit. */
  #recorded(): void {
    this.#journal?.committed();
    if (this.#hasEndedHistory) this.#endsHistory = this.#hasEndedHistory = false;
  }

  beginMutation({ at }: { readonly at: number }): MutationTransaction {
    const { writes } = this.#openGroup();
    writes.check();
    if (this.#mutation !== null) throw new RangeError("A mutation is open already");
    this.#at = at;
    this.#mutation = new MutationTransaction({
      connection: this.#connection,
      tables: this.#tables,
      group: writes,
      writer: this.#writer,
      vectors: this.#vectors,
      newId: this.#newId,
      at,
    });
    return this.#mutation;
  }

  releaseMutation(): CommitEntry | null {
    const mutation = this.#openMutation();
    this.#openGroup().writes.check();
    this.#mutation = null;
    const changes = mutation.release();
    if (changes.length === 0) return null;
    this.#ts++;
    const entry = { ts: this.#ts, at: this.#at, changes };
    if (this.#journal !== null || this.#makesRows) this.#openGroup().entries.push(entry);
    return entry;
  }

  rollbackMutation(): void {
    const mutation = this.#openMutation();
    this.#mutation = null;
    mutation.rollback();
  }

  findRecord(key: RecordKey): string | null {
    return this.#records.find(key);
  }

  saveRecord(key: RecordKey, answer: string): void {
    this.#openGroup().writes.check();
    this.#records.save(key, { answer, ts: this.#ts });
  }

  prepareCommit(text: string | null): JournalRow | null {
    const { writes, tsBefore, entries } = this.#openGroup();
    writes.check();
    if (this.#mutation !== null) throw new RangeError("Release or roll back the open mutation first");
    try {
      this.#writer.searches.write();
      const records = this.#records.write();
      const { lastCreationTime } = writes;
      const row = this.#record({ tsBefore, entries, records, lastCreationTime, catalog: null });
      this.#connection.statement("UPDATE syncline_state SET ts = ?, lastCreationTime = ?, lastGroup = ?")
        .run(this.#ts, lastCreationTime, text);
      this.#prepared = { row };
      return row;
    } catch (error) {
      writes.fail(error);
      throw error;
    }
  }

  commitGroup(text: string | null): void {
    const { writes } = this.#openGroup();
    if (this.#prepared === null) this.prepareCommit(text);
    writes.check();
    try {
      this.#connection.statement("COMMIT").run();
    } catch (error) {
      writes.fail(error);
      throw error;
    }
    this.#lastCreationTime = writes.lastCreationTime;
    this.#group = null;
    this.#prepared = null;
    this.#recorded();
  }

  rollbackGroup(): void {
    const { tsBefore } = this.#openGroup();
    this.#mutation?.abandon();
    this.#mutation = null;
    // SQLite itself ends the transaction after some errors, such as a full disk.
    if (this.#connection.inTransaction) this.#connection.statement("ROLLBACK").run();
    this.#ts = tsBefore;
    this.#group = null;
    this.#prepared = null;
    this.#records.forget();
    this.#writer.searches.forget();
    this.#vectors.forget();
    this.#journal?.discard();
    this.#hasEndedHistory = false;
    if (this.#applied === null) return;
    this.#applied = readHead(this.#connection);
    if (!this.#makesRows) this.#tables = storedTables(this.#connection);
  }

  maintain(calls: number): void {
    if (this.#group === null) this.#checkpoints.afterGroup(calls);
  }

  lastGroup(): string | null {
    return this.#connection.statement("SELECT lastGroup FROM syncline_state").get()?.[0] as string | null;
  }

  [Symbol.dispose](): void {
    if (this.#group !== null) this.rollbackGroup();
    this.#connection[Symbol.dispose]();
  }

  #openGroup(): OpenGroup {
    if (this.#group === null) throw new RangeError("No group is open");
    return this.#group;
  }

  #openMutation(): MutationTransaction {
    if (this.#mutation === null) throw new RangeError("No mutation is open");
    return this.#mutation;
  }
}
