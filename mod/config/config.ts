/** What a server is started with. */
import type { RateLimits } from "../auth/limits.ts";
import type { AccountPolicy, AuthConfigPlace, MailKind, SmtpOptions } from "../auth/mod.ts";
import type { PostgresPlace } from "../cluster/postgres/place.ts";
import type { BucketPlace } from "../kit/bucket.ts";
import type { MemoryPlan } from "./memory.ts";
import type { GivenTexts, HostAndPort, ServeOptions } from "./options.ts";

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

/** The folder of backups, below the data folder. */
export const BACKUPS_DIR = "backups";
/** The folder of archives and tables that are being received, below the data folder; each start empties it. */
export const INCOMING_DIR = "incoming";
