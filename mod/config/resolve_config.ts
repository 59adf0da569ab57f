/** Turns parsed options into a server configuration: resolves folders, reads files, checks combinations. */
import { join, relative, resolve } from "node:path";
import { type Manifest, readDeployed, VersionStore } from "../functions/versions/mod.ts";
import { type AlertsConfig, defaultThresholds } from "../ops/alerts/mod.ts";
import { machineMemoryBytes } from "../kit/processes/program.ts";
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
  type TelemetryConfig,
} from "./config.ts";
import { readEnvFile } from "./env_file.ts";
import { EMPTY_APP_DIR, EXAMPLE_DIR, resolveFunctions } from "./functions_folder.ts";
import { memoryPlan } from "./memory.ts";
import { telemetrySignals } from "../ops/limits.ts";
import type { ExplicitValues, ServeOptions } from "./options.ts";
import { bucketLocation, locationConfig } from "./locations.ts";
import { fileErrorReason, StartError } from "./start_error.ts";

/** Resolves the configuration. Throws a `StartError` for missing files and options that cannot be combined. */
export async function resolveConfig(
  options: ServeOptions,
  given: ExplicitValues = new Map(),
): Promise<ServeConfig> {
  const pinned = options.functions !== null || options.dev;
  const dataDir = resolve(options.data);
  const current = pinned ? null : await deployedVersion(dataDir);
  const folder = current === null ? await resolveFunctions(options.functions, options) : null;
  const last = folder?.empty && options.cluster === null ? await lastServedVersion(dataDir) : null;
  const deployed = current ?? last?.hash ?? null;
  const { functionsDir, example, empty } = folder === null || last !== null
    ? { functionsDir: resolve("functions"), example: false, empty: false }
    : folder;
  const memoryBytes = options.memory ?? machineMemoryBytes();
  const envFile = options.envFile === null ? null : await readEnvFile(options.envFile);
  const ownStatic = example ? resolve(EXAMPLE_DIR, "public") : empty ? EMPTY_APP_DIR : null;
  const staticDir = options.static ?? (options.devFrontend === null ? ownStatic : null);
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
    empty,
    dev: options.dev,
    takeover: options.takeover,
    devFrontendUrl: devFrontendUrl(options),
    typeCheck: !options.skipTypeCheck,
    actionNet: options.actionNet,
    timeouts: { queryMs: options.queryTimeout, mutationMs: options.mutationTimeout },
    actionEnv: envFile?.values ?? {},
    warnings: [...envFile?.warnings ?? [], ...workerWarnings(options), ...lastServedWarnings(last)],
    publicUrl: options.publicUrl,
    publicOpenApi: options.publicOpenapi || options.dev,
    allowedHosts: options.allowHost,
    allowedOrigins: options.allowOrigin,
    trustedProxies: options.trustedProxy,
    explicitOptions: { values: options, explicit: given },
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
    alerts: alertsConfig(options),
    metrics: metricsConfig(options),
    telemetry: telemetryConfig(options),
    executionLog: executionLogConfig(options),
  };
}

/** Returns the number of worker processes. Throws a `StartError` for options that need a single process. */
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
  if (alone !== null) throw new StartError(`--workers and ${alone} cannot be combined`, { code: "workers" });
  if (Deno.build.os !== "linux") {
    throw new StartError("--workers is supported on Linux only", { code: "workers" });
  }
  return workers;
}

/** Warns about more workers than cores. */
function workerWarnings({ workers }: ServeOptions): string[] {
  const { hardwareConcurrency: processors } = navigator;
  if (workers <= processors) return [];
  return [
    `--workers ${workers} exceeds the number of cores (${processors}): each worker costs memory without making ` +
    "the server faster",
  ];
}

function devFrontendUrl({ dev, devFrontend, static: staticDir }: ServeOptions): string | null {
  if (devFrontend === null) return null;
  if (!dev) {
    throw new StartError("--dev-frontend needs --dev", { code: "option" });
  }
  if (staticDir !== null) {
    throw new StartError("--static and --dev-frontend cannot be combined", { code: "deploy" });
  }
  return devFrontend;
}

