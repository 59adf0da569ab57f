/** Shows the progress of a point-in-time restore. */
import type { PointProgress } from "../../ops/replication/mod.ts";
import type { ConsoleProgress } from "../console_progress.ts";

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
      return console.showStep(`Fetching the snapshot, ${progress.bytes} bytes`);
    case "unpack":
      return console.showStep("Unpacking the snapshot");
    case "replay":
      return console.show({
        what: "Replaying journal rows",
        done: progress.rows,
        of: progress.ofRows,
        unit: "rows",
      });
    case "check":
      return console.showStep("Checking the database");
    default:
      return progress satisfies never;
  }
}
