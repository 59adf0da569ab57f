/** The action that the cron job `svc-backup` runs in the main process. */
import { failed } from "../../../functions/outcome.ts";
import type { MainAction } from "../../../functions/main_actions.ts";
import type { ScheduledBackups } from "./scheduled_backups.ts";

export const BACKUP_PATH = "_system/backups:run";

/**
 * The action by path. If the server stops during a backup, the job is retried at the next start. A failure is recorded in the
 * job with its reason; the log has it already.
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
          return failed("user", `Scheduled backup failed: ${end.reason}`);
        case "stopped":
          return failed("internal", "The server is stopping, or another server makes backups", {
            retryable: true,
          });
        default:
          return end satisfies never;
      }
    },
  }]]);
}
