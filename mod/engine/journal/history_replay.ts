/**
 * Replays journal rows onto an unused copy of a database. It merges rows and writes only the last state of each
 * document, in the order of the file. This is several times faster than commit by commit but cannot be undone: discard
 * the copy if the replay fails.
 */
import { storedTables, type Tables } from "../catalog.ts";
import { Connection } from "../connection.ts";
import { DocumentWriter, type StoredDocument } from "../documents/document_writer.ts";
import { parseDocument, type StoredFields } from "../documents/system_fields.ts";
import { indexedFields, indexEntries, sameIndexed } from "../indexes/index_set.ts";
import { hasFieldsInCommonPrefix, MergedChanges, type MergedState } from "./row_applier.ts";
import { engineLimits } from "../limits.ts";
import type { RecordRun } from "../record_runs.ts";
import { ReplayRecords } from "../replay_records.ts";
import type { Table } from "../table.ts";
import { upgradeFormat } from "../database/database_format.ts";
import { applyCatalog } from "./catalog_state.ts";
import { hasJournal, type JournalHead, readHead, writeHead } from "./history_head.ts";
import { checkFollows, type JournalRow, readRow, recordsUntil } from "./journal_row.ts";

export interface TakeOptions {
  /** Replays the row's commits up to this ts. */
  readonly untilTs?: number;
  /** Whether to include replay records. Old ones are useless. */
  readonly withRecords?: boolean;
}

export interface ReplayedRow {
  readonly commits: number;
  /** Wall clock of the newest commit, ms since the epoch; `null` without commits. */
  readonly at: number | null;
}

export interface HistoryReplay extends Disposable {
  /** Position in the history after all rows taken. */
  readonly history: JournalHead | null;
  /** The newest commit taken. */
  readonly ts: number;
  /** Whether the pending changes must be written before more rows are taken. */
  readonly full: boolean;
  /** Takes the next row. Throws an `EngineError` for any other row. */
  take(row: JournalRow, options?: TakeOptions): ReplayedRow;
  /** Writes the pending changes and yields between transactions. Unwritten changes are lost on dispose. */
  write(): AsyncGenerator<void>;
}

/** Memory of a change besides its text. */
const CHANGE_BYTES = 250;

/** Opens a copy exclusively. Throws an `EngineError` if the file is damaged or foreign. */
export function openHistoryReplay(path: string): HistoryReplay {
  const connection = Connection.openScratch(path);
  try {
    upgradeFormat(connection);
    return new SqliteHistoryReplay(connection);
  } catch (error) {
    connection[Symbol.dispose]();
    throw error;
  }
}

class SqliteHistoryReplay implements HistoryReplay {
  readonly #connection: Connection;
  readonly #records: ReplayRecords;
  readonly #writer: DocumentWriter;
  #tables: Tables;
  #head: JournalHead | null;
  #ts: number;
  #lastCreationTime: number;
  /** Time of the newest row. */
  #at = 0;
  #pending: MergedChanges;
  #pendingBytes = 0;
  /** Cached row ids of recently changed documents. */
  readonly #rids = new Map<string, number>();

  constructor(connection: Connection) {
    this.#connection = connection;
    const row = connection.statement("SELECT ts, lastCreationTime FROM syncline_state").get();
    [this.#ts, this.#lastCreationTime] = row as [number, number];
    this.#head = hasJournal(connection) ? readHead(connection) : null;
    this.#records = new ReplayRecords(connection, () => this.#at);
    this.#writer = new DocumentWriter(connection);
    this.#tables = storedTables(connection);
    this.#pending = new MergedChanges(this.#tables);
  }

  get history(): JournalHead | null {
    return this.#head;
  }

  get ts(): number {
    return this.#ts;
  }

  get full(): boolean {
    return this.#pendingBytes >= engineLimits.replayBytesGathered;
  }

  take(row: JournalRow, { untilTs = Infinity, withRecords = true }: TakeOptions = {}): ReplayedRow {
    const head = checkFollows({ head: this.#head, ts: this.#ts }, row);
    const { commits, records, lastCreationTime, catalog } = readRow(row);
    this.#at = row.at;
    if (catalog !== null) {
      for (const _ of this.#writeAll()) { /* The tables are about to change. */ }
      this.#inTransaction(() => applyCatalog(this.#connection, catalog));
      this.#tables = storedTables(this.#connection);
      this.#pending = new MergedChanges(this.#tables);
      this.#rids.clear();
    }
    // The row's last creation time is that of its end.
    const cut = row.ts > untilTs;
    let taken = 0;
    let at: number | null = null;
    for (const commit of commits) {
      if (commit.ts > untilTs) break;
      for (const change of commit.changes) {
        const { id, text } = change;
        this.#pending.add(change);
        this.#pendingBytes += CHANGE_BYTES;
        if (cut && text !== null) this.#noteCreationTime(id, text);
      }
      this.#ts = commit.ts;
      at = commit.at;
      taken++;
    }
    if (!cut) this.#lastCreationTime = lastCreationTime;
    if (withRecords) { for (const run of records) this.#keep(recordsUntil(run, untilTs)); }
    this.#pendingBytes += row.body.length;
    this.#head = { ...head, seq: row.seq, ts: row.ts, sum: row.sum };
    return { commits: taken, at };
  }

  async *write(): AsyncGenerator<void> {
    for (const _ of this.#writeAll()) yield;
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }

  #noteCreationTime(id: string, text: string): void {
    const { _creationTime } = parseDocument(id, text);
    this.#lastCreationTime = Math.max(this.#lastCreationTime, Number(_creationTime));
  }

  #keep(run: RecordRun): void {
    if (run.answers.length === 0) return;
    this.#records.saveRun(run);
    this.#pendingBytes += CHANGE_BYTES;
  }

  /** Writes all changes, one transaction at a time. */
  *#writeAll(): Generator<void> {
    for (const [table, changed] of this.#pending.byTable) {
      for (const part of this.#parts(table, changed)) {
        this.#inTransaction(() => {
          this.#write(table, part);
          this.#writer.writePending();
        });
        yield;
      }
    }
    this.#pending.clear();
    this.#pendingBytes = 0;
    this.#inTransaction(() => {
      this.#records.write();
      this.#connection.statement("UPDATE syncline_state SET ts = ?, lastCreationTime = ?, lastGroup = NULL")
        .run(this.#ts, this.#lastCreationTime);
      if (this.#head !== null) writeHead(this.#connection, this.#head);
    });
    yield;
  }

  /** Splits the changes: existing documents in the order of the file, then new ones in their order. */
  *#parts(table: Table, changed: ReadonlyMap<string, MergedState>): Generator<Change[]> {
    const { replayRowsWritten } = engineLimits;
    const there: Change[] = [];
    const unknown: string[] = [];
    for (const [id, state] of changed) {
      const rid = this.#rids.get(id);
      if (rid === undefined) unknown.push(id);
      else there.push({ ...state, id, rid });
    }
    const found = this.#find(table, unknown);
    for (const [id, rid] of found) there.push({ ...changed.get(id) ?? NONE, id, rid });
    yield* pieces(there.sort((a, b) => a.rid - b.rid), replayRowsWritten);
    if (found.size === unknown.length) return;
    const made: Change[] = [];
    for (const id of unknown) {
      const state = changed.get(id) ?? NONE;
      if (state.text !== null && !found.has(id)) made.push({ ...state, id, rid: 0 });
    }
    yield* pieces(made, replayRowsWritten);
  }

