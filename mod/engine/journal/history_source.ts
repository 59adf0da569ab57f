/** Marks a database whose commits come from elsewhere. The mark is in the database, so copies have it too. */
import type { Connection } from "../connection.ts";

export const CREATE_FOLLOWED_SQL =
  `CREATE TABLE syncline_followed (one INTEGER PRIMARY KEY CHECK (one = 1), place TEXT NOT NULL)`;

type Statements = Pick<Connection, "statement">;

/** Returns where the commits come from, for messages; `null` if the database is not a follower. */
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

/** Returns the mark of a cluster's database. */
export function clusterSource(id: string): string {
  return `${CLUSTER_PREFIX}${id}`;
}

export function isClusterSource(place: string): boolean {
  return place.startsWith(CLUSTER_PREFIX);
}

/** Returns the id of the cluster in a mark, or `null`. */
export function clusterOfSource(place: string): string | null {
  return isClusterSource(place) ? place.slice(CLUSTER_PREFIX.length) : null;
}
