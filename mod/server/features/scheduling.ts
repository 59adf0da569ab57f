/** Scheduled functions and crons of this server. */
import { cleanupActions, cleanupCron, Scheduler } from "../../scheduler/mod.ts";
import type { PostgresCluster } from "../../cluster/postgres/mod.ts";
import { isFollower } from "../../config/config.ts";
import type { Feature, FeatureContext } from "../feature.ts";

/** Changes crons of the service while the server runs. */
export type CronPort = Pick<Scheduler, "setServiceCron" | "removeServiceCron">;

export interface SchedulingFeature extends Feature, CronPort {
  /** Another server may run what is scheduled from now on: actions that run are ended at once. */
  endActions(): Promise<void>;
}

/** When the server stops, what runs may end, for a bounded time. */
export function startScheduling(
  { config, host, port, log }: FeatureContext,
  { features, cluster }: {
    /** All features; asked for their crons when the scheduler starts. */
    readonly features: Pick<Feature, "crons">;
    readonly cluster: PostgresCluster | null;
  },
): SchedulingFeature {
  let scheduler: Scheduler | undefined;
  return {
    leads: true,
    actions: cleanupActions({ port }),
    applyCommits: (entries) => scheduler?.applyCommits(entries),
    reload: () => scheduler?.reload(),
    async start() {
      // What is scheduled runs on the server that is followed.
      if (isFollower(config)) return;
      scheduler = new Scheduler({
        port,
        appCrons: () => host.crons,
        serviceCrons: [cleanupCron, ...features.crons ?? []],
        // The next leader may run the same again at once.
        ...(cluster !== null && {
          actions: { mayBegin: () => cluster.leadsSurely, end: () => host.endApart() },
        }),
        log,
      });
      await scheduler.start();
    },
    endActions: async () => await scheduler?.endActions(),
    setServiceCron: async (cron) => await scheduler?.setServiceCron(cron),
    removeServiceCron: async (name) => await scheduler?.removeServiceCron(name),
    stop: () => scheduler?.[Symbol.asyncDispose](),
  };
}
