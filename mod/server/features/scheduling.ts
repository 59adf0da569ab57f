/** Scheduled functions and cron jobs. */
import { cleanupActions, cleanupCron, Scheduler } from "../../scheduler/mod.ts";
import type { PostgresCluster } from "../../cluster/postgres/mod.ts";
import { isFollower } from "../../config/config.ts";
import type { Feature, FeatureContext } from "../feature.ts";

/** Changes cron jobs of the service while the server runs. */
export type CronPort = Pick<Scheduler, "setServiceCron" | "removeServiceCron">;

export interface SchedulingFeature extends Feature, CronPort {
  /** Ends running scheduled actions at once, because another server may run them from now on. */
  endActions(): Promise<void>;
}

/** When the server stops, running jobs may finish within a time limit. */
export function startScheduling(
  { config, host, port, log }: FeatureContext,
  { features, cluster }: {
    readonly features: Pick<Feature, "crons">;
    readonly cluster: PostgresCluster | null;
  },
): SchedulingFeature {
  let scheduler: Scheduler | undefined;
  return {
    actions: cleanupActions({ port }),
    applyCommits: (entries) => scheduler?.applyCommits(entries),
    reload: () => scheduler?.reload(),
    async start() {
      // Scheduled functions run on the leader.
      if (isFollower(config)) return;
      scheduler = new Scheduler({
        port,
        appCrons: () => host.code.crons,
        serviceCrons: [cleanupCron, ...features.crons ?? []],
        // The next leader may run the same actions at once.
        ...(cluster !== null && {
          actions: { mayBegin: () => cluster.leadsSurely, end: () => host.endDedicatedRuns() },
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
