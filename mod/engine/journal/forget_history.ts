/** Databases whose history goes on elsewhere, or has to become their own. */
import { Connection } from "../connection.ts";
import { clearFollowed, followedPlace, markFollowed } from "./followed.ts";
import { endGeneration, type GenerationReason, hasJournal, type JournalHead, readHead } from "./journal.ts";

/**
 * Ends the history of a database that nobody has open: what comes after is one of its own, beside the one that the database
 * comes from. It is one file again afterwards.
 */
export function forgetHistory(path: string, reason: GenerationReason = "restored"): void {
  using connection = Connection.openWriter(path, { pagesMax: undefined });
  connection.execute("BEGIN IMMEDIATE");
  clearFollowed(connection);
  if (hasJournal(connection)) endGeneration(connection, reason);
  connection.execute("COMMIT");
}

/** Notes in a database that nobody has open that its commits come from elsewhere: nobody else may write to it. */
export function beginFollowing(path: string, place: string): void {
  using connection = Connection.openWriter(path, { pagesMax: undefined });
  markFollowed(connection, place);
}

/** Where the history of a database stands, and where its commits come from; `null`: they are its own. */
export interface FollowedState {
  readonly place: string | null;
  readonly history: JournalHead | null;
}

/** Looks at a database that nobody writes to. Throws an `UnusableDatabaseError` as readers do. */
export function followedState(path: string): FollowedState {
  using connection = Connection.openReader(path);
  return {
    place: followedPlace(connection),
    history: hasJournal(connection) ? readHead(connection) : null,
  };
}
