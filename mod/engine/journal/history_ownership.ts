/** Databases whose history goes on elsewhere, or has to become their own. */
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

/**
 * Ends the history of a database that nobody has open: what comes after is one of its own, beside the one that the database
 * comes from. It is one file again afterwards.
 */
export function forgetHistory(path: string, reason: GenerationReason = "restored"): void {
  using connection = Connection.openWriter(path, { pagesMax: undefined });
  connection.execute("BEGIN IMMEDIATE");
  clearFollowed(connection);
  setServedVersion(connection, null);
  if (hasJournal(connection)) endGeneration(connection, reason);
  connection.execute("COMMIT");
}

/** Notes in a database that nobody has open that its commits come from elsewhere: nobody else may write to it. */
export function markAsFollower(path: string, place: string): void {
  using connection = Connection.openWriter(path, { pagesMax: undefined });
  markFollowed(connection, place);
}

/**
 * Begins the history of a cluster in a database that nobody has open, and that is its own: from now on it is kept in the
 * cluster's log, and only written to as the log says. Gives back where it begins.
 */
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

/** Where the history of a database stands, and where its commits come from; `null`: they are its own. */
export interface FollowerState {
  readonly place: string | null;
  readonly history: JournalHead | null;
  /** The version of the code that its cluster commits with; `null`: none was named. */
  readonly version: string | null;
}

/** Looks at a database that nobody writes to. Throws an `UnusableDatabaseError` as readers do. */
export function readFollowerState(path: string): FollowerState {
  using connection = Connection.openReader(path);
  return {
    place: historySource(connection),
    history: hasJournal(connection) ? readHead(connection) : null,
    version: servedVersion(connection),
  };
}
