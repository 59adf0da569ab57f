/** Restored databases: what comes after is a history of its own, beside the one that the database comes from. */
import { Connection } from "../connection.ts";
import { endGeneration, hasJournal } from "./journal.ts";

/** Ends the history of a database that nobody has open. It is one file again afterwards. */
export function forgetHistory(path: string): void {
  using connection = Connection.openWriter(path, { pagesMax: undefined });
  if (!hasJournal(connection)) return;
  connection.execute("BEGIN IMMEDIATE");
  endGeneration(connection, "restored");
  connection.execute("COMMIT");
}
