/** From checked options to what a server is started with: folders looked up, files read, defaults chosen. */
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { RateLimits } from "../auth/limits.ts";
import type { AccountPolicy, AuthConfigPlace, MailKind, SmtpOptions } from "../auth/mod.ts";
import type { PostgresPlace } from "../cluster/postgres/place.ts";
import type { BucketPlace } from "../kit/bucket.ts";
import { readDeployed } from "../functions/versions/mod.ts";
import { readEnvFile } from "./env_file.ts";
import { type MemoryPlan, memoryPlan } from "./memory.ts";
import { machineMemoryBytes } from "../kit/processes/machine_memory.ts";
import type { GivenTexts, HostAndPort, OptionValues, ServeOptions } from "./options.ts";
import { reasonOf, StartError } from "./start_error.ts";

export interface ServeConfig {
  readonly host: string;
  /** `null`: the default port, or the next free one. 0: any free one. */
  readonly port: number | null;
  /** Processes that share the port, this one included. */
  readonly workers: number;
  /** Absolute. */
  readonly dataDir: string;
  /** Absolute. */
  readonly functionsDir: string;
  /** Whether that folder is served whatever is deployed. */
  readonly pinned: boolean;
  /** Hash of the version that was deployed to the data folder and is served in place of the folder; `null` when there is none. */
  readonly deployed: string | null;
  /** Absolute; `null` without a static frontend. */
  readonly staticDir: string | null;
  /** Whether the bundled example is served because there is no app. */
  readonly example: boolean;
  readonly dev: boolean;
  /** Whether a server that has the data folder is asked to give way. */
  readonly takeover: boolean;
  /** Address of a server of the frontend, without a slash at its end; `null` without one. */
  readonly devFrontendUrl: string | null;
  /** Whether `dev` checks types. */
  readonly typeCheck: boolean;
  /** Hosts that actions may reach; `null` for any. */
  readonly actionNet: readonly string[] | null;
  /** How long queries and mutations may run. */
  readonly timeouts: { readonly queryMs: number; readonly mutationMs: number };
  /** What actions see as `ctx.env`. */
  readonly env: Readonly<Record<string, string>>;
  /** What is to be said of what it is started with, a sentence each. */
  readonly hints?: readonly string[];
  /** Address of the server for browsers, without a slash at its end; `null`: the one it listens on. */
  readonly publicUrl: string | null;
  /** Origins of pages that may use the API beside the server's own; `null`: any. */
  readonly allowedOrigins: readonly string[] | null;
  /** Addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[];
  /** What flags and variables say, for settings to be put under it; `null`: there are no settings. */
  readonly given: GivenOptions | null;
  readonly accounts: AccountsConfig;
  readonly storage: StorageConfig;
  /** `null` without scheduled backups. */
  readonly backups: BackupsConfig | null;
  /** `null` without replication. */
  readonly replication: ReplicationConfig | null;
  /** `null`: the commits are the server's own. */
  readonly follow: FollowConfig | null;
  /** `null`: the server is alone. */
  readonly cluster: ClusterConfig | null;
  /** What it is in its cluster now; `null` for a server that is alone. */
  readonly clusterRole: "leader" | "follower" | null;
  /** Memory that bounds are shares of. */
  readonly memoryBytes: number;
  /** What each part of the server may use of it. */
  readonly memory: MemoryPlan;
  /** With which the process ends when an administrator restarts the server; `null`: nobody can. */
  readonly restartExitCode: number | null;
  /** `null`: there are none. */
  readonly metrics: MetricsConfig | null;
  /** How long runs are kept and how much of them; `null`: there is no execution log. */
  readonly executionLog: ExecutionLogConfig | null;
}

/** What of the execution log is kept. */
export interface ExecutionLogConfig {
  readonly keepMs: number;
  readonly bytesMax: number;
}

/** The options of `serve` as they were given. */
export interface GivenOptions {
  readonly values: ServeOptions;
  readonly texts: GivenTexts;
}

/** Metrics that are on. */
export interface MetricsConfig {
  /** What readers have to show; `null`: nothing. */
  readonly token: string | null;
}

/** What the operator decided about stored files. */
export interface StorageConfig {
  /** `null`: in the data folder. */
  readonly s3: BucketPlace | null;
  /** Largest upload. */
  readonly uploadBytesMax: number;
  /** Whether signed URLs are the only read path. */
  readonly privateReads: boolean;
  /** How long the contents of deleted files are kept. */
  readonly keepDeletedMs: number;
  /** Sizes that thumbnails may have, as `WxH`; `null` for any. */
  readonly thumbnailSizes: readonly string[] | null;
}

/** What the operator decided about scheduled backups. */
export interface BackupsConfig {
  readonly everyMs: number;
  /** Scheduled backups that are kept. */
  readonly keep: number;
  /** A path is absolute. */
  readonly to:
    | { readonly kind: "folder"; readonly path: string }
    | { readonly kind: "bucket"; readonly place: BucketPlace };
}

/** What the operator decided about replication. */
export interface ReplicationConfig {
  /** A path is absolute. */
  readonly to: PlaceConfig;
  readonly everyMs: number;
  readonly snapshotEveryMs: number;
  /** How far back restores reach. */
  readonly keepMs: number;
  /** Journal that may wait. */
  readonly maxPendingBytes: number;
  readonly heartbeatUrl: string | null;
}

/** Where the commits of a server come from. */
export interface FollowConfig {
  /** A path is absolute. */
  readonly from: PlaceConfig;
  /** Time between two looks for more. */
  readonly everyMs: number;
  /** Whether they are taken once more only, and the server's own follow. */
  readonly promote: boolean;
}

