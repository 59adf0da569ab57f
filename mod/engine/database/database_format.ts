/** The format of a database file: its header, its tables, and upgrades from older formats. */
import { CREATE_CATALOG_SQL, readCatalog, uncheckedTable } from "../catalog.ts";
import { APPLICATION_ID, type Connection, FORMAT_VERSION } from "../connection.ts";
import { createIndexSql, dropIndexSql } from "../indexes/index_set.ts";
import { CREATE_RECORDS_SQL } from "../replay_records.ts";
import { validateAndIndexTable } from "../schema_change.ts";

const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 100;
const VERSION_AT = 60;
const APPLICATION_AT = 68;

/** Returns why the file is not a usable database, to follow "it"; `null` if its header is valid. */
export async function headerFault(path: string): Promise<string | null> {
  using file = await Deno.open(path);
  const bytes = new Uint8Array(HEADER_BYTES);
  let length = 0;
  while (length < HEADER_BYTES) {
    const read = await file.read(bytes.subarray(length));
    if (read === null) break;
    length += read;
  }
  const view = new DataView(bytes.buffer);
  if (length < HEADER_BYTES || new TextDecoder().decode(bytes.subarray(0, MAGIC.length)) !== MAGIC) {
    return "is no database";
  }
  if (view.getUint32(APPLICATION_AT) !== APPLICATION_ID) return "is a database of another program";
  return view.getUint32(VERSION_AT) > FORMAT_VERSION ? "is of a newer version of the server" : null;
}

const CREATE_STATE_SQL = `
  CREATE TABLE syncline_state (one INTEGER PRIMARY KEY CHECK (one = 1),
    ts INTEGER NOT NULL, lastCreationTime REAL NOT NULL, lastGroup TEXT);
  INSERT INTO syncline_state (one, ts, lastCreationTime) VALUES (1, 0, 0);`;

/** The SQLite tables of every database. */
export const CREATE_DATABASE_SQL = `${CREATE_CATALOG_SQL} ${CREATE_RECORDS_SQL} ${CREATE_STATE_SQL}`;

/** Upgrades an older file in its own transaction; older versions must not write afterwards. Rebuilds search indexes. */
export function upgradeFormat(connection: Connection): void {
  if (connection.format === FORMAT_VERSION) return;
  connection.execute("BEGIN IMMEDIATE");
  try {
    for (const table of readCatalog(connection).values()) {
      const searches = table.indexes.filter(({ kind }) => kind === "search");
      for (const index of searches) {
        connection.execute(dropIndexSql(index));
        connection.execute(createIndexSql(index));
      }
      if (searches.length > 0) {
        validateAndIndexTable(connection, {
          table,
          definition: uncheckedTable,
          created: searches,
          check: false,
        });
      }
    }
    connection.execute(`PRAGMA user_version = ${FORMAT_VERSION}; COMMIT`);
  } catch (error) {
    if (connection.inTransaction) connection.execute("ROLLBACK");
    throw error;
  }
}
