/** The configuration of a server. */
import type { RateLimits } from "../auth/limits.ts";
import type { AccountPolicy, AuthConfigSource, MailKind, SmtpOptions } from "../auth/mod.ts";
import type { PostgresAddress } from "../cluster/postgres/postgres_address.ts";
import type { AlertsConfig } from "../ops/alerts/mod.ts";
import type { BucketLocation, ObjectLocation } from "../kit/locations/object_store.ts";
import type { MemoryPlan } from "./memory.ts";
import type { TelemetrySignal } from "../ops/limits.ts";
import type { ExplicitValues, HostAndPort, ServeOptions } from "./options.ts";

export interface ServeConfig {
  readonly host: string;
  /** `null` for the default port or the next free one; 0 for any free port. */
  readonly port: number | null;
  /** Number of processes that share the port, including this one. */
  readonly workers: number;
  /** Absolute. */
  readonly dataDir: string;
  /** Absolute. */
  readonly functionsDir: string;
  /** Whether that folder is served even if a version was deployed. */
  readonly pinned: boolean;
  /** Hash of the version that is served instead of the folder: the deployed one, or the one served last. `null` if none. */
  readonly deployed: string | null;
  /** Absolute; `null` without a static frontend. */
  readonly staticDir: string | null;
  /** Whether the bundled example is served, because there is no app. */
  readonly example: boolean;
  /** Whether there is no app, so that an empty one is served until the first deploy. */
  readonly empty: boolean;
  readonly dev: boolean;
  /** Whether to take over from a server that holds the data folder. */
  readonly takeover: boolean;
  /** Origin of the frontend development server, or `null`. */
  readonly devFrontendUrl: string | null;
  /** Whether `dev` type-checks the functions. */
  readonly typeCheck: boolean;
  /** Hosts that actions may reach; `null` for any. */
  readonly actionNet: readonly string[] | null;
  /** Maximum run times. */
  readonly timeouts: { readonly queryMs: number; readonly mutationMs: number };
  /** The variables of `ctx.env`. */
  readonly actionEnv: Readonly<Record<string, string>>;
  /** Sentences logged at the start. */
  readonly warnings?: readonly string[];
  /** Origin of the server for browsers; `null` for the address it listens on. */
  readonly publicUrl: string | null;
  /** Host names the server answers to in addition to localhost, IP addresses and that of `publicUrl`. */
  readonly allowedHosts: readonly string[];
  /** Whether everyone may read the OpenAPI document. */
  readonly publicOpenApi: boolean;
  /** Page origins that may use the API in addition to the server's own; `null` for any. */
  readonly allowedOrigins: readonly string[] | null;
  /** Addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[];
  /** Explicitly set options, which take precedence over settings; `null` if there are no settings. */
  readonly explicitOptions: ExplicitOptions | null;
  readonly accounts: AccountsConfig;
  readonly storage: StorageConfig;
  /** `null` without scheduled backups. */
  readonly backups: BackupsConfig | null;
  /** `null` without replication. */
  readonly replication: ReplicationConfig | null;
  /** `null` unless the server follows a replica. */
  readonly follow: FollowConfig | null;
  /** `null` for a single server. */
  readonly cluster: ClusterConfig | null;
  /** The current role in the cluster; `null` for a single server. */
  readonly clusterRole: "leader" | "follower" | null;
  readonly memoryBytes: number;
  /** How the budget is split. */
  readonly memory: MemoryPlan;
  /** Exit code for a restart by an administrator; `null` if restarts are not allowed. */
  readonly restartExitCode: number | null;
  readonly alerts: AlertsConfig;
  /** `null` if metrics are off. */
  readonly metrics: MetricsConfig | null;
  /** `null` without `--otlp-endpoint`. */
  readonly telemetry: TelemetryConfig | null;
  /** `null` if the execution log is off. */
  readonly executionLog: ExecutionLogConfig | null;
}

export interface ExecutionLogConfig {
  /** Whether arguments are logged. */
  readonly args?: true;
  readonly keepMs: number;
  readonly bytesMax: number;
}

/** The options of `serve` with the text of those set explicitly. */
export interface ExplicitOptions {
  readonly values: ServeOptions;
  readonly explicit: ExplicitValues;
}

/** Configuration of `/metrics`. */
export interface MetricsConfig {
  /** Required bearer token; `null` if none is required. */
  readonly token: string | null;
}

/** Export of telemetry over OTLP. */
export interface TelemetryConfig {
  /** Base URL without a trailing slash. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Share of traces that are exported, from 0 to 1. */
  readonly sample: number;
  readonly signals: readonly TelemetrySignal[];
}

export interface StorageConfig {
  /** `null` to store files in the data folder. */
  readonly s3: BucketLocation | null;
  readonly uploadBytesMax: number;
  /** Whether files can only be read with signed URLs. */
  readonly privateReads: boolean;
  /** How long the contents of deleted files are kept. */
  readonly keepDeletedMs: number;
  /** Allowed thumbnail sizes as `WxH`; `null` for any. */
  readonly thumbnailSizes: readonly string[] | null;
}

export interface BackupsConfig {
  readonly everyMs: number;
  readonly keep: number;
  /** Paths are absolute. */
  readonly to: ObjectLocation;
}

export interface ReplicationConfig {
  /** Paths are absolute. */
  readonly to: ObjectLocation;
  readonly everyMs: number;
  readonly snapshotEveryMs: number;
  /** How far back the replica can be restored. */
  readonly keepMs: number;
  readonly maxPendingBytes: number;
  readonly heartbeatUrl: string | null;
}

export interface FollowConfig {
  /** Paths are absolute. */
  readonly from: ObjectLocation;
  /** Poll interval. */
  readonly everyMs: number;
  /** Whether to catch up once and then accept writes. */
  readonly promote: boolean;
}

export interface ClusterConfig {
  readonly database: PostgresAddress;
  readonly secret: string;
  /** Paths are absolute. */
  readonly snapshots: ObjectLocation;
  /** Address for the other servers; `null` for the address used to reach the database. */
  readonly address: HostAndPort | null;
  /** Address to listen on for the other servers; `null` for `address`, if it belongs to this machine. */
  readonly listen: HostAndPort | null;
}

/** Whether the server is a follower, which accepts no writes itself. */
export function isFollower(
  { follow, clusterRole }: Pick<ServeConfig, "follow"> & {
    readonly clusterRole?: ServeConfig["clusterRole"];
  },
): boolean {
  return follow !== null && !follow.promote || clusterRole === "follower";
}

export interface AccountsConfig {
  readonly policy: AccountPolicy;
  readonly accessTokenMs: number;
  readonly redirectUrls: readonly string[];
  /** `null` without a mail server. */
  readonly smtp: SmtpOptions | null;
  /** Absolute; `null` for the built-in templates. */
  readonly templatesDir: string | null;
  /** Custom mail templates: `Subject: ...`, an empty line, and the body. */
  readonly mailTexts: Readonly<Partial<Record<MailKind, string>>>;
  /** Providers and issuers. The path of a file is absolute. */
  readonly authConfig: AuthConfigSource | null;
  /** `null` for the host name of the public URL. */
  readonly appName: string | null;
  readonly rateLimits: RateLimits;
}

export const BACKUPS_DIR = "backups";
/** Name of the folder for incoming archives and tables in the data folder. Each start empties it. */
export const INCOMING_DIR = "incoming";