/** What a server of a cluster has to know. */
export interface ClusterConfig {
  readonly place: PostgresPlace;
  readonly secret: string;
  /** A path is absolute. */
  readonly snapshots: PlaceConfig;
  /** Where the other servers reach this one; `null`: at the address with which it reaches the database. */
  readonly address: HostAndPort | null;
  /** Where it listens for them; `null`: at that address, as far as it is one of this machine. */
  readonly listen: HostAndPort | null;
}

/** Whether a server takes no writes, because its commits are made elsewhere. */
export function isFollower(
  { follow, clusterRole }: Pick<ServeConfig, "follow"> & {
    readonly clusterRole?: ServeConfig["clusterRole"];
  },
): boolean {
  return follow !== null && !follow.promote || clusterRole === "follower";
}

/** A folder or a place in a bucket. */
export type PlaceConfig =
  | { readonly kind: "folder"; readonly path: string }
  | { readonly kind: "bucket"; readonly place: BucketPlace };

/** What the operator decided about accounts. */
export interface AccountsConfig {
  readonly policy: AccountPolicy;
  readonly accessTokenMs: number;
  readonly redirectUrls: readonly string[];
  /** `null`: no mail server. */
  readonly smtp: SmtpOptions | null;
  /** Absolute; `null` for the built-in templates. */
  readonly templatesDir: string | null;
  /** Texts of mails that are others than built in, as `Subject: ...`, an empty line and the text. */
  readonly mailTexts: Readonly<Partial<Record<MailKind, string>>>;
  /** Providers and issuers; the path of a file is absolute. */
  readonly authConfig: AuthConfigPlace | null;
  /** `null`: the host of the public address. */
  readonly appName: string | null;
  /** Those that are others than by default. */
  readonly rateLimits: RateLimits;
}

/** How a service is reached that has buckets. */
export type S3Options = Pick<
  OptionValues,
  "s3Endpoint" | "s3Region" | "s3AccessKeyId" | "s3SecretAccessKey"
>;

/** The folder of backups, below the data folder. */
export const BACKUPS_DIR = "backups";
/** The folder of archives and tables that are being received, below the data folder; each start empties it. */
export const INCOMING_DIR = "incoming";

const EXAMPLE_DIR = fileURLToPath(new URL("../../examples/chat", import.meta.url));

/** Where an app's functions are. */
export interface FunctionsFolder {
  /** Absolute. */
  readonly functionsDir: string;
  /** Whether it is the bundled example, because there is no app. */
  readonly example: boolean;
}

/** The functions folder for what `--functions` says; `null` when it was not given. Throws a `StartError`. */
export async function resolveFunctions(named: string | null): Promise<FunctionsFolder> {
  const given = named === null ? null : resolve(named);
  if (given !== null && !await isFolder(given)) {
    throw new StartError(
      await isFile(given)
        ? `"${given}" is a file: --functions takes the folder that the functions are in`
        : `Cannot find the functions folder "${given}"`,
    );
  }
  const functionsDir = given ?? (await isFolder("functions") ? "functions" : null);
  return functionsDir === null
    ? { functionsDir: resolve(EXAMPLE_DIR, "functions"), example: true }
    : { functionsDir: resolve(functionsDir), example: false };
}

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
    hints: envFile?.hints ?? [],
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

/** A place of a replica as it is named. Throws a `StartError` for one in a bucket without its keys. */
export function placeConfig(
  options: S3Options,
  place: { readonly kind: "folder"; readonly path: string } | {
    readonly kind: "bucket";
    readonly bucket: string;
    readonly prefix: string;
  },
): PlaceConfig {
  if (place.kind === "folder") return { kind: "folder", path: resolve(place.path) };
  return { kind: "bucket", place: s3Config(options, place, "Replicas") };
}

/** What is needed to use a place in a bucket. Throws a `StartError` without its keys. */
export function s3Config(
  { s3Endpoint, s3Region, s3AccessKeyId, s3SecretAccessKey }: S3Options,
  { bucket, prefix }: { readonly bucket: string; readonly prefix: string },
  what: "Files" | "Backups" | "Replicas",
): BucketPlace {
  if (s3AccessKeyId === null || s3SecretAccessKey === null) {
    throw new StartError(
      `${what} in a bucket need its keys: set SYNCLINE_S3_ACCESS_KEY_ID and SYNCLINE_S3_SECRET_ACCESS_KEY`,
    );
  }
  return {
    bucket,
    prefix,
    endpoint: s3Endpoint,
    region: s3Region,
    accessKeyId: s3AccessKeyId,
    secretAccessKey: s3SecretAccessKey,
  };
}

/** What was deployed to a data folder. Throws a `StartError` when that cannot be told. */
async function deployedVersion(dataDir: string): Promise<string | null> {
  try {
    return (await readDeployed(dataDir))?.current ?? null;
  } catch (error) {
    throw new StartError(reasonOf(error), { cause: error });
  }
}

async function isFolder(path: string): Promise<boolean> {
  return (await statOf(path))?.isDirectory ?? false;
}

async function isFile(path: string): Promise<boolean> {
  return (await statOf(path))?.isFile ?? false;
}

/** `null` when there is nothing. */
async function statOf(path: string): Promise<Deno.FileInfo | null> {
  try {
    return await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return null;
    throw new StartError(`Cannot read the folder "${path}": ${reasonOf(error)}`, { cause: error });
  }
}
