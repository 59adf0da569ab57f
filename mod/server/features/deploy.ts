/** Deploys, variables and data migrations. */
import { join } from "node:path";
import { SystemCalls } from "../../functions/system_calls.ts";
import { removeStaged } from "../../functions/versions/mod.ts";
import {
  Deployments,
  migrationActions,
  MigrationRunner,
  MigrationSteps,
  Variables,
} from "../../ops/deploy/mod.ts";
import type { AdminRoutesOptions } from "../../ops/mod.ts";
import { INCOMING_DIR, isFollower } from "../../config/config.ts";
import type { PostgresCluster } from "../../cluster/postgres/mod.ts";
import type { Feature, FeatureContext } from "../feature.ts";
import { waitingJobs } from "../../scheduler/mod.ts";
import { ClusterCode } from "./cluster_code.ts";

export interface DeployFeature extends Feature {
  /** For the admin endpoints, which authenticate. */
  readonly routesOptions: Omit<NonNullable<AdminRoutesOptions["deploy"]>, "keys">;
}

export function startDeploy(
  { config, keys, host, port, log }: FeatureContext,
  { serveFrontend, cluster }: {
    /** `null` outside a cluster. */
    readonly cluster: PostgresCluster | null;
    /** Serves the frontend of a version from this folder; `null`: it has none. */
    readonly serveFrontend: (folder: string | null) => Promise<void>;
  },
): DeployFeature {
  const { dataDir, actionEnv, pinned } = config;
  const calls = new SystemCalls(port);
  const variables = new Variables({
    calls,
    key: keys.settings,
    given: actionEnv,
    use: (values) => host.swaps.useEnv(values),
    log,
  });
  const steps = new MigrationSteps({ calls, now: () => performance.now() });
  const runner = new MigrationRunner({ calls, steps, log });
  // Without its frontend, the version is still served.
  const serveOrLog = async (folder: string | null) => {
    try {
      await serveFrontend(folder);
    } catch (error) {
      log("error", "Cannot serve the frontend of the deployed version", { code: "deploy", error });
      await serveFrontend(null);
    }
  };
  const clusterCode = cluster === null ? null : new ClusterCode({ cluster, config, log });
  const deployments = new Deployments({
    dataDir,
    incomingDir: join(dataDir, INCOMING_DIR),
    host,
    pinned,
    ...(clusterCode !== null && { shared: clusterCode.shared(host) }),
    waitingJobs: () => waitingJobs(calls),
    onServed: ({ staticDir }) => serveOrLog(staticDir),
    now: Date.now,
    log,
  });
  return {
    routesOptions: { deployments, variables },
    actions: new Map([...variables.actions, ...migrationActions({ calls, steps, runner })]),
    applyCommits: (entries) => variables.applyCommits(entries),
    reload() {
      // On a leader, the deploy itself does this.
      if (isFollower(config) && host.code.version?.deployed) void serveOrLog(host.code.version.staticDir);
    },
    async start() {
      await removeStaged(dataDir);
      const staticDir = host.code.version?.staticDir ?? null;
      if (staticDir !== null || host.code.version?.deployed) await serveOrLog(staticDir);
      await variables.load();
      // The leader does the rest.
      if (isFollower(config)) return;
      await clusterCode?.leadershipAcquired(host);
      await runner.start();
    },
    stop: () => runner[Symbol.asyncDispose](),
  };
}
