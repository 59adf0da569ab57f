/** Deploying as this server is configured. */
import { join } from "node:path";
import { SystemCalls } from "../../functions/system_calls.ts";
import { removeStaged } from "../../functions/versions/mod.ts";
import {
  DeployKeys,
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
  /** For the endpoints, which stand with the others behind their door. */
  readonly routesOptions: NonNullable<AdminRoutesOptions["deploy"]>;
}

export function startDeploy(
  { config, keys, host, port, log, takesOver }: FeatureContext,
  { serveFrontend, cluster }: {
    /** The cluster that this server is one of; `null`: it is alone. */
    readonly cluster: PostgresCluster | null;
    /** Serves the front end that came with a version, from this folder; `null`: it has none. */
    readonly serveFrontend: (folder: string | null) => Promise<void>;
  },
): DeployFeature {
  const { dataDir, actionEnv, pinned } = config;
  const calls = new SystemCalls(port);
  const deployKeys = new DeployKeys({ calls, key: keys.tokenHashes, now: Date.now, log });
  const variables = new Variables({
    calls,
    key: keys.settings,
    given: actionEnv,
    use: (values) => host.useEnv(values),
    log,
  });
  const steps = new MigrationSteps({ calls, now: () => performance.now() });
  const runner = new MigrationRunner({ calls, steps, log });
  // Functions serve without their front end rather than not at all.
  const serveOrLog = async (folder: string | null) => {
    try {
      await serveFrontend(folder);
    } catch (error) {
      log("error", "The front end that came with the functions cannot be served", { code: "deploy", error });
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
    leads: true,
    routesOptions: { deployments, variables, keys: { verify: (token) => deployKeys.verify(token) } },
    actions: new Map([
      ...deployKeys.actions,
      ...variables.actions,
      ...migrationActions({ calls, steps, runner }),
    ]),
    applyCommits: (entries) => variables.applyCommits(entries),
    reload() {
      // Who deploys sees to it elsewhere.
      if (isFollower(config) && host.version?.deployed) void serveOrLog(host.version.staticDir);
    },
    async start() {
      // A server that takes over has another one beside it, which may be deploying.
      if (!takesOver) await removeStaged(dataDir);
      const staticDir = host.version?.staticDir ?? null;
      if (staticDir !== null || host.version?.deployed) await serveOrLog(staticDir);
      await variables.load();
      // On the server that is followed.
      if (isFollower(config)) return;
      await clusterCode?.lead(host);
      await runner.start();
    },
    stop: () => runner[Symbol.asyncDispose](),
  };
}
