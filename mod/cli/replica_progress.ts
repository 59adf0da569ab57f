/** Shows how far the restore of a point in time is. */
import type { PointProgress } from "../ops/replication/mod.ts";
import type { ConsoleProgress } from "./console_progress.ts";

export function showPoint(console: ConsoleProgress, progress: PointProgress): void {
  switch (progress.step) {
    case "rows":
      return console.show({
        what: "Fetching journal rows",
        done: progress.rows,
        of: progress.ofRows,
        unit: "rows",
      });
    case "fetch":
      return console.tell(`Fetching the snapshot, ${progress.bytes} bytes`);
    case "unpack":
      return console.tell("Unpacking the snapshot");
    case "replay":
      return console.show({
        what: "Replaying journal rows",
        done: progress.rows,
        of: progress.ofRows,
        unit: "rows",
      });
    case "check":
      return console.tell("Checking the database");
    default:
      return progress satisfies never;
  }
}
