/** Indexes on fields: ordered keys in an SQLite table each. */
import { documentLimits } from "../../limits.ts";
import { EngineError } from "../errors.ts";
import { valueKey } from "./keys.ts";
import { type CountSql, countSql } from "./range_count.ts";
import type { KeySpace } from "../types.ts";
import { type Path, pathOf, type StoredFields, valueAt } from "../documents/system_fields.ts";

/** An index to scan: on fields, or the ids of a table. */
export interface ScanIndex {
  readonly name: string;
  readonly space: KeySpace;
  /** Position of its key among a document's field keys; -1 for `by_id`. */
  readonly position: number;
  /** Fields of bounds, in order. `_creationTime` is last, except in `by_id`. */
  readonly boundFields: readonly string[];
  /** Parameters: lo, hi, number of rows. Columns: key, rid, doc. */
  readonly scanSql: { readonly asc: string; readonly desc: string };
  /** The same parameters. One row: the last key, and the documents separated by commas. Both are `NULL` without rows. */
  readonly takeSql: { readonly asc: string; readonly desc: string };
  readonly countSql: CountSql;
}

/** Returns the SQL to read rows of an index. `select` has the columns key, rid and doc; `key` is the key's column. */
export function readSql(select: string, key: string): Pick<ScanIndex, "scanSql" | "takeSql"> {
  // A plain parameter after LIMIT makes SQLite prepare the statement again for each value; an expression does not.
  const [asc, desc] = [`${select} ORDER BY ${key} LIMIT ?+0`, `${select} ORDER BY ${key} DESC LIMIT ?+0`];
  // SQLite keeps the order of a subquery with LIMIT for `group_concat`.
  return {
    scanSql: { asc, desc },
    takeSql: {
      asc: `SELECT max(key), group_concat(doc) FROM (${asc})`,
      desc: `SELECT min(key), group_concat(doc) FROM (${desc})`,
    },
  };
}

/** An index on fields. `position` is its place among the table's field indexes. */
export interface FieldIndex extends ScanIndex {
  readonly number: number;
  readonly paths: readonly Path[];
  readonly writeSql: {
    readonly insert: string;
    readonly move: string;
    readonly remove: string;
  };
}

export function createFieldIndexSql(number: number): string {
  return `CREATE TABLE i${number} (key TEXT PRIMARY KEY, rid INTEGER NOT NULL) WITHOUT ROWID`;
}

export function dropFieldIndexSql(number: number): string {
  return `DROP TABLE i${number}`;
}

/** Returns an index by its catalog number. `documents` is the SQLite table of its documents. */
export function fieldIndex(
  documents: string,
  index: {
    readonly name: string;
    readonly number: number;
    readonly position: number;
    readonly fields: readonly string[];
  },
): FieldIndex {
  const { name, number, position, fields } = index;
  const entries = `i${number}`;
  const rows = `SELECT k.key AS key, k.rid, d.doc AS doc FROM ${entries} k CROSS JOIN ${documents} d
    ON d.rid = k.rid WHERE k.key >= ? AND k.key < ?`;
  return {
    name,
    number,
    position,
    boundFields: [...fields, "_creationTime"],
    space: `i${number}`,
    paths: fields.map(pathOf),
    ...readSql(rows, "k.key"),
    countSql: countSql({ entries, key: "key" }),
    writeSql: {
      insert: `INSERT INTO ${entries} (key, rid) VALUES (?, ?)`,
      move: `UPDATE ${entries} SET key = ? WHERE key = ?`,
      remove: `DELETE FROM ${entries} WHERE key = ?`,
    },
  };
}

/** Returns a document's keys in the order of the indexes. Throws an `EngineError` if a key is too long. */
export function fieldKeys(
  indexes: readonly Pick<FieldIndex, "name" | "paths">[],
  doc: StoredFields,
): string[] {
  const tail = valueKey(doc._creationTime) + doc._id;
  const keys: string[] = [];
  for (const index of indexes) {
    let key = "";
    for (const path of index.paths) key += valueKey(valueAt(doc, path));
    key += tail;
    if (key.length > documentLimits.indexKeyCharsMax) throw keyTooLong(index, key);
    keys.push(key);
  }
  return keys;
}

function keyTooLong({ name, paths }: Pick<FieldIndex, "name" | "paths">, key: string): EngineError {
  const fields = paths.map((path) => path.join(".")).join(", ");
  return new EngineError(
    "not_storable",
    `Cannot store this document: its values of ${fields} make an entry of ${key.length} characters in index "${name}" ` +
      `and the limit is ${documentLimits.indexKeyCharsMax}; index a shorter field`,
  );
}
