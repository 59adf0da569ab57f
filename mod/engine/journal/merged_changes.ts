/** Merges the changes of rows: only the last state of each document is written. */
import type { Tables } from "../catalog.ts";
import { EngineError } from "../errors.ts";
import type { Table } from "../table.ts";
import type { RowChange } from "./journal_row.ts";

/** The last state of a document. */
export interface MergedState {
  /** `null` if it is deleted. */
  readonly text: string | null;
  /** Whether the document exists and its index entries stay unchanged. */
  readonly same: boolean;
}

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
