/** What the cron `svc-backup` runs: an action of main. */
import { failed } from "../../../functions/outcome.ts";
import type { MainAction } from "../../../functions/main_actions.ts";
import type { ScheduledBackups } from "./scheduled_backups.ts";

export const BACKUP_PATH = "_system/backups:run";

/**
 * The action, by path. When the server stops over it its job waits for the next start, which runs it at once. A failure is
 * in the log already, with its next try: in the row of the job it stands with the reason.
 */
export function backupActions(backups: Pick<ScheduledBackups, "run">): ReadonlyMap<string, MainAction> {
  return new Map([[BACKUP_PATH, {
    visibility: "internal",
    async run() {
      const end = await backups.run();
      switch (end.kind) {
        case "made":
          return { ok: true, value: "null", logLines: [] };
        case "failed":
          return failed("user", `The scheduled backup failed: ${end.reason}`);
        case "stopped":
          return failed("internal", "The server stops, or another one makes backups", { retryable: true });
        default:
          return end satisfies never;
      }
    },
  }]]);
}
