/**
 * The version of the app's code that a cluster runs. It is part of the catalog and changes in one commit with the
 * tables and indexes that it needs.
 */
import type { Connection } from "../connection.ts";

export const CREATE_SERVED_SQL =
  `CREATE TABLE syncline_served (one INTEGER PRIMARY KEY CHECK (one = 1), version TEXT NOT NULL)`;

type Statements = Pick<Connection, "statement">;

export function namesVersion(connection: Statements): boolean {
  return connection.statement("SELECT 1 FROM sqlite_schema WHERE name = 'syncline_served'").get() !==
    undefined;
}

/** Returns the version's hash; `null` if each server serves what it was started with. */
export function servedVersion(connection: Statements): string | null {
  if (!namesVersion(connection)) return null;
  const version = connection.statement("SELECT version FROM syncline_served").get()?.[0];
  return typeof version === "string" ? version : null;
}

/** Sets or clears the version, inside the open transaction. */
export function setServedVersion(connection: Connection, version: string | null): void {
  if (version === servedVersion(connection)) return;
  if (namesVersion(connection)) connection.execute("DROP TABLE syncline_served");
  if (version === null) return;
  connection.execute(CREATE_SERVED_SQL);
  connection.statement("INSERT INTO syncline_served (one, version) VALUES (1, ?)").run(version);
}
