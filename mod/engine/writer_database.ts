/** The writing connection: groups of mutations, commit entries, replay records and schema changes. */
import { loadTables, storedTables, Tables } from "./catalog.ts";
import { isDiskFull } from "../kit/durable_files.ts";
import { APPLICATION_ID, Checkpoints, Connection, FORMAT_VERSION } from "./connection.ts";
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
import {
  type CommitHistory,
  ExternalHistory,
  type JournaledGroup,
  UnjournaledHistory,
} from "./journal/commit_history.ts";
import { historySource, isClusterSource } from "./journal/history_ownership.ts";
import type { GenerationReason, JournalHead } from "./journal/history_head.ts";
import { Journal } from "./journal/journal.ts";
import { type JournalRow, readRow } from "./journal/journal_row.ts";
import { RowApplier } from "./journal/row_applier.ts";
import type { AppliedRows } from "./journal/row_entries.ts";
import { MutationTransaction } from "./mutation.ts";
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
  /** Tables before the group, which may apply rows that change them. */
  readonly tablesBefore: Tables;
  /** Entries of released mutations, for the history. */
  readonly entries: CommitEntry[];
  mutation: MutationTransaction | null;
  /** Clock of the open mutation. */
  at: number;
  isPrepared: boolean;
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
   * Keeps a journal, with a limit for pending bytes. `external` continues a history that is stored elsewhere: rows are
   * applied from there, or appended there before their commit. Without a journal the first change ends an existing
   * history.
   */
  readonly journal?: { readonly pendingBytesMax: number } | "external";
}