/** Refuses a token without `--metrics`: the operator would believe that it protects something. */
function metricsConfig({ metrics, metricsToken }: ServeOptions): MetricsConfig | null {
  if (metrics) return { token: metricsToken };
  if (metricsToken === null) return null;
  throw new StartError("--metrics-token needs --metrics", { code: "metrics" });
}

/** Refuses options of the export without a target. */
function telemetryConfig(
  { otlpEndpoint, otlpHeaders, otlpSample, otlpSignals }: ServeOptions,
): TelemetryConfig | null {
  if (otlpEndpoint !== null) {
    const endpoint = otlpEndpoint.replace(/\/+$/, "");
    return { endpoint, headers: otlpHeaders, sample: otlpSample, signals: otlpSignals };
  }
  const isDefault = Object.keys(otlpHeaders).length === 0 && otlpSample === 1 &&
    otlpSignals.length === telemetrySignals.length;
  if (isDefault) return null;
  throw new StartError("--otlp-headers, --otlp-sample and --otlp-signals need --otlp-endpoint", {
    code: "telemetry",
  });
}

export function accountsConfig(options: ServeOptions): AccountsConfig {
  const { smtpUrl, mailFrom } = options;
  if (smtpUrl !== null && mailFrom === null) {
    throw new StartError("--smtp-url needs a sender address: pass --mail-from", { code: "mail" });
  }
  if (smtpUrl === null && options.requireVerification && !options.dev) {
    throw new StartError(
      "--require-verification needs a mail server: pass --smtp-url",
      { code: "mail" },
    );
  }
  return {
    policy: {
      signups: !options.disableSignups,
      magicLink: !options.disableMagicLink,
      totp: !options.disableTotp,
      passkeys: !options.disablePasskeys,
      deviceMail: !options.disableDeviceMail,
      userKeys: options.userKeys,
      anonymous: options.anonymousSignIn,
      anonymousUserMs: options.anonymousUserTtl,
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
  { mailVerify, mailReset, mailMagic, mailChange, mailDevice }: ServeOptions,
): AccountsConfig["mailTexts"] {
  return {
    ...(mailVerify !== null && { verify: mailVerify }),
    ...(mailReset !== null && { reset: mailReset }),
    ...(mailMagic !== null && { magic: mailMagic }),
    ...(mailChange !== null && { change: mailChange }),
    ...(mailDevice !== null && { device: mailDevice }),
  };
}

export function alertsConfig(options: ServeOptions): AlertsConfig {
  const { alertMail: mail, alertWebhook: webhooks, alertQuietHours: quietHours, alertWhen } = options;
  if (mail.length > 0 && options.smtpUrl === null && !options.dev) {
    throw new StartError("--alert-mail needs a mail server: pass --smtp-url", { code: "mail" });
  }
  return { mail, webhooks, quietHours, thresholds: { ...defaultThresholds, ...alertWhen } };
}

export function executionLogConfig(options: ServeOptions): ExecutionLogConfig | null {
  const { logKeep, logMaxSize, logArgs } = options;
  return logKeep === null ? null : { keepMs: logKeep, bytesMax: logMaxSize, ...(logArgs && { args: true }) };
}

function storageConfig(options: ServeOptions): StorageConfig {
  return {
    s3: options.storage === null ? null : bucketLocation(options, options.storage, "Files"),
    uploadBytesMax: options.uploadMaxBytes,
    privateReads: options.storagePrivate,
    // A restore to an earlier point needs the files of that time.
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
    throw new StartError("--backup-to needs a schedule: pass --backup-every", { code: "backup" });
  }
  const schedule = { everyMs: backupEvery, keep: backupKeep };
  if (backupTo?.kind === "bucket") {
    return { ...schedule, to: { kind: "bucket", bucket: bucketLocation(options, backupTo, "Backups") } };
  }
  const path = resolve(backupTo?.path ?? join(data, BACKUPS_DIR));
  const [first = ""] = relative(resolve(data), path).split("/");
  if (first !== ".." && first !== BACKUPS_DIR) {
    throw new StartError(
      `Cannot store backups in "${path}": it is inside the data folder. Choose a folder outside of it, preferably on ` +
        "another disk",
      { code: "backup" },
    );
  }
  return { ...schedule, to: { kind: "folder", path } };
}

function replicationConfig(options: ServeOptions): ReplicationConfig | null {
  const { data, replicateTo, replicateEvery, snapshotEvery, replicateKeep, replicateMaxPending } = options;
  if (replicateTo === null) return null;
  const to = locationConfig(options, replicateTo);
  if (to.kind === "folder" && !relative(resolve(data), to.path).startsWith("..")) {
    throw new StartError(
      `Cannot store the replica in "${to.path}": it would be lost with the data folder. Choose a folder on another disk`,
      { code: "replication" },
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
    throw new StartError("--promote needs --follow", { code: "replication" });
  }
  if (!promote && replicateTo !== null) {
    throw new StartError(
      "--follow and --replicate-to cannot be combined without --promote: a follower makes no commits",
      { code: "replication" },
    );
  }
  if (!promote && backupEvery !== null) {
    throw new StartError(
      "--follow and --backup-every cannot be combined without --promote: the followed server makes the backups",
      { code: "backup" },
    );
  }
  return { from: locationConfig(options, followed), everyMs: replicateEvery, promote };
}

function clusterConfig(options: ServeOptions): ClusterConfig | null {
  const { cluster, clusterSecret, clusterSnapshots, clusterAddress, clusterListen, storage } = options;
  if (cluster === null) {
    const dependent = [clusterSecret, clusterSnapshots, clusterAddress, clusterListen];
    if (dependent.every((value) => value === null)) return null;
    throw new StartError(
      "--cluster-secret, --cluster-snapshots, --cluster-address and --cluster-listen need --cluster",
      { code: "cluster" },
    );
  }
  if (clusterSecret === null) {
    throw new StartError("--cluster needs a shared secret: set SYNCLINE_CLUSTER_SECRET", { code: "cluster" });
  }
  if (clusterSnapshots === null) {
    throw new StartError(
      "--cluster needs a location for snapshots: pass --cluster-snapshots",
      { code: "cluster" },
    );
  }
  if (storage === null) {
    throw new StartError(
      "--cluster needs file storage that all servers can reach: pass --storage s3://bucket",
      { code: "cluster" },
    );
  }
  for (
    const [given, flag] of [[options.followed, "--follow"], [options.replicateTo, "--replicate-to"]] as const
  ) {
    if (given !== null) {
      throw new StartError(`--cluster and ${flag} cannot be combined`, { code: "cluster" });
    }
  }
  if (options.takeover) {
    throw new StartError(
      "--cluster and --takeover cannot be combined: another server of the cluster takes over",
      { code: "cluster" },
    );
  }
  if (options.dev) {
    throw new StartError("--dev and --cluster cannot be combined", { code: "cluster" });
  }
  const snapshots = locationConfig(options, clusterSnapshots);
  return {
    database: cluster,
    secret: clusterSecret,
    snapshots,
    address: clusterAddress,
    listen: clusterListen,
  };
}

/** Returns the version that a data folder without deploys served last, or `null`. */
async function lastServedVersion(dataDir: string): Promise<Manifest | null> {
  try {
    return await VersionStore.lastServed(dataDir);
  } catch (error) {
    throw new StartError(
      `Cannot serve the version that "${dataDir}" served last: ${
        fileErrorReason(error)
      }. Start the server with --functions once`,
      { cause: error },
    );
  }
}

function lastServedWarnings(last: Manifest | null): string[] {
  if (last === null) return [];
  const { hash, madeFrom, functions } = last;
  return [
    `Nothing was deployed yet: serving version ${hash}, which was made from "${
      join(madeFrom, functions)
    }" and ` +
    "served last. The next deploy replaces it",
  ];
}

/** Returns the deployed version of a data folder, or `null`. Throws a `StartError` if it cannot be read. */
async function deployedVersion(dataDir: string): Promise<string | null> {
  try {
    return (await readDeployed(dataDir))?.current ?? null;
  } catch (error) {
    throw new StartError(fileErrorReason(error), { cause: error });
  }
}
