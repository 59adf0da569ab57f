/** The writing connection: groups of mutations, their commit entries, replay records and schema changes. */
import { CREATE_CATALOG_SQL, loadTables, storedTables, Tables } from "./catalog.ts";
import { Checkpoints } from "./checkpoints.ts";
import { APPLICATION_ID, Connection, FORMAT_VERSION } from "./connection.ts";
import { DocumentWriter } from "./documents/document_writer.ts";
import { EngineError } from "./errors.ts";
import { MutationTransaction } from "./mutation.ts";
import { CREATE_RECORDS_SQL, Records } from "./records.ts";
import { changeSchema, dropSchema } from "./schema_change.ts";
import type { RecordKey, SchemaOptions, SchemaReport, WriterDatabase } from "./transaction.ts";
import type { CommitEntry, SchemaDefinition } from "./types.ts";
import { VectorSearcher } from "./vectors/vector_search.ts";
import { WriteGroup } from "./write_group.ts";

const CREATE_STATE_SQL = `
  CREATE TABLE syncline_state (one INTEGER PRIMARY KEY CHECK (one = 1),
    ts INTEGER NOT NULL, lastCreationTime REAL NOT NULL, lastGroup TEXT);
  INSERT INTO syncline_state (one, ts, lastCreationTime) VALUES (1, 0, 0);`;

const { now: systemNow } = Date;

/** The group that is open, with what its end or its undoing needs. */
interface OpenGroup {
  readonly writes: WriteGroup;
  readonly tsBefore: number;
}

export interface WriterOptions {
  /** The clock by which replay records grow old, ms since the epoch. */
  readonly now?: () => number;
  /** Size the file may grow to, in pages of 4 KiB. Beyond it writes fail as on a full disk. */
  readonly pagesMax?: number;
}

/**
 * Opens the database for writing, making it if there is no file. There must be one writer at a time.
 * Throws an `EngineError` when the file is damaged, foreign, or written by a newer version.
 */
export function openWriterDatabase(path: string, options: WriterOptions = {}): WriterDatabase {
  const connection = Connection.openWriter(path, { pagesMax: options.pagesMax });
  try {
    createIfEmpty(connection);
    return new SqliteWriterDatabase(connection, options.now ?? systemNow);
  } catch (error) {
    connection[Symbol.dispose]();
    throw error;
  }
}

function createIfEmpty(connection: Connection): void {
  connection.execute("BEGIN IMMEDIATE");
  if (connection.statement("PRAGMA user_version").get()?.[0] === 0) {
    connection.execute(
      `${CREATE_CATALOG_SQL} ${CREATE_RECORDS_SQL} ${CREATE_STATE_SQL}
       PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT_VERSION}`,
    );
  }
  connection.execute("COMMIT");
}

class SqliteWriterDatabase implements WriterDatabase {
  readonly #connection: Connection;
  readonly #records: Records;
  readonly #writer: DocumentWriter;
  readonly #vectors: VectorSearcher;
  readonly #checkpoints: Checkpoints;
  #tables = new Tables([]);
  #ts: number;
  /** Creation time of the newest document of committed groups. */
  #lastCreationTime: number;
  #group: OpenGroup | null = null;
  #mutation: MutationTransaction | null = null;
  /** Clock of the open mutation. */
  #at = 0;

  constructor(connection: Connection, now: () => number) {
    this.#connection = connection;
    const row = connection.statement("SELECT ts, lastCreationTime FROM syncline_state").get();
    const [ts, lastCreationTime] = row as [number, number];
    this.#ts = ts;
    this.#lastCreationTime = lastCreationTime;
    this.#records = new Records(connection, now);
    this.#writer = new DocumentWriter(connection);
    this.#vectors = new VectorSearcher(connection);
    this.#checkpoints = new Checkpoints(connection);
  }

  get ts(): number {
    return this.#ts;
  }

  applySchema(schema: SchemaDefinition, { tableNumbers }: SchemaOptions = {}): SchemaReport {
    return this.#changeTables(() => ({
      result: changeSchema(this.#connection, schema, { tableNumbers: tableNumbers ?? new Map() }),
      tables: loadTables(this.#connection, schema),
    }));
  }

  prepareReplay(tables: ReadonlyMap<string, number>): void {
    this.#changeTables(() => ({
      result: dropSchema(this.#connection, tables),
      tables: storedTables(this.#connection),
    }));
  }

  /** Changes tables in a transaction of its own, and works with the new ones once it has committed. */
  #changeTables<Result>(change: () => { readonly result: Result; readonly tables: Tables }): Result {
    if (this.#group !== null) {
      throw new EngineError("bad_schema", "Cannot apply a schema inside an open group");
    }
    this.#connection.execute("BEGIN IMMEDIATE");
    try {
      const { result, tables } = change();
      this.#connection.execute("COMMIT");
      this.#tables = tables;
      return result;
    } catch (error) {
      if (this.#connection.inTransaction) this.#connection.execute("ROLLBACK");
      throw error;
    }
  }

  openGroup(): void {
    if (this.#group !== null) throw new RangeError("A group is open already");
    this.#connection.statement("BEGIN IMMEDIATE").run();
    this.#group = { writes: new WriteGroup(this.#lastCreationTime), tsBefore: this.#ts };
  }

  applyEntry(entry: CommitEntry): CommitEntry {
    if (entry.ts !== this.#ts + 1) {
      throw new EngineError("bad_entry", `Cannot apply entry ${entry.ts}: the database is at ${this.#ts}`);
    }
    const mutation = this.beginMutation({ at: entry.at });
    try {
      for (const change of entry.changes) mutation.applyChange(change);
    } catch (error) {
      this.rollbackMutation();
      throw error;
    }
    this.#openGroup().writes.check();
    this.#mutation = null;
    this.#ts = entry.ts;
    return { ts: entry.ts, at: entry.at, changes: mutation.release() };
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
    return { ts: this.#ts, at: this.#at, changes };
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
    this.#records.save(key, answer);
  }

  commitGroup(text: string): void {
    const { writes } = this.#openGroup();
    writes.check();
    if (this.#mutation !== null) throw new RangeError("Release or roll back the open mutation first");
    try {
      this.#writer.searches.write();
      this.#records.write();
      this.#connection.statement("UPDATE syncline_state SET ts = ?, lastCreationTime = ?, lastGroup = ?")
        .run(this.#ts, writes.lastCreationTime, text);
      this.#connection.statement("COMMIT").run();
    } catch (error) {
      writes.fail(error);
      throw error;
    }
    this.#lastCreationTime = writes.lastCreationTime;
    this.#group = null;
  }

  rollbackGroup(): void {
    const { tsBefore } = this.#openGroup();
    this.#mutation?.abandon();
    this.#mutation = null;
    // SQLite ends the transaction by itself after some errors, such as a full disk.
    if (this.#connection.inTransaction) this.#connection.statement("ROLLBACK").run();
    this.#ts = tsBefore;
    this.#group = null;
    this.#records.forget();
    this.#writer.searches.forget();
    this.#vectors.forget();
  }

  tend(calls: number): void {
    if (this.#group === null) this.#checkpoints.tend(calls);
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
