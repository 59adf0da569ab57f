/**
 * What rows do to the documents of a database, written in one go. Of each document the last state is written. States before it
 * are written as well where their keys in the indexes were others, for a socket may be shown any commit. Where a row says that
 * a change leaves the keys as they were, one statement writes the document, and nothing of it is read.
 */
import type { Tables } from "../catalog.ts";
import type { Connection } from "../connection.ts";
import { keyChangesOf } from "../documents/document_changes.ts";
import type { DocumentWriter, StoredDocument } from "../documents/document_writer.ts";
import { parseDocument } from "../documents/system_fields.ts";
import { indexedFields, indexEntries } from "../indexes/index_set.ts";
import { hasFieldsInCommonPrefix } from "../indexes/common_prefix.ts";
import type { DocumentChange } from "../types.ts";
import type { Table } from "../table.ts";
import { MergedChanges, type MergedState } from "./merged_changes.ts";
import type { RowCommit } from "./journal_row.ts";
import type { AppliedRows, AppliedTable } from "./row_entries.ts";

export class RowApplier {
  readonly #connection: Connection;
  readonly #writer: DocumentWriter;
  readonly #merged: MergedChanges;
  /** Keys of the states that others followed: one for each change that is not marked `same`, but a document's last. */
  readonly #intermediate: DocumentChange[] = [];

  constructor(
    connection: Connection,
    { writer, tables }: { readonly writer: DocumentWriter; readonly tables: Tables },
  ) {
    this.#connection = connection;
    this.#writer = writer;
    this.#merged = new MergedChanges(tables);
  }

  /** Throws an `EngineError` for a document of no table. */
  add({ changes }: RowCommit): void {
    for (const change of changes) {
      const before = this.#merged.of(change.id);
      if (before !== undefined && !before.same && !change.same) this.#writeIntermediate(change.id, before);
      this.#merged.add(change);
    }
  }

  /** Writes a state that another one follows: its keys may be neither those of before nor those of the end. */
  #writeIntermediate(id: string, { text }: MergedState): void {
    this.#intermediate.push(this.#writeState(this.#merged.tableOf(id), { id, text }));
  }

  /** Throws an `EngineError` for what cannot be of this database, and when it is damaged. */
  write(): AppliedRows {
    const tables: AppliedTable[] = [];
    const changes = [...this.#intermediate];
    for (const [table, states] of this.#merged.byTable) {
      tables.push(appliedTable(table));
      for (const [id, { text, same }] of states) {
        if (same && text !== null) this.#writer.updateTextById({ table, id, text });
        else changes.push(this.#writeState(table, { id, text }));
      }
    }
    return { tables, changes };
  }

  /** Brings a document to a state, whatever it was before. Gives back its keys in both. */
  #writeState(
    table: Table,
    { id, text }: { readonly id: string; readonly text: string | null },
  ): DocumentChange {
    const row = this.#connection.statement(table.sql.get).get(id) as [number, string] | undefined;
    const [rid, old] = row ?? [0, null];
    const after = text === null ? null : stored(table, { id, rid, text });
    const before = old === null
      ? null
      : after !== null && haveEqualEntries(table, old, after.text)
      ? { ...after, text: old }
      : stored(table, { id, rid, text: old });
    if (old !== text) this.#writer.write(before, after);
    const keys = keyChangesOf(table, { id, before, after });
    return { table: table.name, tableNumber: table.number, id, keys };
  }
}

function stored(table: Table, document: Pick<StoredDocument, "id" | "rid" | "text">): StoredDocument {
  const doc = parseDocument(document.id, document.text);
  return { table, ...document, entries: indexEntries(table.indexes, doc) };
}

/** Whether all that indexes hold is the same, as far as that is told without making it. */
function haveEqualEntries({ indexes }: Table, old: string, text: string): boolean {
  const indexed = indexedFields(indexes);
  return indexed !== null && hasFieldsInCommonPrefix(old, text, indexed);
}

function appliedTable({ name, number, space, indexes }: Table): AppliedTable {
  return { name, number, space, indexes: indexes.fields.map(({ space, paths }) => ({ space, paths })) };
}
