/** Tables and indexes as the engine works with them: numbers, key spaces, the SQL of each, and the keys of a document. */
import { documentLimits } from "../limits.ts";
import { EngineError } from "./errors.ts";
import { valueKey } from "./keys.ts";
import type { KeySpace, TableDefinition, Value } from "./types.ts";

/** Every table has these two indexes; the first has no SQLite table of its own. */
export const BY_ID = "by_id";
export const BY_CREATION_TIME = "by_creation_time";

/** Scans of one index in both directions; parameters: lo, hi, number of rows. Columns: key, rid, doc. */
interface ScanSql {
  readonly asc: string;
  readonly desc: string;
}

/** What a scan goes along: an index on fields, or the ids of a table. */
export interface ScanIndex {
  readonly name: string;
  readonly space: KeySpace;
  /** Place of its key among the keys of a document; -1 for `by_id`. */
  readonly position: number;
  /** Fields that bounds speak about, in order; `_creationTime` stands last in every index but `by_id`. */
  readonly boundFields: readonly string[];
  readonly scanSql: ScanSql;
}

/** An index on fields. */
export interface FieldIndex extends ScanIndex {
  readonly number: number;
  readonly paths: readonly (readonly string[])[];
  readonly writeSql: {
    readonly insert: string;
    readonly move: string;
    readonly remove: string;
  };
}

/** A table of the schema in use. */
export interface Table {
  readonly name: string;
  readonly number: number;
  /** Key space of its ids. */
  readonly space: KeySpace;
  readonly definition: TableDefinition;
  /** `by_creation_time` and those of the definition. */
  readonly indexes: readonly FieldIndex[];
  readonly indexByName: ReadonlyMap<string, ScanIndex>;
  readonly sql: {
    readonly get: string;
    readonly insert: string;
    readonly restore: string;
    readonly update: string;
    readonly remove: string;
  };
}

/** Name of the SQLite table of a table number. */
export function documentsTable(number: number): string {
  return `d${number}`;
}

/** Name of the SQLite table of an index number. */
export function entriesTable(number: number): string {
  return `i${number}`;
}

/** SQL that makes the SQLite table of a table. */
export function createDocumentsSql(number: number): string {
  return `CREATE TABLE ${documentsTable(number)}
    (rid INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, doc TEXT NOT NULL)`;
}

/** SQL that makes the SQLite table of an index. */
export function createEntriesSql(number: number): string {
  return `CREATE TABLE ${entriesTable(number)} (key TEXT PRIMARY KEY, rid INTEGER NOT NULL) WITHOUT ROWID`;
}

/** An index on fields with the number the catalog gave it. */
export function fieldIndex(
  tableNumber: number,
  index: {
    readonly name: string;
    readonly number: number;
    readonly position: number;
    readonly fields: readonly string[];
  },
): FieldIndex {
  const { name, number, position, fields } = index;
  const entries = entriesTable(number);
  // A bare parameter after LIMIT makes SQLite prepare the statement anew at each binding; an expression does not.
  const scan = `SELECT k.key, k.rid, d.doc FROM ${entries} k CROSS JOIN ${documentsTable(tableNumber)} d
    ON d.rid = k.rid WHERE k.key >= ? AND k.key < ? ORDER BY k.key`;
  return {
    name,
    number,
    position,
    boundFields: [...fields, "_creationTime"],
    space: `i${number}`,
    paths: fields.map((field) => field.split(".")),
    scanSql: { asc: `${scan} LIMIT ?+0`, desc: `${scan} DESC LIMIT ?+0` },
    writeSql: {
      insert: `INSERT INTO ${entries} (key, rid) VALUES (?, ?)`,
      move: `UPDATE ${entries} SET key = ? WHERE key = ?`,
      remove: `DELETE FROM ${entries} WHERE key = ?`,
    },
  };
}

/** A table with the numbers the catalog gave it and its indexes. */
export function table(
  name: string,
  options: {
    readonly number: number;
    readonly definition: TableDefinition;
    readonly indexes: readonly FieldIndex[];
  },
): Table {
  const { number, definition, indexes } = options;
  const documents = documentsTable(number);
  const space = `t${number}`;
  const scan = `SELECT id, rid, doc FROM ${documents} WHERE id >= ? AND id < ? ORDER BY id`;
  const byId: ScanIndex = {
    name: BY_ID,
    position: -1,
    boundFields: ["_id"],
    space,
    scanSql: { asc: `${scan} LIMIT ?+0`, desc: `${scan} DESC LIMIT ?+0` },
  };
  return {
    name,
    number,
    space,
    definition,
    indexes,
    indexByName: new Map<string, ScanIndex>([...indexes, byId].map((index) => [index.name, index])),
    sql: {
      get: `SELECT rid, doc FROM ${documents} WHERE id = ?`,
      insert: `INSERT INTO ${documents} (id, doc) VALUES (?, ?)`,
      restore: `INSERT INTO ${documents} (id, doc, rid) VALUES (?, ?, ?)`,
      update: `UPDATE ${documents} SET doc = ? WHERE rid = ?`,
      remove: `DELETE FROM ${documents} WHERE rid = ?`,
    },
  };
}

/** A document as the engine's own code reads it. */
export interface StoredFields {
  readonly _id: string;
  readonly _creationTime: number;
  readonly [field: string]: Value;
}

/** The keys of a document in the indexes of its table, in their order. */
export function documentKeys(
  { name, indexes }: Pick<Table, "name" | "indexes">,
  doc: StoredFields,
): string[] {
  const tail = valueKey(doc._creationTime) + doc._id;
  const keys: string[] = [];
  for (const index of indexes) {
    let key = "";
    for (const path of index.paths) key += valueKey(valueAt(doc, path));
    key += tail;
    if (key.length > documentLimits.indexKeyCharsMax) throw keyTooLong(name, { index, key });
    keys.push(key);
  }
  return keys;
}

function keyTooLong(table: string, { index, key }: { index: FieldIndex; key: string }): EngineError {
  return new EngineError(
    "not_storable",
    `Cannot store this document: its values of ${
      index.paths.map((path) => path.join(".")).join(", ")
    } make an entry of ${key.length} characters in ` +
      `index "${index.name}" of table "${table}" and the limit is ${documentLimits.indexKeyCharsMax}; ` +
      "index a shorter field",
  );
}

const { hasOwn } = Object;

/** The value at a path, or `undefined` where there is none. Paths reach into objects, not into arrays. */
export function valueAt(doc: StoredFields, path: readonly string[]): Value | undefined {
  let value: unknown = doc;
  for (const name of path) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !hasOwn(value, name)) {
      return undefined;
    }
    value = (value as Record<string, unknown>)[name];
  }
  // What lies inside a stored document is a stored value.
  return value as Value | undefined;
}

/** A document's fields without `_id` and `_creationTime`. */
export function fieldsOf(doc: StoredFields): Record<string, Value> {
  const { _id, _creationTime, ...fields } = doc;
  return fields;
}
