/** Brings the SQLite tables of a document table from one state of a document to another, touching only what differs. */
import type { Connection } from "./connection.ts";
import { EngineError } from "./errors.ts";
import type { Table } from "./table.ts";

/** A document in the database. */
export interface StoredDocument {
  readonly table: Table;
  readonly id: string;
  /** Row id; 0 until the document is first written. */
  rid: number;
  readonly text: string;
  /** Keys in the table's indexes, made when they are first needed. */
  keys: readonly string[] | null;
}

export class DocumentWriter {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Both states are of the same document; `null` is none. Keys of both must have been made. */
  write(before: StoredDocument | null, after: StoredDocument | null): void {
    if (after === null) {
      if (before !== null) this.#remove(before);
    } else if (before === null) {
      this.#insert(after);
    } else {
      this.#update(before, after);
    }
  }

  #insert(after: StoredDocument): void {
    const { table, id, text } = after;
    if (after.rid === 0) {
      after.rid = this.#connection.statement(table.sql.insert).run(id, text).lastInsertRowid;
    } else {
      this.#connection.statement(table.sql.restore).run(id, text, after.rid);
    }
    for (const { writeSql, position } of table.indexes) {
      this.#connection.statement(writeSql.insert).run(keyOf(after, position), after.rid);
    }
  }

  #update(before: StoredDocument, after: StoredDocument): void {
    const { table } = after;
    this.#one(table, this.#connection.statement(table.sql.update).run(after.text, after.rid).changes);
    for (const { writeSql, position } of table.indexes) {
      const from = keyOf(before, position);
      const to = keyOf(after, position);
      if (from !== to) this.#one(table, this.#connection.statement(writeSql.move).run(to, from).changes);
    }
  }

  #remove(before: StoredDocument): void {
    const { table, rid } = before;
    this.#one(table, this.#connection.statement(table.sql.remove).run(rid).changes);
    for (const { writeSql, position } of table.indexes) {
      this.#one(table, this.#connection.statement(writeSql.remove).run(keyOf(before, position)).changes);
    }
  }

  /** Each write must meet exactly the row it is meant for: anything else is damage, which must not spread. */
  #one(table: Table, changes: number): void {
    if (changes === 1) return;
    throw new EngineError(
      "unusable_database",
      `The database is damaged: table "${table.name}" and its indexes do not agree; restore a backup`,
    );
  }
}

function keyOf({ keys, table }: StoredDocument, position: number): string {
  const key = keys?.[position];
  if (key === undefined) throw new RangeError(`No key ${position} of a document of table "${table.name}"`);
  return key;
}
