/**
 * Applies rows to a database in one transaction. It writes the last state of each document, and earlier states if their
 * index keys differed, because a subscription may show any commit. A change with unchanged keys takes one statement and
 * reads nothing.
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
  /** Key changes of intermediate states, for changes not marked `same`. */
  readonly #intermediate: DocumentChange[] = [];

  constructor(
    connection: Connection,
    { writer, tables }: { readonly writer: DocumentWriter; readonly tables: Tables },
  ) {
    this.#connection = connection;
    this.#writer = writer;
    this.#merged = new MergedChanges(tables);
  }

  add({ changes }: RowCommit): void {
    for (const change of changes) {
      const before = this.#merged.of(change.id);
      if (before !== undefined && !before.same && !change.same) this.#writeIntermediate(change.id, before);
      this.#merged.add(change);
    }
  }

  /** Writes a state that a later change replaces: its keys may differ from both others. */
  #writeIntermediate(id: string, { text }: MergedState): void {
    this.#intermediate.push(this.#writeState(this.#merged.tableOf(id), { id, text }));
  }

  /** Throws an `EngineError` if the rows do not belong to this database, or if it is damaged. */
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

  /** Writes a state of a document. Returns its keys before and after. */
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

/** Returns whether the index entries are certainly equal, without computing them. */
function haveEqualEntries({ indexes }: Table, old: string, text: string): boolean {
  const indexed = indexedFields(indexes);
  return indexed !== null && hasFieldsInCommonPrefix(old, text, indexed);
}

function appliedTable({ name, number, space, indexes }: Table): AppliedTable {
  return { name, number, space, indexes: indexes.fields.map(({ space, paths }) => ({ space, paths })) };
}
