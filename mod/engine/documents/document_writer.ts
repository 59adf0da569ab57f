/** Writes documents and their index entries to the SQLite tables, only where they differ. */
import { sameAggregateEntry } from "../aggregates/aggregate_index.ts";
import { PendingNodes } from "../aggregates/aggregate_nodes.ts";
import type { Connection } from "../connection.ts";
import { EngineError } from "../errors.ts";
import type { IndexEntries } from "../indexes/index_set.ts";
import { engineLimits } from "../limits.ts";
import { sameSearchEntry, type SearchEntry, type SearchIndex } from "../search/search_index.ts";
import type { Table } from "../table.ts";
import { sameVectorEntry, type VectorEntry, type VectorIndex } from "../vectors/vector_index.ts";

interface PendingEntry {
  readonly stored: SearchEntry | null;
  wanted: SearchEntry | null;
}

/**
 * Changes to search indexes that are written at the end of the group, or before a search in a mutation. FTS5 flushes
 * its memory whenever row ids do not increase, so writing a group's changes in order of row ids costs a tenth of single
 * updates.
 */
class PendingSearches {
  readonly #connection: Connection;
  readonly #pending = new Map<SearchIndex, Map<number, PendingEntry>>();
  #chars = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  note(
    index: SearchIndex,
    change: { readonly rid: number; readonly before: SearchEntry | null; readonly after: SearchEntry | null },
  ): void {
    const { rid, before, after } = change;
    if (sameSearchEntry(before, after)) return;
    let entries = this.#pending.get(index);
    if (entries === undefined) {
      entries = new Map();
      this.#pending.set(index, entries);
    }
    const entry = entries.get(rid);
    if (entry === undefined) entries.set(rid, { stored: before, wanted: after });
    else entry.wanted = after;
    this.#chars += after?.text.length ?? 0;
    if (this.#chars > engineLimits.searchCharsPending) this.write();
  }

  write(): void {
    for (const [index, entries] of this.#pending) {
      const changed = [...entries].filter(([, { stored, wanted }]) => !sameSearchEntry(stored, wanted))
        .sort(([a], [b]) => a - b);
      const { remove, insert } = index.sql;
      for (const [rid, { stored, wanted }] of changed) {
        if (stored !== null) this.#connection.statement(remove).run(rid, stored.text, stored.filters);
        if (wanted !== null) this.#connection.statement(insert).run(rid, wanted.text, wanted.filters);
      }
    }
    this.forget();
  }

  /** Drops pending changes after a rollback. */
  forget(): void {
    this.#pending.clear();
    this.#chars = 0;
  }
}

export interface StoredDocument {
  readonly table: Table;
  readonly id: string;
  /** Row id; 0 until the document is written. */
  rid: number;
  readonly text: string;
  entries: IndexEntries | null;
}

const { vectorChangesKept } = engineLimits;

