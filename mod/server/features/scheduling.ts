/** Scheduled functions and crons of this server. */
import type { IsolateHost } from "../../functions/host/host.ts";
import type { Log } from "../../kit/log.ts";
import { cleaningCron, type Cron, Scheduler, type SchedulerPort } from "../../scheduler/mod.ts";

/** Starts the scheduler. Disposing of it lets what runs end, for a bounded time. */
export async function startScheduler(
  host: IsolateHost,
  { port, serviceCrons, log }: {
    readonly port: SchedulerPort;
    /** Crons of the service beside the scheduler's own. */
    readonly serviceCrons: readonly Cron[];
    readonly log: Log;
  },
): Promise<Scheduler> {
  const scheduler = new Scheduler({
    port,
    appCrons: () => host.crons,
    serviceCrons: [cleaningCron, ...serviceCrons],
    log,
  });
  host.onCommits((entries) => scheduler.applyCommits(entries));
  host.onReload(() => scheduler.reload());
  await scheduler.start();
  return scheduler;
}
