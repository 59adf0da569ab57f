/**
 * Reads the newest committed ts of a database, in a thread of its own: SQLite may wait for a lock that a stopped process holds.
 * Each message is the database's path and is answered with the ts.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";

let newest: StatementSync | null = null;

self.addEventListener("message", ({ data }: MessageEvent<string>) => {
  newest ??= new DatabaseSync(data, { readOnly: true }).prepare("SELECT ts FROM syncline_state");
  self.postMessage(Number(newest.get()?.ts));
});
