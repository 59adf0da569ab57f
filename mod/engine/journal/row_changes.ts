/**
 * What rows do to the documents of a database, written in one go. Of each document the last state is written. States before it
 * are written as well where their keys in the indexes were others, for a socket may be shown any commit. Where a row says that
 * a change leaves the keys as they were, one statement writes the document, and nothing of it is read.
 */
import type { Tables } from "../catalog.ts";
import type { Connection } from "../connection.ts";
import { keyChangesOf } from "../documents/document_changes.ts";
import type { DocumentWriter, StoredDocument } from "../documents/document_writer.ts";
import { documentOfEntry } from "../documents/system_fields.ts";
import { indexedFields, indexEntries } from "../indexes/index_set.ts";
import { beginAlike } from "../indexes/same_fields.ts";
import type { DocumentChange } from "../types.ts";
import type { Table } from "../table.ts";
import { GatheredChanges, type GatheredState } from "./gathered_changes.ts";
import type { RowCommit } from "./row.ts";
import type { AppliedRows, AppliedTable } from "./row_entries.ts";

export class RowChanges {
  readonly #connection: Connection;
  readonly #writer: DocumentWriter;
  readonly #gathered: GatheredChanges;
  /** Keys of the states that others followed: one for each change that is not marked `same`, but a document's last. */
  readonly #passed: DocumentChange[] = [];

  constructor(
    connection: Connection,
    { writer, tables }: { readonly writer: DocumentWriter; readonly tables: Tables },
  ) {
    this.#connection = connection;
    this.#writer = writer;
    this.#gathered = new GatheredChanges(tables);
  }

  /** Throws an `EngineError` for a document of no table. */
  gather({ changes }: RowCommit): void {
    for (const change of changes) {
      const before = this.#gathered.of(change.id);
      if (before !== undefined && !before.same && !change.same) this.#pass(change.id, before);
      this.#gathered.add(change);
    }
  }

  /** Writes a state that another one follows: its keys may be neither those of before nor those of the end. */
  #pass(id: string, { text }: GatheredState): void {
    this.#passed.push(this.#bring(this.#gathered.tableOf(id), { id, text }));
  }

  /** Throws an `EngineError` for what cannot be of this database, and when it is damaged. */
  write(): AppliedRows {
    const tables: AppliedTable[] = [];
    const changes = [...this.#passed];
    for (const [table, states] of this.#gathered.byTable) {
      tables.push(appliedTable(table));
      for (const [id, { text, same }] of states) {
        if (same && text !== null) this.#writer.rewriteById({ table, id, text });
        else changes.push(this.#bring(table, { id, text }));
      }
    }
    return { tables, changes };
  }

  /** Brings a document to a state, whatever it was before. Gives back its keys in both. */
  #bring(table: Table, { id, text }: { readonly id: string; readonly text: string | null }): DocumentChange {
    const row = this.#connection.statement(table.sql.get).get(id) as [number, string] | undefined;
    const [rid, old] = row ?? [0, null];
    const after = text === null ? null : stored(table, { id, rid, text });
    const before = old === null
      ? null
      : after !== null && seemsSame(table, old, after.text)
      ? { ...after, text: old }
      : stored(table, { id, rid, text: old });
    if (old !== text) this.#writer.write(before, after);
    const keys = keyChangesOf(table, { id, before, after });
    return { table: table.name, tableNumber: table.number, id, keys };
  }
}

function stored(table: Table, document: Pick<StoredDocument, "id" | "rid" | "text">): StoredDocument {
  const doc = documentOfEntry(document.id, document.text);
  return { table, ...document, entries: indexEntries(table.indexes, doc) };
}

/** Whether all that indexes hold is the same, as far as that is told without making it. */
function seemsSame({ indexes }: Table, old: string, text: string): boolean {
  const indexed = indexedFields(indexes);
  return indexed !== null && beginAlike(old, text, indexed);
}

function appliedTable({ name, number, space, indexes }: Table): AppliedTable {
  return { name, number, space, indexes: indexes.fields.map(({ space, paths }) => ({ space, paths })) };
}
