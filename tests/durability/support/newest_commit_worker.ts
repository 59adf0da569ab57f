/**
 * Reads the newest committed ts of a database in a separate thread, because SQLite may wait for a lock of a stopped process.
 * Each message is the database's path and is answered with the ts.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";

let newest: StatementSync | null = null;

self.addEventListener("message", ({ data }: MessageEvent<string>) => {
  newest ??= new DatabaseSync(data, { readOnly: true }).prepare("SELECT ts FROM syncline_state");
  self.postMessage(Number(newest.get()?.ts));
});