export class DocumentWriter {
  readonly #connection: Connection;
  /** Changes to search indexes, written at the end of the group or before a search. */
  readonly searches: PendingSearches;
  readonly aggregates: PendingNodes;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.searches = new PendingSearches(connection);
    this.aggregates = new PendingNodes(connection);
  }

  /** Writes what waits for the end of the group. */
  writePending(): void {
    this.searches.write();
    this.aggregates.write();
  }

  /** Drops it after a rollback. */
  forgetPending(): void {
    this.searches.forget();
    this.aggregates.forget();
  }

  /** Changes a document from one state to another; `null` means none. Both must have their index entries. */
  write(before: StoredDocument | null, after: StoredDocument | null): void {
    if (after === null) {
      if (before !== null) this.#remove(before);
    } else if (before === null) {
      this.#insert(after);
    } else {
      this.#update(before, after);
    }
  }

  /** Replaces a document's text, not its index entries. Throws unless the row id belongs to it. */
  updateText({ table, rid, id, text }: Omit<StoredDocument, "entries">): void {
    this.#expectOneRow(table, this.#connection.statement(table.sql.updateAt).run(text, rid, id).changes);
  }

  /** The same for an unknown row id. */
  updateTextById({ table, id, text }: Pick<StoredDocument, "table" | "id" | "text">): void {
    this.#expectOneRow(table, this.#connection.statement(table.sql.updateById).run(text, id).changes);
  }

  #insert(after: StoredDocument): void {
    const { table, id, text } = after;
    if (after.rid === 0) {
      after.rid = this.#connection.statement(table.sql.insert).run(id, text).lastInsertRowid;
    } else {
      this.#connection.statement(table.sql.restore).run(id, text, after.rid);
    }
    for (const { writeSql, position } of table.indexes.fields) {
      this.#connection.statement(writeSql.insert).run(keyOf(after, position), after.rid);
    }
    this.#writeDerived(after, { before: null, after: after.entries });
  }

  #update(before: StoredDocument, after: StoredDocument): void {
    const { table } = after;
    this.#expectOneRow(
      table,
      this.#connection.statement(table.sql.update).run(after.text, after.rid).changes,
    );
    for (const { writeSql, position } of table.indexes.fields) {
      const from = keyOf(before, position);
      const to = keyOf(after, position);
      if (from !== to) {
        this.#expectOneRow(table, this.#connection.statement(writeSql.move).run(to, from).changes);
      }
    }
    this.#writeDerived(after, { before: before.entries, after: after.entries });
  }

  #remove(before: StoredDocument): void {
    const { table, rid } = before;
    this.#expectOneRow(table, this.#connection.statement(table.sql.remove).run(rid).changes);
    for (const { writeSql, position } of table.indexes.fields) {
      this.#expectOneRow(
        table,
        this.#connection.statement(writeSql.remove).run(keyOf(before, position)).changes,
      );
    }
    this.#writeDerived(before, { before: before.entries, after: null });
  }

  #writeDerived(
    { table, rid }: StoredDocument,
    states: { readonly before: IndexEntries | null; readonly after: IndexEntries | null },
  ): void {
    const { before, after } = states;
    const { searches, vectors, aggregates } = table.indexes;
    for (let position = 0; position < searches.length; position++) {
      const index = searches[position];
      if (index === undefined) continue;
      this.searches.note(index, {
        rid,
        before: before?.searches[position] ?? null,
        after: after?.searches[position] ?? null,
      });
    }
    for (let position = 0; position < vectors.length; position++) {
      const index = vectors[position];
      if (index === undefined) continue;
      const from = before?.vectors[position] ?? null;
      const to = after?.vectors[position] ?? null;
      if (!sameVectorEntry(from, to)) this.#writeVector(index, { rid, entry: to });
    }
    for (let position = 0; position < aggregates.length; position++) {
      const index = aggregates[position];
      if (index === undefined) continue;
      const from = before?.aggregates[position] ?? null;
      const to = after?.aggregates[position] ?? null;
      if (!sameAggregateEntry(from, to)) this.aggregates.change(index, { rid, before: from, after: to });
    }
  }

  #writeVector(
    { sql }: VectorIndex,
    { rid, entry }: { readonly rid: number; readonly entry: VectorEntry | null },
  ): void {
    if (entry === null) this.#connection.statement(sql.remove).run(rid);
    else this.#connection.statement(sql.insert).run(rid, new Uint8Array(entry.vector.buffer), entry.filters);
    const seq = this.#connection.statement(sql.noteChange).run(rid).lastInsertRowid;
    // Runs rarely, so somewhat more changes are kept.
    if (seq % 1024 === 0) this.#connection.statement(sql.forgetChanges).run(seq - vectorChangesKept);
  }

  /** Throws unless a write changed exactly one row. Anything else is damage, which must not spread. */
  #expectOneRow(table: Table, changes: number): void {
    if (changes === 1) return;
    throw new EngineError(
      "unusable_database",
      `The database is damaged: table "${table.name}" and its indexes do not agree; restore a backup`,
    );
  }
}

function keyOf({ entries, table }: StoredDocument, position: number): string {
  const key = entries?.keys[position];
  if (key === undefined) throw new RangeError(`No key ${position} of a document of table "${table.name}"`);
  return key;
}
