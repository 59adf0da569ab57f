/** What rows make of documents: of each document only the last state, for whoever writes them in one go. */
import type { Tables } from "../catalog.ts";
import { EngineError } from "../errors.ts";
import type { Table } from "../table.ts";
import type { RowChange } from "./journal_row.ts";

/** What becomes of a document. */
export interface MergedState {
  /** `null`: there is none. */
  readonly text: string | null;
  /** Whether it is there, and the indexes hold of it what the last state is to have in them. */
  readonly same: boolean;
}

export class MergedChanges {
  readonly #tables: Tables;
  readonly #byTable = new Map<Table, Map<string, MergedState>>();

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** By table, in the order in which documents were changed first. */
  get byTable(): ReadonlyMap<Table, ReadonlyMap<string, MergedState>> {
    return this.#byTable;
  }

  /** What is to become of a document by now; `undefined`: nothing. Throws an `EngineError` for one of no table. */
  of(id: string): MergedState | undefined {
    return this.#byTable.get(this.tableOf(id))?.get(id);
  }

  /** Throws an `EngineError` for a document of no table. */
  add({ id, text, same }: RowChange): void {
    const table = this.tableOf(id);
    let states = this.#byTable.get(table);
    if (states === undefined) this.#byTable.set(table, states = new Map());
    // After another change the indexes do not hold what they are to hold, although this one leaves them as they are.
    states.set(id, { text, same: same && states.get(id)?.same !== false });
  }

  clear(): void {
    this.#byTable.clear();
  }

  /** Throws an `EngineError` for a document of no table. */
  tableOf(id: string): Table {
    const table = this.#tables.ofId(id);
    if (table === undefined) throw new EngineError("bad_entry", `There is no table of document "${id}"`);
    return table;
  }
}
