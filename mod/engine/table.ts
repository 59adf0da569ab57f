/** Tables as the engine works with them: numbers, key spaces, SQL and indexes of every kind. */
import { CREATION_ORDER_SQL } from "./documents/system_fields.ts";
import type { IndexSet } from "./indexes/index_set.ts";
import type { KeySpace, TableDefinition } from "./types.ts";
import type { ScanIndex } from "./indexes/field_index.ts";

/** Every table has these two indexes; the first has no SQLite table of its own. */
export const BY_ID = "by_id";
export const BY_CREATION_TIME = "by_creation_time";

/** A table of the schema in use. */
export interface Table {
  readonly name: string;
  readonly number: number;
  /** Key space of its ids. */
  readonly space: KeySpace;
  readonly definition: TableDefinition;
  readonly indexes: IndexSet;
  /** Indexes to scan, `by_id` and `by_creation_time` included. */
  readonly scans: ReadonlyMap<string, ScanIndex>;
  readonly sql: {
    readonly get: string;
    readonly getRow: string;
    readonly getId: string;
    readonly insert: string;
    readonly restore: string;
    readonly update: string;
    readonly updateAt: string;
    readonly updateById: string;
    readonly remove: string;
    /** Of documents by a JSON list: places of ids in it, with their row ids; and row ids, with their texts. */
    readonly ridsOf: string;
    readonly docsOf: string;
    /** Row ids of a JSON list, by creation time and id. */
    readonly inCreationOrder: string;
  };
}

/** Name of the SQLite table of a table number. */
export function documentsTable(number: number): string {
  return `d${number}`;
}

/** SQL that makes the SQLite table of a table. */
export function createDocumentsSql(number: number): string {
  return `CREATE TABLE ${documentsTable(number)}
    (rid INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, doc TEXT NOT NULL)`;
}

/** A table with the numbers the catalog gave it and its indexes. */
export function table(
  name: string,
  options: { readonly number: number; readonly definition: TableDefinition; readonly indexes: IndexSet },
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
    scans: new Map([...indexes.fields, byId].map((index) => [index.name, index])),
    sql: {
      get: `SELECT rid, doc FROM ${documents} WHERE id = ?`,
      getRow: `SELECT id, doc FROM ${documents} WHERE rid = ?`,
      getId: `SELECT id FROM ${documents} WHERE rid = ?`,
      insert: `INSERT INTO ${documents} (id, doc) VALUES (?, ?)`,
      restore: `INSERT INTO ${documents} (id, doc, rid) VALUES (?, ?, ?)`,
      update: `UPDATE ${documents} SET doc = ? WHERE rid = ?`,
      updateAt: `UPDATE ${documents} SET doc = ? WHERE rid = ? AND id = ?`,
      updateById: `UPDATE ${documents} SET doc = ? WHERE id = ?`,
      remove: `DELETE FROM ${documents} WHERE rid = ?`,
      ridsOf: `SELECT j.key, d.rid FROM json_each(?) j CROSS JOIN ${documents} d ON d.id = j.value`,
      docsOf: `SELECT d.rid, d.doc FROM json_each(?) j CROSS JOIN ${documents} d ON d.rid = j.value`,
      inCreationOrder: `SELECT d.rid FROM json_each(?) j CROSS JOIN ${documents} d ON d.rid = j.value
        ORDER BY ${CREATION_ORDER_SQL}`,
    },
  };
}
