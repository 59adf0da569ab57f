/** The source of a database's history. The mark is in the database, so copies have it too. No process may have the database open when it changes. */
import { Connection } from "../connection.ts";
import {
  endGeneration,
  type GenerationReason,
  hasJournal,
  type JournalHead,
  newHead,
  readHead,
  writeHead,
} from "./history_head.ts";
import { servedVersion, setServedVersion } from "./catalog_state.ts";

export const CREATE_FOLLOWED_SQL =
  `CREATE TABLE syncline_followed (one INTEGER PRIMARY KEY CHECK (one = 1), place TEXT NOT NULL)`;

type Statements = Pick<Connection, "statement">;

/** Returns where the commits come from, for messages; `null` if the database is not a follower. */
export function historySource(connection: Statements): string | null {
  if (!isMarked(connection)) return null;
  const source = connection.statement("SELECT place FROM syncline_followed").get()?.[0];
  return typeof source === "string" ? source : null;
}

function markFollowed(connection: Connection, source: string): void {
  if (!isMarked(connection)) connection.execute(CREATE_FOLLOWED_SQL);
  connection.statement("INSERT OR REPLACE INTO syncline_followed (one, place) VALUES (1, ?)").run(source);
}

function clearFollowed(connection: Connection): void {
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

export function isClusterSource(source: string): boolean {
  return source.startsWith(CLUSTER_PREFIX);
}

/** Returns the id of the cluster in a mark, or `null`. */
export function clusterOfSource(source: string): string | null {
  return isClusterSource(source) ? source.slice(CLUSTER_PREFIX.length) : null;
}

/** Ends the history of a database and merges its write-ahead log. New commits start a history of their own. */
export function forgetHistory(path: string, reason: GenerationReason = "restored"): void {
  using connection = Connection.openWriter(path, { pagesMax: undefined });
  connection.execute("BEGIN IMMEDIATE");
  clearFollowed(connection);
  setServedVersion(connection, null);
  if (hasJournal(connection)) endGeneration(connection, reason);
  connection.execute("COMMIT");
}

/** Marks a database as a follower: only its source's commits may be written to it. */
export function markAsFollower(path: string, source: string): void {
  using connection = Connection.openWriter(path, { pagesMax: undefined });
  markFollowed(connection, source);
}

/** Turns a database into the first one of a cluster, whose log keeps the history from now on. Returns its start. */
export function startClusterHistory(
  path: string,
  { id, now }: { readonly id: string; readonly now: number },
): JournalHead {
  using connection = Connection.openWriter(path, { pagesMax: undefined });
  connection.execute("BEGIN IMMEDIATE");
  const known = hasJournal(connection) ? readHead(connection) : null;
  if (hasJournal(connection)) connection.execute("DELETE FROM syncline_journal");
  const ts = Number(connection.statement("SELECT ts FROM syncline_state").get()?.[0] ?? 0);
  const head = newHead({ seq: 0, ts, reason: "cluster", now, after: known?.begunAt ?? 0 });
  writeHead(connection, head);
  markFollowed(connection, clusterSource(id));
  setServedVersion(connection, null);
  connection.execute("COMMIT");
  return head;
}

/** Position and source of a database's history; `null` if it is not a follower. */
export interface FollowerState {
  readonly source: string | null;
  readonly history: JournalHead | null;
  /** The version of the cluster's code; `null` if none was set. */
  readonly version: string | null;
}

/** Reads the state of a database that no process writes to. Throws an `UnusableDatabaseError`. */
export function readFollowerState(path: string): FollowerState {
  using connection = Connection.openReader(path);
  return {
    source: historySource(connection),
    history: hasJournal(connection) ? readHead(connection) : null,
    version: servedVersion(connection),
  };
}
