/**
 * Reads the newest committed ts of a database in a separate thread, because SQLite may wait for a lock of a stopped process.
 * Each message is the database's path and is answered with the ts, or with `null` if the database is locked.
 */
import { DatabaseSync, type StatementSync } from "node:sqlite";

let newest: StatementSync | null = null;

self.addEventListener("message", ({ data }: MessageEvent<string>) => {
  let ts: number | null = null;
  try {
    newest ??= new DatabaseSync(data, { readOnly: true }).prepare("SELECT ts FROM syncline_state");
    ts = Number(newest.get()?.ts);
  } catch (error) {
    if (!/locked|locking protocol|busy/.test(String(error))) throw error;
  }
  self.postMessage(ts);
});