/** Opens or creates the database; one writer at a time. Throws an `EngineError` if it is damaged, foreign or newer. */
export function openWriterDatabase(path: string, options: WriterOptions = {}): WriterDatabase {
  const { pagesMax, cacheBytes } = options;
  const connection = Connection.openWriter(path, { pagesMax, cacheBytes });
  try {
    createIfEmpty(connection);
    const source = historySource(connection);
    if (options.journal !== "external") refuseFollowed(source, path);
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
  readonly #history: CommitHistory;
  #tables = new Tables([]);
  #ts = 0;
  #lastCreationTime = 0;
  #group: OpenGroup | null = null;

  constructor(
    connection: Connection,
    { now, newId: ids = newId, journal }: Pick<WriterOptions, "journal" | "newId"> & {
      readonly now: () => number;
    },
  ) {
    this.#connection = connection;
    this.#now = now;
    this.#newId = ids;
    this.#readState();
    this.#records = new ReplayRecords(connection, now);
    this.#writer = new DocumentWriter(connection);
    this.#vectors = new VectorSearcher(connection);
    this.#checkpoints = new Checkpoints(connection);
    if (journal === "external") {
      this.#history = new ExternalHistory(connection, now);
      this.#tables = storedTables(connection);
    } else if (journal !== undefined) {
      this.#history = Journal.open(connection, { ...journal, now, ts: this.#ts });
    } else this.#history = new UnjournaledHistory(connection);
  }

  #readState(): void {
    const row = this.#connection.statement("SELECT ts, lastCreationTime FROM syncline_state").get();
    [this.#ts, this.#lastCreationTime] = row as [number, number];
  }

  reload(): void {
    if (!(this.#history instanceof ExternalHistory) || this.#group !== null) {
      throw new RangeError("The writer is already in use");
    }
    this.#readState();
    this.#history.discarded();
    // Rows applied by the other process may have rotated the record tables.
    this.#records.forget();
  }

  get ts(): number {
    return this.#ts;
  }

  get history(): JournalHead | null {
    return this.#history.head;
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
      if (this.#connection.inTransaction) this.#connection.execute("ROLLBACK");
      this.#history.discarded();
    };
    this.#begin();
    try {
      const before = JSON.stringify(catalogState(this.#connection));
      const { result, tables } = change();
      const entries = version === undefined ? [] : this.#setVersion(version);
      const after = catalogState(this.#connection);
      const catalog = JSON.stringify(after) === before ? null : after;
      const row = this.#append({
        entries,
        records: [],
        lastCreationTime: this.#lastCreationTime,
        tsBefore,
        catalog,
      });
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
          this.#history.committed();
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
    this.#group = {
      writes: new WriteGroup(this.#lastCreationTime),
      tsBefore: this.#ts,
      tablesBefore: this.#tables,
      entries: [],
      mutation: null,
      at: 0,
      isPrepared: false,
    };
  }

  /** Begins a transaction. The first one upgrades the file: a process of an older version may have been writing before. */
  #begin(): void {
    if (!this.#upgraded) upgradeFormat(this.#connection);
    this.#upgraded = true;
    this.#connection.statement("BEGIN IMMEDIATE").run();
  }

  applyRows(rows: readonly JournalRow[]): AppliedRows {
    const history = this.#history;
    if (!(history instanceof ExternalHistory)) {
      throw new EngineError("bad_entry", "This database does not follow the history of another");
    }
    const { writes } = this.#finishedGroup();
    try {
      let changes = new RowApplier(this.#connection, { writer: this.#writer, tables: this.#tables });
      for (const row of rows) {
        history.follow(row, this.#ts);
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
      }
      return changes.write();
    } catch (error) {
      writes.fail(error);
      throw error;
    }
  }

  #becomeCatalog(catalog: CatalogState): void {
    this.#writer.writePending();
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
    if (this.#journal === null || !isDiskFull(error)) return false;
    try {
      if (!again && this.#checkpoints.checkpoint()) return true;
      return this.#journal.dropBacklog();
    } catch {
      // A checkpoint needs free space in the file, and dropping rows needs some in the log.
      return false;
    }
  }

  get #journal(): Journal | null {
    return this.#history instanceof Journal ? this.#history : null;
  }

  /** Adds the open transaction to the history. Returns the row to append elsewhere first, if any. */
  #append(group: Omit<JournaledGroup, "ts">): JournalRow | null {
    return this.#history.append({ ...group, ts: this.#ts });
  }

  beginMutation({ at }: { readonly at: number }): MutationTransaction {
    const group = this.#openGroup();
    group.writes.check();
    if (group.mutation !== null) throw new RangeError("A mutation is open already");
    group.at = at;
    group.mutation = new MutationTransaction({
      connection: this.#connection,
      tables: this.#tables,
      group: group.writes,
      writer: this.#writer,
      vectors: this.#vectors,
      newId: this.#newId,
      at,
    });
    return group.mutation;
  }

  releaseMutation(): CommitEntry | null {
    const { group, mutation } = this.#openMutation();
    group.writes.check();
    group.mutation = null;
    const changes = mutation.release();
    if (changes.length === 0) return null;
    this.#ts++;
    const entry = { ts: this.#ts, at: group.at, changes };
    if (this.#history.usesEntries) group.entries.push(entry);
    return entry;
  }

  rollbackMutation(): void {
    const { group, mutation } = this.#openMutation();
    group.mutation = null;
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
    const group = this.#finishedGroup();
    const { writes, tsBefore, entries } = group;
    try {
      this.#writer.writePending();
      const records = this.#records.write();
      const { lastCreationTime } = writes;
      const row = this.#append({ tsBefore, entries, records, lastCreationTime, catalog: null });
      // A group that only read leaves the database unchanged, so its commit needs no sync.
      if (
        this.#ts !== tsBefore || records.length > 0 || lastCreationTime !== this.#lastCreationTime ||
        row !== null
      ) {
        this.#connection.statement("UPDATE syncline_state SET ts = ?, lastCreationTime = ?, lastGroup = ?")
          .run(this.#ts, lastCreationTime, text);
      }
      group.isPrepared = true;
      return row;
    } catch (error) {
      writes.fail(error);
      throw error;
    }
  }

  commitGroup(text: string | null): void {
    const { writes, isPrepared } = this.#openGroup();
    if (!isPrepared && this.prepareCommit(text) !== null) {
      throw new RangeError("Append the row of this group before its commit");
    }
    writes.check();
    try {
      this.#connection.statement("COMMIT").run();
    } catch (error) {
      writes.fail(error);
      throw error;
    }
    this.#lastCreationTime = writes.lastCreationTime;
    this.#group = null;
    this.#history.committed();
  }

  rollbackGroup(): void {
    const { tsBefore, tablesBefore, mutation } = this.#openGroup();
    mutation?.abandon();
    // SQLite itself ends the transaction after some errors, such as a full disk.
    if (this.#connection.inTransaction) this.#connection.statement("ROLLBACK").run();
    this.#ts = tsBefore;
    this.#tables = tablesBefore;
    this.#group = null;
    this.#records.forget();
    this.#writer.forgetPending();
    this.#vectors.forget();
    this.#history.discarded();
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

  /** The open group without an open mutation. */
  #finishedGroup(): OpenGroup {
    const group = this.#openGroup();
    group.writes.check();
    if (group.mutation !== null) throw new RangeError("Release or roll back the open mutation first");
    return group;
  }

  #openMutation(): { readonly group: OpenGroup; readonly mutation: MutationTransaction } {
    const group = this.#openGroup();
    if (group.mutation === null) throw new RangeError("No mutation is open");
    return { group, mutation: group.mutation };
  }
}
