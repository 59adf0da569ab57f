/** The mark of a database whose commits are made elsewhere. It lies in the database, so that it goes where that goes. */
import type { Connection } from "../connection.ts";

/** SQL that makes the table of the mark. */
export const CREATE_FOLLOWED_SQL =
  `CREATE TABLE syncline_followed (one INTEGER PRIMARY KEY CHECK (one = 1), place TEXT NOT NULL)`;

type Statements = Pick<Connection, "statement">;

/** For people: where the commits come from; `null` for a database of its own. */
export function historySource(connection: Statements): string | null {
  if (!isMarked(connection)) return null;
  const place = connection.statement("SELECT place FROM syncline_followed").get()?.[0];
  return typeof place === "string" ? place : null;
}

export function markFollowed(connection: Connection, place: string): void {
  if (!isMarked(connection)) connection.execute(CREATE_FOLLOWED_SQL);
  connection.statement("INSERT OR REPLACE INTO syncline_followed (one, place) VALUES (1, ?)").run(place);
}

export function clearFollowed(connection: Connection): void {
  if (isMarked(connection)) connection.execute("DROP TABLE syncline_followed");
}

export function isMarked(connection: Statements): boolean {
  return connection.statement("SELECT 1 FROM sqlite_schema WHERE name = 'syncline_followed'").get() !==
    undefined;
}

const CLUSTER_PREFIX = "cluster ";

/** What the mark of a database of a cluster says. */
export function clusterSource(id: string): string {
  return `${CLUSTER_PREFIX}${id}`;
}

export function isClusterSource(place: string): boolean {
  return place.startsWith(CLUSTER_PREFIX);
}

/** The cluster whose database it is; `null`: it is of none. */
export function clusterOfSource(place: string): string | null {
  return isClusterSource(place) ? place.slice(CLUSTER_PREFIX.length) : null;
}
