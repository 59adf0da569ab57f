/** Indexes on fields: ordered keys in an SQLite table of their own. */
import { documentLimits } from "../../limits.ts";
import { EngineError } from "../errors.ts";
import { valueKey } from "./keys.ts";
import type { KeySpace } from "../types.ts";
import { type Path, pathOf, type StoredFields, valueAt } from "../documents/stored_fields.ts";

/** What a scan goes along: an index on fields, or the ids of a table. */
export interface ScanIndex {
  readonly name: string;
  readonly space: KeySpace;
  /** Place of its key among the field keys of a document; -1 for `by_id`. */
  readonly position: number;
  /** Fields that bounds speak about, in order; `_creationTime` stands last in every index but `by_id`. */
  readonly boundFields: readonly string[];
  /** Scans in both directions; parameters: lo, hi, number of rows. Columns: key, rid, doc. */
  readonly scanSql: { readonly asc: string; readonly desc: string };
}

/** An index on fields. `position` is its place among the field indexes of its table. */
export interface FieldIndex extends ScanIndex {
  readonly number: number;
  readonly paths: readonly Path[];
  readonly writeSql: {
    readonly insert: string;
    readonly move: string;
    readonly remove: string;
  };
}

/** SQL that makes the SQLite table of an index. */
export function createFieldIndexSql(number: number): string {
  return `CREATE TABLE i${number} (key TEXT PRIMARY KEY, rid INTEGER NOT NULL) WITHOUT ROWID`;
}

/** SQL that drops it. */
export function dropFieldIndexSql(number: number): string {
  return `DROP TABLE i${number}`;
}

/** An index on fields with the number the catalog gave it. `documents` is the SQLite table of its documents. */
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
  const scan = `SELECT k.key, k.rid, d.doc FROM ${entries} k CROSS JOIN ${documents} d
    ON d.rid = k.rid WHERE k.key >= ? AND k.key < ? ORDER BY k.key`;
  return {
    name,
    number,
    position,
    boundFields: [...fields, "_creationTime"],
    space: `i${number}`,
    paths: fields.map(pathOf),
    // A bare parameter after LIMIT makes SQLite prepare the statement anew at each binding; an expression does not.
    scanSql: { asc: `${scan} LIMIT ?+0`, desc: `${scan} DESC LIMIT ?+0` },
    writeSql: {
      insert: `INSERT INTO ${entries} (key, rid) VALUES (?, ?)`,
      move: `UPDATE ${entries} SET key = ? WHERE key = ?`,
      remove: `DELETE FROM ${entries} WHERE key = ?`,
    },
  };
}

/** The keys of a document in indexes of its table, in their order. Throws an `EngineError` when one is too long. */
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
