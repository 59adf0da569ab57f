/** Upgrades database files of older versions of the server. */
import { readCatalog, uncheckedTable } from "../catalog.ts";
import { type Connection, FORMAT_VERSION } from "../connection.ts";
import { createIndexSql, dropIndexSql } from "../indexes/index_set.ts";
import { validateAndIndexTable } from "../schema_change.ts";

/**
 * Upgrades a file in a transaction of its own if its format is older. Format 2 rebuilds the search indexes (see
 * `createSearchIndexSql`). No process of the older version may write to the file afterwards.
 */
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
