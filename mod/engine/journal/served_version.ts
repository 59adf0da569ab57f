/**
 * The version of the app's code with which a cluster commits, as its databases hold it. It is part of the catalog: it changes
 * with the tables and indexes that it needs, in one row and in one commit.
 */
import type { Connection } from "../connection.ts";

/** SQL that makes the table; databases for which no version was ever named do not have it. */
export const CREATE_SERVED_SQL =
  `CREATE TABLE syncline_served (one INTEGER PRIMARY KEY CHECK (one = 1), version TEXT NOT NULL)`;

type Statements = Pick<Connection, "statement">;

export function namesVersion(connection: Statements): boolean {
  return connection.statement("SELECT 1 FROM sqlite_schema WHERE name = 'syncline_served'").get() !==
    undefined;
}

/** Its hash; `null`: each server serves what it was started with. */
export function servedVersion(connection: Statements): string | null {
  if (!namesVersion(connection)) return null;
  const version = connection.statement("SELECT version FROM syncline_served").get()?.[0];
  return typeof version === "string" ? version : null;
}

/** Names another one, or none, inside the open transaction. */
export function setServedVersion(connection: Connection, version: string | null): void {
  if (version === servedVersion(connection)) return;
  if (namesVersion(connection)) connection.execute("DROP TABLE syncline_served");
  if (version === null) return;
  connection.execute(CREATE_SERVED_SQL);
  connection.statement("INSERT INTO syncline_served (one, version) VALUES (1, ?)").run(version);
}
