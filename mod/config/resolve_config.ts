/** From checked options to what a server is started with: folders looked up, files read, defaults chosen. */
import { join, relative, resolve } from "node:path";
import { readDeployed } from "../functions/versions/mod.ts";
import { machineMemoryBytes } from "../kit/processes/machine_memory.ts";
import {
  type AccountsConfig,
  BACKUPS_DIR,
  type BackupsConfig,
  type ClusterConfig,
  type ExecutionLogConfig,
  type FollowConfig,
  type MetricsConfig,
  type ReplicationConfig,
  type ServeConfig,
  type StorageConfig,
} from "./config.ts";
import { readEnvFile } from "./env_file.ts";
import { EXAMPLE_DIR, resolveFunctions } from "./functions_folder.ts";
import { memoryPlan } from "./memory.ts";
import type { GivenTexts, ServeOptions } from "./options.ts";
import { placeConfig, s3Config } from "./places.ts";
import { reasonOf, StartError } from "./start_error.ts";

/** Throws a `StartError` for a folder or file that was named and is not there. */
export async function resolveConfig(
  options: ServeOptions,
  given: GivenTexts = new Map(),
): Promise<ServeConfig> {
  const pinned = options.functions !== null || options.dev;
  const dataDir = resolve(options.data);
  const deployed = pinned ? null : await deployedVersion(dataDir);
  const { functionsDir, example } = deployed === null
    ? await resolveFunctions(options.functions)
    : { functionsDir: resolve("functions"), example: false };
  const memoryBytes = options.memory ?? machineMemoryBytes();
  const envFile = options.envFile === null ? null : await readEnvFile(options.envFile);
  const staticDir = options.static ?? (example ? resolve(EXAMPLE_DIR, "public") : null);
  return {
    host: options.host,
    port: options.port,
    workers: workersOf(options),
    dataDir,
    functionsDir,
    pinned,
    deployed,
    staticDir: staticDir === null ? null : resolve(staticDir),
    example,
    dev: options.dev,
    takeover: options.takeover,
    devFrontendUrl: devFrontendUrl(options),
    typeCheck: !options.skipTypeCheck,
    actionNet: options.actionNet,
    timeouts: { queryMs: options.queryTimeout, mutationMs: options.mutationTimeout },
    env: envFile?.values ?? {},
    hints: [...envFile?.hints ?? [], ...workerHints(options)],
    publicUrl: options.publicUrl,
    allowedOrigins: options.allowOrigin,
    trustedProxies: options.trustedProxy,
    given: { values: options, texts: given },
    accounts: accountsConfig(options),
    storage: storageConfig(options),
    backups: backupsConfig(options),
    replication: replicationConfig(options),
    follow: followConfig(options),
    cluster: clusterConfig(options),
    clusterRole: null,
    memoryBytes,
    memory: memoryPlan({ bytes: memoryBytes, cores: navigator.hardwareConcurrency }),
    restartExitCode: options.restartExitCode,
    metrics: metricsConfig(options),
    executionLog: executionLogConfig(options),
  };
}

/** What cannot go together with several processes is refused. */
function workersOf({ workers, takeover, followed, cluster, devFrontend }: ServeOptions): number {
  if (workers === 1) return workers;
  const alone = takeover
    ? "--takeover"
    : followed !== null
    ? "--follow"
    : cluster !== null
    ? "--cluster"
    : devFrontend !== null
    ? "--dev-frontend"
    : null;
  if (alone !== null) throw new StartError(`One process is needed with ${alone}: leave out --workers`);
  if (Deno.build.os !== "linux") {
    throw new StartError("Several processes share a port on Linux only: leave out --workers");
  }
  return workers;
}

/** It is no fault: the machine may get more of them later. */
function workerHints({ workers }: ServeOptions): string[] {
  const { hardwareConcurrency: processors } = navigator;
  if (workers <= processors) return [];
  return [
    `--workers ${workers} are more processes than this machine has processors (${processors}): each costs memory, and ` +
    "nothing gets quicker",
  ];
}

function devFrontendUrl({ dev, devFrontend, static: staticDir }: ServeOptions): string | null {
  if (devFrontend === null) return null;
  if (!dev) {
    throw new StartError("A frontend is asked for while it is edited: give --dev with --dev-frontend");
  }
  if (staticDir !== null) throw new StartError("There is one frontend: give --static or --dev-frontend");
  return devFrontend;
}

/** A token alone switches nothing on, and an operator who gave one believes that something is guarded by it. */
function metricsConfig({ metrics, metricsToken }: ServeOptions): MetricsConfig | null {
  if (metrics) return { token: metricsToken };
  if (metricsToken === null) return null;
  throw new StartError("There are no metrics to guard: give --metrics with --metrics-token, or neither");
}

export function accountsConfig(options: ServeOptions): AccountsConfig {
  const { smtpUrl, mailFrom } = options;
  if (smtpUrl !== null && mailFrom === null) {
    throw new StartError("A mail server needs a sender: give --mail-from with --smtp-url");
  }
  if (smtpUrl === null && options.requireVerification && !options.dev) {
    throw new StartError(
      "Nobody could confirm an address without mail: give --smtp-url with --require-verification",
    );
  }
  return {
    policy: {
      signups: !options.disableSignups,
      magicLink: !options.disableMagicLink,
      requireVerification: options.requireVerification,
    },
    accessTokenMs: options.accessTokenTtl,
    redirectUrls: options.authRedirectUrl,
    smtp: smtpUrl === null || mailFrom === null ? null : { url: smtpUrl, from: mailFrom },
    templatesDir: options.mailTemplates === null ? null : resolve(options.mailTemplates),
    mailTexts: mailTextsOf(options),
    authConfig: options.authConfig?.kind === "file"
      ? { kind: "file", path: resolve(options.authConfig.path) }
      : options.authConfig,
    appName: options.appName,
    rateLimits: options.rateLimits,
  };
}

