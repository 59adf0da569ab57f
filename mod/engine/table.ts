/** Tables with their numbers, key spaces, SQL and indexes. */
import { CREATION_ORDER_SQL } from "./documents/system_fields.ts";
import type { IndexSet } from "./indexes/index_set.ts";
import type { KeySpace, TableDefinition } from "./types.ts";
import { readSql, type ScanIndex } from "./indexes/field_index.ts";
import { countSql } from "./indexes/range_count.ts";

/** Indexes of every table. `by_id` has no SQLite table of its own. */
export const BY_ID = "by_id";
export const BY_CREATION_TIME = "by_creation_time";

export interface Table {
  readonly name: string;
  readonly number: number;
  readonly space: KeySpace;
  readonly definition: TableDefinition;
  readonly indexes: IndexSet;
  /** Indexes to scan, including `by_id` and `by_creation_time`. */
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
    /** With JSON lists: positions of ids with their row ids, and row ids with their documents. */
    readonly ridsOf: string;
    readonly docsOf: string;
    /** Sorts a JSON list of row ids by creation time and id. */
    readonly inCreationOrder: string;
  };
}

export function documentsTable(number: number): string {
  return `d${number}`;
}

export function createDocumentsSql(number: number): string {
  return `CREATE TABLE ${documentsTable(number)}
    (rid INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, doc TEXT NOT NULL)`;
}

export function table(
  name: string,
  options: { readonly number: number; readonly definition: TableDefinition; readonly indexes: IndexSet },
): Table {
  const { number, definition, indexes } = options;
  const documents = documentsTable(number);
  const space = `t${number}`;
  const byId: ScanIndex = {
    name: BY_ID,
    position: -1,
    boundFields: ["_id"],
    space,
    ...readSql(`SELECT id AS key, rid, doc FROM ${documents} WHERE id >= ? AND id < ?`, "id"),
    countSql: countSql({ entries: documents, key: "id" }),
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