  /** Looks up the row ids of existing documents and caches them. */
  #find(table: Table, ids: readonly string[]): ReadonlyMap<string, number> {
    const { replayRowsFound, replayRidsKept } = engineLimits;
    const found = new Map<string, number>();
    for (const some of pieces(ids.toSorted(), replayRowsFound)) {
      for (const row of this.#connection.statement(table.sql.ridsOf).all(JSON.stringify(some))) {
        const [at, rid] = row as [number, number];
        found.set(some[at] ?? "", rid);
      }
    }
    for (const [id, rid] of found) this.#rids.set(id, rid);
    let surplus = this.#rids.size <= replayRidsKept ? 0 : this.#rids.size - replayRidsKept / 2;
    for (const id of this.#rids.keys()) {
      if (surplus-- <= 0) break;
      this.#rids.delete(id);
    }
    return found;
  }

  #write(table: Table, changes: readonly Change[]): void {
    for (const some of pieces(changes, engineLimits.replayRowsRead)) {
      const rids = some.filter(({ rid, same }) => rid !== 0 && !same).map(({ rid }) => rid);
      const texts = new Map(
        rids.length === 0
          ? []
          : this.#connection.statement(table.sql.docsOf).all(JSON.stringify(rids)) as unknown as [
            number,
            string,
          ][],
      );
      for (const change of some) this.#writeOne(table, { ...change, old: texts.get(change.rid) ?? null });
    }
  }

  #writeOne(table: Table, { id, rid, text, same, old }: Change & { readonly old: string | null }): void {
    if (same && text !== null) return this.#writer.updateText({ table, rid, id, text });
    if (old === text) return;
    // Most changes do not affect indexes. A comparison of the strings is cheaper than computing the entries.
    const indexed = indexedFields(table.indexes);
    if (old !== null && text !== null && indexed !== null && hasFieldsInCommonPrefix(old, text, indexed)) {
      return this.#writer.updateText({ table, rid, id, text });
    }
    if (text === null) this.#rids.delete(id);
    const before = old === null ? null : parseDocument(id, old);
    const after = text === null ? null : parseDocument(id, text);
    const isAsItWas = before !== null && after !== null && before._creationTime === after._creationTime &&
      sameIndexed(table.indexes, before, after);
    if (isAsItWas && text !== null) return this.#writer.updateText({ table, rid, id, text });
    this.#writer.write(
      before === null || old === null ? null : stored(before, { table, id, rid, text: old }),
      after === null || text === null ? null : stored(after, { table, id, rid, text }),
    );
  }

  #inTransaction(write: () => void): void {
    this.#connection.statement("BEGIN IMMEDIATE").run();
    write();
    this.#connection.statement("COMMIT").run();
  }
}

/** The new state of a document; `rid` is 0 for a new one. */
interface Change extends MergedState {
  readonly id: string;
  readonly rid: number;
}

const NONE: MergedState = { text: null, same: false };

function stored(doc: StoredFields, of: Omit<StoredDocument, "entries">): StoredDocument {
  return { ...of, entries: indexEntries(of.table.indexes, doc) };
}

function* pieces<Item>(items: readonly Item[], size: number): Generator<Item[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}