function mailTextsOf(
  { mailVerify, mailReset, mailMagic, mailChange }: ServeOptions,
): AccountsConfig["mailTexts"] {
  return {
    ...(mailVerify !== null && { verify: mailVerify }),
    ...(mailReset !== null && { reset: mailReset }),
    ...(mailMagic !== null && { magic: mailMagic }),
    ...(mailChange !== null && { change: mailChange }),
  };
}

export function executionLogConfig({ logKeep, logMaxSize }: ServeOptions): ExecutionLogConfig | null {
  return logKeep === null ? null : { keepMs: logKeep, bytesMax: logMaxSize };
}

function storageConfig(options: ServeOptions): StorageConfig {
  return {
    s3: options.storage === null ? null : s3Config(options, options.storage, "Files"),
    uploadBytesMax: options.uploadMaxBytes,
    privateReads: options.storagePrivate,
    // A restore to a point of the past finds its files.
    keepDeletedMs: Math.max(
      options.storageKeepDeleted,
      options.replicateTo === null ? 0 : options.replicateKeep,
    ),
    thumbnailSizes: options.thumbSizes,
  };
}

export function backupsConfig(options: ServeOptions): BackupsConfig | null {
  const { data, backupEvery, backupKeep, backupTo } = options;
  if (backupEvery === null) {
    if (backupTo === null) return null;
    throw new StartError("Nothing says how often backups are made: give --backup-every with --backup-to");
  }
  const schedule = { everyMs: backupEvery, keep: backupKeep };
  if (backupTo?.kind === "bucket") {
    return { ...schedule, to: { kind: "bucket", place: s3Config(options, backupTo, "Backups") } };
  }
  const path = resolve(backupTo?.path ?? join(data, BACKUPS_DIR));
  const [first = ""] = relative(resolve(data), path).split("/");
  if (first !== ".." && first !== BACKUPS_DIR) {
    throw new StartError(
      `Backups cannot be put into "${path}": that is among the server's own files. Choose a folder outside of the data ` +
        "folder, best on another disk",
    );
  }
  return { ...schedule, to: { kind: "folder", path } };
}

function replicationConfig(options: ServeOptions): ReplicationConfig | null {
  const { data, replicateTo, replicateEvery, snapshotEvery, replicateKeep, replicateMaxPending } = options;
  if (replicateTo === null) return null;
  const to = placeConfig(options, replicateTo);
  if (to.kind === "folder" && !relative(resolve(data), to.path).startsWith("..")) {
    throw new StartError(
      `The replica cannot be put into "${to.path}": it would be lost with the data folder. Choose a folder on another disk`,
    );
  }
  return {
    to,
    everyMs: replicateEvery,
    snapshotEveryMs: snapshotEvery,
    keepMs: replicateKeep,
    maxPendingBytes: replicateMaxPending,
    heartbeatUrl: options.heartbeatUrl,
  };
}

function followConfig(options: ServeOptions): FollowConfig | null {
  const { followed, promote, replicateTo, replicateEvery, backupEvery } = options;
  if (followed === null) {
    if (!promote) return null;
    throw new StartError("Nothing says what the server has followed: give --follow with --promote");
  }
  if (!promote && replicateTo !== null) {
    throw new StartError(
      "A server that follows has no commits to ship: give --follow or --replicate-to, or --promote with both",
    );
  }
  if (!promote && backupEvery !== null) {
    throw new StartError(
      "A server that follows makes no backups by itself: leave --backup-every to the one it follows",
    );
  }
  return { from: placeConfig(options, followed), everyMs: replicateEvery, promote };
}

function clusterConfig(options: ServeOptions): ClusterConfig | null {
  const { cluster, clusterSecret, clusterSnapshots, clusterAddress, clusterListen, storage } = options;
  if (cluster === null) {
    const said = [clusterSecret, clusterSnapshots, clusterAddress, clusterListen];
    if (said.every((value) => value === null)) return null;
    throw new StartError("Nothing says where the cluster is: give --cluster with what else is said of it");
  }
  if (clusterSecret === null) {
    throw new StartError("Servers of a cluster share a secret: set SYNCLINE_CLUSTER_SECRET");
  }
  if (clusterSnapshots === null) {
    throw new StartError(
      "Servers of a cluster begin with snapshots: say with --cluster-snapshots where these are",
    );
  }
  if (storage === null) {
    throw new StartError(
      "Files in a data folder would be on one server of the cluster only: give --storage s3://bucket with --cluster",
    );
  }
  for (
    const [given, flag] of [[options.followed, "--follow"], [options.replicateTo, "--replicate-to"]] as const
  ) {
    if (given !== null) {
      throw new StartError(`The cluster keeps the log of commits: give --cluster or ${flag}, not both`);
    }
  }
  if (options.takeover) {
    throw new StartError("Another server of the cluster takes over: --takeover is for one that is alone");
  }
  if (options.dev) {
    throw new StartError("While an app is made one server is enough: give --dev or --cluster, not both");
  }
  const snapshots = placeConfig(options, clusterSnapshots);
  return { place: cluster, secret: clusterSecret, snapshots, address: clusterAddress, listen: clusterListen };
}

/** What was deployed to a data folder. Throws a `StartError` when that cannot be told. */
async function deployedVersion(dataDir: string): Promise<string | null> {
  try {
    return (await readDeployed(dataDir))?.current ?? null;
  } catch (error) {
    throw new StartError(reasonOf(error), { cause: error });
  }
}
