/** Opens the isolates of a server with the code it serves. */
import type { LoadedSecret } from "../auth/mod.ts";
import type { PostgresCluster } from "../cluster/postgres/mod.ts";
import { isFollower, type ServeConfig } from "../config/config.ts";
import { AppError, StartError } from "../config/start_error.ts";
import { IsolateHost, type LeaderPort, type RunObserver } from "../functions/host/mod.ts";
import { readDeployed } from "../functions/versions/mod.ts";
import type { Log } from "../kit/log.ts";
import { SCHEDULED } from "../scheduler/mod.ts";
import { withFullPaths } from "./dev/error_report.ts";
import { ClusterCode } from "./features/cluster_code.ts";
import { isolateSettingsOf } from "./features/admin_functions.ts";
import { storageSettingsOf } from "./features/storage.ts";
import { isolateEntry } from "./isolate_address.ts";
import { takeoverLimits } from "./limits.ts";
import { coresOf } from "./workers/boot.ts";

export interface IsolatesOptions {
  readonly secret: LoadedSecret;
  readonly observer: RunObserver;
  readonly log: Log;
  /** `null` outside a cluster. */
  readonly cluster: PostgresCluster | null;
  /** See `BackendOptions.databaseFree`. */
  readonly databaseFree?: () => Promise<void>;
  /** Runs mutations and actions, on a server that does not write. */
  readonly leader?: LeaderPort;
}

export interface Isolates {
  /** Calls wait until `start` has resolved. */
  readonly host: IsolateHost;
  /** Starts the isolates once the database is available. Rejects with an `AppError` if the code cannot be loaded. */
  start(): Promise<void>;
}

/** Opens the isolates with the deployed version or the functions folder. Rejects with an `AppError` if there is none. */
export async function openIsolates(
  config: ServeConfig,
  { secret, observer, log, cluster, databaseFree, leader }: IsolatesOptions,
): Promise<Isolates> {
  const { dataDir, functionsDir } = config;
  const code = cluster === null ? null : new ClusterCode({ cluster, config, log });
  const named = await code?.currentHash() ?? null;
  const version = await versionOf(config, named);
  const explained = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work();
    } catch (error) {
      if (error instanceof StartError) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      if (version !== null) {
        throw new AppError(`The deployed app cannot be served: ${reason}`, {
          code: "app_not_loaded",
          cause: error,
        });
      }
      const message = withFullPaths(reason, functionsDir);
      throw new AppError(`The app in "${functionsDir}" cannot be served: ${message}`, {
        code: "app_not_loaded",
        cause: error,
      });
    }
  };
  const host = await explained(() =>
    IsolateHost.open({
      dataDir,
      code: version === null ? { functionsDir } : { version },
      ...(code && { fetchVersion: (hash, versions) => code.install(hash, versions) }),
      env: config.actionEnv,
      actionNet: config.actionNet,
      timeouts: config.timeouts,
      memory: config.memory.isolates,
      cores: coresOf(config),
      entry: isolateEntry,
      settings: isolateSettings(config, secret),
      observer,
      ...(config.replication && { journal: { pendingBytesMax: config.replication.maxPendingBytes } }),
      commitSource: isFollower(config)
        ? { from: "rows", ...(leader && { leader }) }
        : { from: "writer", ...(cluster?.rows && { rows: cluster.rows }) },
      // The next leader may run the same jobs: ours are ended first, without ending other calls.
      ...(config.clusterRole === "leader" && { dedicatedQueue: SCHEDULED.queueKey }),
      waits: databaseFree !== undefined,
      log,
    })
  );
  return {
    host,
    start: () =>
      explained(async () => {
        if (databaseFree !== undefined) {
          await checkCode(host);
          await databaseFree();
        }
        await host.begin();
      }),
  };
}

/** Hash of the deployed version or the one served last; `null` to serve the functions folder. */
async function versionOf(
  { pinned, dataDir, clusterRole, deployed }: Pick<
    ServeConfig,
    "pinned" | "dataDir" | "clusterRole" | "deployed"
  >,
  named: string | null,
): Promise<string | null> {
  // A follower serves the version that its leader names, and until then its own.
  if (pinned || named !== null || clusterRole === "follower") return named;
  // Another version may have been deployed since the configuration was read.
  return (await readDeployed(dataDir))?.current ?? deployed;
}

/** Throws an error if the code cannot be loaded or does not match the documents. Nothing is changed. */
async function checkCode(host: IsolateHost): Promise<void> {
  if (host.code.version === null) return;
  const bounds = { documentsMax: 1, charsMax: 300, msMax: takeoverLimits.checkMs };
  const { schema: { misfits: [first] } } = await host.swaps.check(host.code.version, bounds);
  if (first === undefined) return;
  const [example] = first.first;
  throw new Error(
    `${first.documents} documents of the table "${first.table}" do not match the schema` +
      (example === undefined ? "" : `, for example ${example.id}: ${example.reason}`),
  );
}

export function isolateSettings(config: ServeConfig, { keys }: LoadedSecret): Record<string, unknown> {
  return { ...storageSettingsOf(config, keys), ...isolateSettingsOf(config, keys) };
}
