/** Changes where the history of a database comes from. No process may have the database open. */
import { Connection } from "../connection.ts";
import { clearFollowed, clusterSource, historySource, markFollowed } from "./history_source.ts";
import { servedVersion, setServedVersion } from "./served_version.ts";
import {
  endGeneration,
  type GenerationReason,
  hasJournal,
  type JournalHead,
  newHead,
  readHead,
  writeHead,
} from "./journal.ts";

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
export function markAsFollower(path: string, place: string): void {
  using connection = Connection.openWriter(path, { pagesMax: undefined });
  markFollowed(connection, place);
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
  readonly place: string | null;
  readonly history: JournalHead | null;
  /** The version of the cluster's code; `null` if none was set. */
  readonly version: string | null;
}

/** Reads the state of a database that no process writes to. Throws an `UnusableDatabaseError`. */
export function readFollowerState(path: string): FollowerState {
  using connection = Connection.openReader(path);
  return {
    place: historySource(connection),
    history: hasJournal(connection) ? readHead(connection) : null,
    version: servedVersion(connection),
  };
}
