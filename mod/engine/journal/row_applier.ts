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
import { EngineError } from "../errors.ts";
import { indexedFields, indexEntries } from "../indexes/index_set.ts";
import type { Table } from "../table.ts";
import type { DocumentChange } from "../types.ts";
import type { RowChange, RowCommit } from "./journal_row.ts";
import type { AppliedRows, AppliedTable } from "./row_entries.ts";

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const BACKSLASH = 92;
const [BRACE, BRACE_END, BRACKET, BRACKET_END] = [123, 125, 91, 93];

/** Whether fields are equal, being in the common prefix of two `JSON.stringify` strings; `false` if unknown. */
export function hasFieldsInCommonPrefix(a: string, b: string, fields: ReadonlySet<string>): boolean {
  let missing = fields.size;
  let depth = 0;
  /** Start and end of the current field's name; -1 if unknown. */
  let [nameAt, nameEnd] = [-1, -1];
  for (let at = 0; at < a.length; at++) {
    const code = a.charCodeAt(at);
    if (code !== b.charCodeAt(at)) return false;
    if (code === QUOTE) {
      const begin = at + 1;
      for (at = begin; a.charCodeAt(at) !== QUOTE; at++) {
        if (at >= a.length || a.charCodeAt(at) !== b.charCodeAt(at)) return false;
        if (a.charCodeAt(at) === BACKSLASH && a.charCodeAt(++at) !== b.charCodeAt(at)) return false;
      }
      if (b.charCodeAt(at) !== QUOTE) return false;
      if (depth === 1 && nameAt < 0) [nameAt, nameEnd] = [begin, at];
    } else if (code === BRACE || code === BRACKET) depth++;
    else if (depth === 1 && (code === COMMA || code === BRACE_END)) {
      if (fields.has(a.slice(nameAt, nameEnd)) && --missing === 0) return true;
      nameAt = -1;
      if (code === BRACE_END) return false;
    } else if (code === BRACE_END || code === BRACKET_END) depth--;
    else if (code === COLON && nameAt < 0) return false;
  }
  return false;
}

/** The last state of a document. */
export interface MergedState {
  /** `null` if it is deleted. */
  readonly text: string | null;
  /** Whether the document exists and its index entries stay unchanged. */
  readonly same: boolean;
}

/** Merges the changes of rows: only the last state of each document is written. */
export class MergedChanges {
  readonly #tables: Tables;
  readonly #byTable = new Map<Table, Map<string, MergedState>>();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** By table, in the order of first changes. */
  get byTable(): ReadonlyMap<Table, ReadonlyMap<string, MergedState>> {
    return this.#byTable;
  }

  /** Returns the merged state, or `undefined`. Throws an `EngineError` for a document without a table. */
  of(id: string): MergedState | undefined {
    return this.#byTable.get(this.tableOf(id))?.get(id);
  }

  add({ id, text, same }: RowChange): void {
    const table = this.tableOf(id);
    let states = this.#byTable.get(table);
    if (states === undefined) this.#byTable.set(table, states = new Map());
    // An earlier change has changed the entries even if this one does not.
    states.set(id, { text, same: same && states.get(id)?.same !== false });
  }

  clear(): void {
    this.#byTable.clear();
  }

  tableOf(id: string): Table {
    const table = this.#tables.ofId(id);
    if (table === undefined) throw new EngineError("bad_entry", `No table has document "${id}"`);
    return table;
  }
}

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
