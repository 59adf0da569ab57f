/**
 * Every option of the command line, once. Flags, environment names, defaults, checks, `--help` and the table in the
 * README are made from this table; nothing else in the program reads arguments or its own environment variables.
 */
import { type AuthConfigPlace, type MailKind, parseEntry, templateOf } from "../auth/mod.ts";
import { ClientAddresses } from "../kit/client_address.ts";
import { authLimits, type RateLimits, rateLimits } from "../auth/limits.ts";
import { clusterLimits } from "../cluster/postgres/limits.ts";
import { parsePostgresUrl, type PostgresPlace } from "../cluster/postgres/place.ts";
import { functionLimits } from "../limits.ts";
import { logLimits, opsLimits, replicationLimits } from "../ops/limits.ts";
import { storageLimits } from "../storage/limits.ts";
import { importModes, tableFormats } from "../ops/tables/mod.ts";
import { parseSize } from "../storage/mod.ts";
import {
  OptionValueError,
  parseBearerToken,
  parseBucket,
  parseBytes,
  parseCheckedList,
  parseChoice,
  parseDuration,
  parseDurationWithin,
  parseExitCode,
  parseHost,
  parseNetList,
  parsePath,
  parsePort,
  parsePublicUrl,
  parseServiceUrl,
  parseSwitch,
  parseText,
  parseWebUrl,
  parseWorkers,
  shownDuration,
} from "./option_types.ts";

export type CommandName =
  | "serve"
  | "restore"
  | "replica verify"
  | "import"
  | "export"
  | "logs"
  | "doctor"
  | "backup"
  | "admin create"
  | "admin list"
  | "admin reset-password"
  | "admin revoke-sessions"
  | "run"
  | "users list"
  | "users create"
  | "users verify"
  | "users set-password"
  | "users revoke-sessions"
  | "users delete"
  | "deploy"
  | "rollback"
  | "deploy-key create"
  | "deploy-key list"
  | "deploy-key revoke"
  | "env list"
  | "env set"
  | "env unset"
  | "migrate"
  | "service";

/** Commands that look after a data folder. */
const everywhere = [
  "serve",
  "restore",
  "import",
  "export",
  "logs",
  "doctor",
  "backup",
  "admin create",
  "admin list",
  "admin reset-password",
  "admin revoke-sessions",
  "run",
  "users list",
  "users create",
  "users verify",
  "users set-password",
  "users revoke-sessions",
  "users delete",
  "deploy-key create",
  "deploy-key list",
  "deploy-key revoke",
  "env list",
  "env set",
  "env unset",
  "migrate",
] as const;

export interface OptionSpec<Value = unknown, Default = unknown> {
  /** Long form, with two dashes. */
  readonly flag: `--${string}`;
  /** Name of the value in `--help`; `null` for a switch, which has none. */
  readonly placeholder: string | null;
  /** Environment variable that gives the value when the flag does not. */
  readonly env: `SYNCLINE_${string}`;
  /** Makes the value from text. Throws `OptionValueError`. */
  readonly parse: (text: string) => Value;
  readonly default: Default;
  /** How `--help` tells the default; `null` when there is nothing to tell. */
  readonly defaultText: string | null;
  readonly description: string;
  readonly commands: readonly CommandName[];
  /** The name that the flag makes, where another command's option of the same flag has it in this table. */
  readonly attribute?: string;
  /** Whether the flag may be given several times: its values are then joined by commas. */
  readonly repeatable?: true;
  /** Set when administrators may also set it while the server runs. */
  readonly setting?: SettingOf<Value>;
}

/** How an option is set while the server runs. It counts at once; what the flag or the variable says counts more. */
export interface SettingOf<Value> {
  /** Stored encrypted and shown to nobody. */
  readonly secret?: true;
  /** It is JSON in which every `{"secret": "..."}` is stored encrypted and shown to nobody. */
  readonly sealsWithin?: true;
  /** It has many lines. */
  readonly long?: true;
  /** Makes the value from the text of the setting, where that is not what the flag takes. */
  readonly parse?: (text: string) => Value;
  /** Another option whose flag or variable counts more, too. */
  readonly under?: string;
}

function option<Value, Default>(spec: OptionSpec<Value, Default>): OptionSpec<Value, Default> {
  return spec;
}

/** Sizes of thumbnails, each as `WxH`. */
function parseThumbSizes(text: string): readonly string[] {
  return text.split(",").map((size) => size.trim()).filter((size) => size !== "").map((size) => {
    const parsed = parseSize(size);
    if (parsed === null) {
      const most = storageLimits.thumbnailEdgeMax;
      throw new OptionValueError(`expected sizes such as 100x100 or 400, up to ${most}, received "${size}"`);
    }
    return `${parsed.width}x${parsed.height}`;
  });
}

/** Variables, each as NAME=value. A comma before the next name ends a value. */
function parseVariables(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split(/,(?=[A-Za-z_][A-Za-z0-9_]*=)/).map((part) => {
      const [, name, value = ""] = part.match(/^([A-Za-z_][A-Za-z0-9_]*)=([^]*)$/) ?? [];
      if (name === undefined) throw new OptionValueError("expected NAME=value");
      return [name, value];
    }),
  );
}

/** Names of tables; which there are is for the database to say. */
function parseTables(text: string): readonly string[] {
  const names = text.split(",").map((name) => name.trim()).filter((name) => name !== "");
  if (names.length === 0) throw new OptionValueError(`expected names of tables, received "${text}"`);
  return names;
}

/** Origins of pages, as `https://app.example.com`; `none` is an empty list. */
function parseOrigins(text: string): readonly string[] {
  const origins = text.split(",").map((origin) => origin.trim()).filter((origin) => origin !== "");
  if (origins.length === 1 && origins[0] === "none") return [];
  return origins.map((origin) => {
    try {
      return parsePublicUrl(origin);
    } catch {
      throw new OptionValueError(
        `expected origins such as https://app.example.com, or none, received "${origin}"`,
      );
    }
  });
}

/** Rate limits that are to be others than by default: `mailsPerAddress=10/2` is ten at once, then two a minute. */
function parseRateLimits(text: string): RateLimits {
  const limits: Record<string, RateLimits[keyof RateLimits]> = {};
  for (const part of text.split(",").map((part) => part.trim()).filter((part) => part !== "")) {
    const [, name = "", burst = "", perMinute = ""] =
      part.match(/^(\w+)=(\d{1,6})\/(\d{1,6}(?:\.\d{1,3})?)$/) ?? [];
    if (!Object.hasOwn(rateLimits, name) || Number(burst) < 1 || Number(perMinute) <= 0) {
      const names = Object.keys(rateLimits).join(", ");
      throw new OptionValueError(`expected name=burst/perMinute with a name of ${names}, received "${part}"`);
    }
    limits[name] = { burst: Number(burst), perMinute: Number(perMinute) };
  }
  return limits as RateLimits;
}

/** How often a scheduled backup is made, in milliseconds. */
const parseBackupEvery = parseDurationWithin({
  least: opsLimits.backupEveryMsMin,
  most: opsLimits.backupEveryMsMax,
});

/** How long a query or a mutation may run, in milliseconds. */
const parseTimeout = parseDurationWithin({
  least: functionLimits.timeoutMsMin,
  most: functionLimits.timeoutMsMax,
});

/** How many scheduled backups are kept. */
function parseBackupKeep(text: string): number {
  const count = /^\d{1,9}$/.test(text.trim()) ? Number(text) : 0;
  if (count < 1 || count > opsLimits.backupsKeptMax) {
    throw new OptionValueError(`expected a number from 1 to ${opsLimits.backupsKeptMax}, received "${text}"`);
  }
  return count;
}

/** How long the execution log keeps runs, in milliseconds; `null`: there is none. */
function parseLogKeep(text: string): number | null {
  if (text.trim() === "off") return null;
  const keepMs = parseDuration(text);
  const { keepMsMin, keepMsMax } = logLimits;
  if (keepMs < keepMsMin || keepMs > keepMsMax) {
    const bounds = `${shownDuration(keepMsMin)} to ${shownDuration(keepMsMax)}`;
    throw new OptionValueError(`expected off, or a length of time from ${bounds}, received "${text}"`);
  }
  return keepMs;
}

/** How many runs of the log are shown first. */
function parseLast(text: string): number {
  const count = /^\d{1,4}$/.test(text.trim()) ? Number(text) : 0;
  if (count < 1 || count > logLimits.pageRunsMax) {
    throw new OptionValueError(`expected a number from 1 to ${logLimits.pageRunsMax}, received "${text}"`);
  }
  return count;
}

/** How large the execution log may become, in bytes. */
function parseLogSize(text: string): number {
  const bytes = parseBytes(text);
  if (bytes < logLimits.bytesMin) {
    throw new OptionValueError(`expected at least ${logLimits.bytesMin / 1024 ** 2}MiB, received "${text}"`);
  }
  return bytes;
}

/** Memory that a server shares out. */
function parseMemory(text: string): number {
  const bytes = parseBytes(text);
  if (bytes < MEMORY_BYTES_MIN) {
    throw new OptionValueError(`expected at least ${MEMORY_BYTES_MIN / 1024 ** 2}MiB, received "${text}"`);
  }
  return bytes;
}

/** How much journal may wait. */
function parseMaxPending(text: string): number {
  const bytes = parseBytes(text);
  const least = replicationLimits.maxPendingBytesMin;
  if (bytes < least) {
    throw new OptionValueError(`expected a size of at least ${least} bytes, received "${text}"`);
  }
  return bytes;
}

function parseCluster(text: string): PostgresPlace {
  try {
    return parsePostgresUrl(text);
  } catch (error) {
    throw new OptionValueError(error instanceof Error ? error.message : String(error));
  }
}

function parseClusterSecret(text: string): string {
  const least = clusterLimits.secretCharsMin;
  if (text.length < least) throw new OptionValueError(`expected at least ${least} characters`);
  return text;
}

export interface HostAndPort {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

function parseHostAndPort(text: string): HostAndPort {
  const [, bracketed, plain, digits] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/[\]@]+)):(\d{1,5})$/.exec(text.trim()) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || !(port >= 1 && port <= 65_535)) {
    throw new OptionValueError(`expected host:port, received "${text}"`);
  }
  return { host, port };
}

/** A point in time, with its offset from UTC. Gives milliseconds since the epoch. */
function parseTime(text: string): number {
  const iso = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/.test(text.trim());
  const time = iso ? Date.parse(text.trim()) : NaN;
  if (Number.isNaN(time)) {
    throw new OptionValueError(`expected a time such as 2030-01-02T14:02:00Z, received "${text}"`);
  }
  return time;
}

/** The ts of a commit. */
function parseTs(text: string): number {
  const ts = /^\d{1,15}$/.test(text.trim()) ? Number(text) : -1;
  if (ts < 0) throw new OptionValueError(`expected the ts of a commit, received "${text}"`);
  return ts;
}

/** How long the execution log keeps runs, as a setting: whether there is a log is decided at the start. */
function parseLogKeepSetting(text: string): number | null {
  if (text.trim() !== "off") return parseLogKeep(text);
  throw new OptionValueError("whether there is a log is decided when the server starts: --log-keep off");
}

/** Where providers and issuers are said: the flag names a file, the setting is its text. */
function parseAuthConfigFile(text: string): AuthConfigPlace {
  return { kind: "file", path: parsePath(text) };
}

/** The text itself is looked at by whoever uses it: what it says depends on what can be reached. */
function parseAuthConfigText(text: string): AuthConfigPlace {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { kind: "text", text };
  } catch {
    // Told below.
  }
  throw new OptionValueError('expected JSON such as {"providers": {...}, "issuers": [...]}');
}

/** The text of a mail of one kind. */
function parseMailText(kind: MailKind): (text: string) => string {
  return (text) => {
    try {
      templateOf(kind, text);
      return text;
    } catch (error) {
      throw new OptionValueError(error instanceof Error ? error.message : String(error));
    }
  };
}

/** The option of the text of a mail. */
function mailText(
  kind: MailKind,
  { flag, env, sent }: Pick<OptionSpec, "flag" | "env"> & { readonly sent: string },
): OptionSpec<string, null> {
  return option({
    flag,
    placeholder: "text",
    env,
    parse: parseMailText(kind),
    default: null,
    defaultText: "built in, or of --mail-templates",
    description:
      `Mail sent ${sent}: "Subject: ...", an empty line and the text, with {{link}}, {{code}} and the like`,
    commands: ["serve"],
    setting: { long: true, under: "mailTemplates" },
  });
}

/** A place for backups: in a bucket, or a folder. */
export type BackupPlace =
  | { readonly kind: "bucket"; readonly bucket: string; readonly prefix: string }
  | { readonly kind: "folder"; readonly path: string };

export function parseBackupPlace(text: string): BackupPlace {
  if (text.trim().startsWith("s3:")) return { kind: "bucket", ...parseBucket(text) };
  return { kind: "folder", path: parsePath(text) };
}

/** What a point in time is restored from: a replica, or a cluster. */
export type RestorePlace = BackupPlace | { readonly kind: "postgres"; readonly place: PostgresPlace };

function parseRestorePlace(text: string): RestorePlace {
  if (/^postgres(?:ql)?:/.test(text.trim())) return { kind: "postgres", place: parseCluster(text.trim()) };
  // The rest may hold a password.
  const [, scheme] = /^(?!s3:)([a-z][a-z0-9+.-]*):\/\//i.exec(text.trim()) ?? [];
  if (scheme !== undefined) {
    throw new OptionValueError(
      `expected a folder, s3:// or postgres://, received one that begins with ${scheme}://`,
    );
  }
  return parseBackupPlace(text);
}

/** The port taken when none is asked for; when it is in use, the next free one above it. */
export const DEFAULT_PORT = 3210;

/** With less nothing can be served. */
const MEMORY_BYTES_MIN = 128 * 1024 ** 2;

export const options = {
  memory: option({
    flag: "--memory",
    placeholder: "size",
    env: "SYNCLINE_MEMORY",
    parse: parseMemory,
    default: null,
    defaultText: "what the machine or its control group has",
    description:
      "Memory that the server shares out, such as 512MiB, at least 128MiB: heaps, caches, readers, sign-ins at once, " +
      "and the bounds of what clients can fill",
    commands: ["serve"],
  }),
  workers: option({
    flag: "--workers",
    placeholder: "count",
    env: "SYNCLINE_WORKERS",
    parse: parseWorkers,
    default: 1,
    defaultText: "1",
    description: "Processes that share the port and answer sockets, queries and static files side by side",
    commands: ["serve"],
  }),
  host: option({
    flag: "--host",
    placeholder: "address",
    env: "SYNCLINE_HOST",
    parse: parseHost,
    default: "127.0.0.1",
    defaultText: "127.0.0.1",
    description: "Address to listen on; 0.0.0.0 lets other machines connect",
    commands: ["serve"],
  }),
  port: option({
    flag: "--port",
    placeholder: "number",
    env: "SYNCLINE_PORT",
    parse: parsePort,
    default: null,
    defaultText: `${DEFAULT_PORT}, or the next free one`,
    description: "Port to listen on; 0 takes any free one",
    commands: ["serve"],
  }),
  data: option({
    flag: "--data",
    placeholder: "folder",
    env: "SYNCLINE_DATA",
    parse: parsePath,
    default: "./data",
    defaultText: "./data",
    description: "Folder of the database and everything else that is kept; created when missing",
    commands: everywhere,
  }),
  functions: option({
    flag: "--functions",
    placeholder: "folder",
    env: "SYNCLINE_FUNCTIONS",
    parse: parsePath,
    default: null,
    defaultText: "what was deployed, ./functions, the chat",
    description: "Folder of the app's queries, mutations and actions",
    commands: ["serve", "import", "deploy"],
  }),
  static: option({
    flag: "--static",
    placeholder: "folder",
    env: "SYNCLINE_STATIC",
    parse: parsePath,
    default: null,
    defaultText: "none; the example brings its own",
    description: "Folder of the app's static frontend",
    commands: ["serve", "deploy"],
  }),
  dev: option({
    flag: "--dev",
    placeholder: null,
    env: "SYNCLINE_DEV",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Reload functions when they are edited, show clients real error messages and log lines",
    commands: ["serve"],
  }),
  takeover: option({
    flag: "--takeover",
    placeholder: null,
    env: "SYNCLINE_TAKEOVER",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Take over from the server that runs on the data folder, without refusing a request",
    commands: ["serve"],
  }),
  devFrontend: option({
    flag: "--dev-frontend",
    placeholder: "url",
    env: "SYNCLINE_DEV_FRONTEND",
    parse: parseServiceUrl,
    default: null,
    defaultText: "none",
    description:
      "With --dev: a server of the frontend, such as Vite, that is asked what the app does not answer",
    commands: ["serve"],
  }),
  skipTypeCheck: option({
    flag: "--skip-type-check",
    placeholder: null,
    env: "SYNCLINE_SKIP_TYPE_CHECK",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "With --dev: leave checking types to somebody else",
    commands: ["serve"],
  }),
  queryTimeout: option({
    flag: "--query-timeout",
    placeholder: "duration",
    env: "SYNCLINE_QUERY_TIMEOUT",
    parse: parseTimeout,
    default: functionLimits.queryTimeoutMs,
    defaultText: `${functionLimits.queryTimeoutMs / 1000}s`,
    description: "How long a query may run; one that takes longer fails",
    commands: ["serve"],
  }),
  mutationTimeout: option({
    flag: "--mutation-timeout",
    placeholder: "duration",
    env: "SYNCLINE_MUTATION_TIMEOUT",
    parse: parseTimeout,
    default: functionLimits.mutationTimeoutMs,
    defaultText: `${functionLimits.mutationTimeoutMs / 1000}s`,
    description:
      "How long a mutation may run; one that takes longer is rolled back, and nobody else writes meanwhile",
    commands: ["serve"],
  }),
  actionNet: option({
    flag: "--action-net",
    placeholder: "hosts",
    env: "SYNCLINE_ACTION_NET",
    parse: parseNetList,
    default: null,
    defaultText: "any host",
    description: "Hosts that actions may reach, separated by commas",
    commands: ["serve"],
  }),
  envFile: option({
    flag: "--env-file",
    placeholder: "file",
    env: "SYNCLINE_ENV_FILE",
    parse: parsePath,
    default: null,
    defaultText: "none",
    description: "File of NAME=value lines that actions see as ctx.env",
    commands: ["serve", "deploy"],
  }),
  publicUrl: option({
    flag: "--public-url",
    placeholder: "url",
    env: "SYNCLINE_PUBLIC_URL",
    parse: parsePublicUrl,
    default: null,
    defaultText: "none: URLs of files are relative",
    description: "Address of this server for browsers: links and URLs of files begin with it",
    commands: ["serve", "service"],
  }),
  trustedProxy: option({
    flag: "--trusted-proxy",
    placeholder: "ranges",
    env: "SYNCLINE_TRUSTED_PROXY",
    parse: parseCheckedList((range) => new ClientAddresses([range])),
    default: [],
    defaultText: "none",
    description: "Addresses or CIDR ranges of proxies whose X-Forwarded-For is believed; repeatable",
    commands: ["serve"],
    repeatable: true,
  }),
  allowOrigin: option({
    flag: "--allow-origin",
    placeholder: "origins",
    env: "SYNCLINE_ALLOW_ORIGIN",
    parse: parseOrigins,
    default: null,
    defaultText: "pages of any origin",
    description: "Origins of pages that may use the API beside the server's own, or none; repeatable",
    commands: ["serve"],
    repeatable: true,
  }),
  authRedirectUrl: option({
    flag: "--auth-redirect-url",
    placeholder: "url",
    env: "SYNCLINE_AUTH_REDIRECT_URL",
    parse: parseCheckedList(parseEntry),
    default: [],
    defaultText: "the server's own page",
    description:
      "App URL that links in mails may lead to, with everything below it; repeatable, the first is used by default",
    commands: ["serve"],
    repeatable: true,
    setting: {},
  }),
  requireVerification: option({
    flag: "--require-verification",
    placeholder: null,
    env: "SYNCLINE_REQUIRE_VERIFICATION",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Users confirm their email address before they can sign in",
    commands: ["serve"],
    setting: {},
  }),
  disableSignups: option({
    flag: "--disable-signups",
    placeholder: null,
    env: "SYNCLINE_DISABLE_SIGNUPS",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Nobody can create an account",
    commands: ["serve"],
    setting: {},
  }),
  disableMagicLink: option({
    flag: "--disable-magic-link",
    placeholder: null,
    env: "SYNCLINE_DISABLE_MAGIC_LINK",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Nobody can sign in by mail",
    commands: ["serve"],
    setting: {},
  }),
  accessTokenTtl: option({
    flag: "--access-token-ttl",
    placeholder: "duration",
    env: "SYNCLINE_ACCESS_TOKEN_TTL",
    parse: parseDuration,
    default: authLimits.accessTokenMs,
    defaultText: "15m",
    description: "Lifetime of access tokens",
    commands: ["serve"],
  }),
  smtpUrl: option({
    flag: "--smtp-url",
    placeholder: "url",
    env: "SYNCLINE_SMTP_URL",
    parse: parseText,
    default: null,
    defaultText: "none: no mail, with --dev it is printed",
    description: "Mail server, as smtp://user:password@host:587 or smtps://…",
    commands: ["serve"],
    setting: { secret: true },
  }),
  mailFrom: option({
    flag: "--mail-from",
    placeholder: "address",
    env: "SYNCLINE_MAIL_FROM",
    parse: parseText,
    default: null,
    defaultText: "none",
    description: "Sender of mails, as App <no-reply@example.com>",
    commands: ["serve"],
    setting: {},
  }),
  authConfig: option({
    flag: "--auth-config",
    placeholder: "file",
    env: "SYNCLINE_AUTH_CONFIG",
    parse: parseAuthConfigFile,
    default: null,
    defaultText: "none",
    description: "JSON file of the providers to sign in with and of the issuers whose tokens are accepted",
    commands: ["serve"],
    setting: { parse: parseAuthConfigText, sealsWithin: true, long: true },
  }),
  mailVerify: mailText("verify", {
    flag: "--mail-verify",
    env: "SYNCLINE_MAIL_VERIFY",
    sent: "to confirm an address",
  }),
  mailReset: mailText("reset", {
    flag: "--mail-reset",
    env: "SYNCLINE_MAIL_RESET",
    sent: "to set a new password",
  }),
  mailMagic: mailText("magic", {
    flag: "--mail-magic",
    env: "SYNCLINE_MAIL_MAGIC",
    sent: "to sign in",
  }),
  mailChange: mailText("change", {
    flag: "--mail-change",
    env: "SYNCLINE_MAIL_CHANGE",
    sent: "to a new address",
  }),
  mailTemplates: option({
    flag: "--mail-templates",
    placeholder: "folder",
    env: "SYNCLINE_MAIL_TEMPLATES",
    parse: parsePath,
    default: null,
    defaultText: "built in",
    description: "Folder of mail templates: verify, reset, magic and change, each as .txt and .html",
    commands: ["serve"],
    setting: {},
  }),
  rateLimits: option({
    flag: "--rate-limits",
    placeholder: "limits",
    env: "SYNCLINE_RATE_LIMITS",
    parse: parseRateLimits,
    default: {},
    defaultText: "see docs/limits.md",
    description: "Rate limits of accounts, as name=burst/perMinute separated by commas; repeatable",
    commands: ["serve"],
    repeatable: true,
    setting: {},
  }),
  appName: option({
    flag: "--app-name",
    placeholder: "name",
    env: "SYNCLINE_APP_NAME",
    parse: parseText,
    default: null,
    defaultText: "the host of the public address",
    description: "Name of the app in mails",
    commands: ["serve"],
    setting: {},
  }),
  storage: option({
    flag: "--storage",
    placeholder: "place",
    env: "SYNCLINE_STORAGE",
    parse: parseBucket,
    default: null,
    defaultText: "storage/ in the data folder",
    description: "Where uploaded files lie, as s3://bucket/prefix",
    commands: ["serve", "doctor"],
  }),
  s3Endpoint: option({
    flag: "--s3-endpoint",
    placeholder: "url",
    env: "SYNCLINE_S3_ENDPOINT",
    parse: parseServiceUrl,
    default: null,
    defaultText: "AWS",
    description: "Address of an S3-compatible service",
    commands: ["serve", "restore", "replica verify"],
    setting: {},
  }),
  s3Region: option({
    flag: "--s3-region",
    placeholder: "name",
    env: "SYNCLINE_S3_REGION",
    parse: parseText,
    default: "us-east-1",
    defaultText: "us-east-1",
    description: "Region of the bucket",
    commands: ["serve", "restore", "replica verify"],
    setting: {},
  }),
  s3AccessKeyId: option({
    flag: "--s3-access-key-id",
    placeholder: "id",
    env: "SYNCLINE_S3_ACCESS_KEY_ID",
    parse: parseText,
    default: null,
    defaultText: "none",
    description: "Access key of the bucket",
    commands: ["serve", "restore", "replica verify"],
    setting: {},
  }),
  s3SecretAccessKey: option({
    flag: "--s3-secret-access-key",
    placeholder: "key",
    env: "SYNCLINE_S3_SECRET_ACCESS_KEY",
    parse: parseText,
    default: null,
    defaultText: "none",
    description: "Its secret; give it by the variable, flags can be seen by other users of the machine",
    commands: ["serve", "restore", "replica verify"],
    setting: { secret: true },
  }),
  uploadMaxBytes: option({
    flag: "--upload-max-bytes",
    placeholder: "size",
    env: "SYNCLINE_UPLOAD_MAX_BYTES",
    parse: parseBytes,
    default: storageLimits.uploadBytesMax,
    defaultText: "100MiB",
    description: "Largest file that can be uploaded",
    commands: ["serve"],
  }),
  storagePrivate: option({
    flag: "--storage-private",
    placeholder: null,
    env: "SYNCLINE_STORAGE_PRIVATE",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Files can be read with signed URLs only",
    commands: ["serve"],
  }),
  storageKeepDeleted: option({
    flag: "--storage-keep-deleted",
    placeholder: "duration",
    env: "SYNCLINE_STORAGE_KEEP_DELETED",
    parse: parseDuration,
    default: 0,
    defaultText: "not at all",
    description: "How long the contents of deleted files are kept, for restores to an earlier time",
    commands: ["serve"],
  }),
  thumbSizes: option({
    flag: "--thumb-sizes",
    placeholder: "sizes",
    env: "SYNCLINE_THUMB_SIZES",
    parse: parseThumbSizes,
    default: null,
    defaultText: "any up to 1024x1024",
    description: "Sizes that thumbnails may have, as 100x100,400; repeatable",
    commands: ["serve"],
    repeatable: true,
  }),
  backupEvery: option({
    flag: "--backup-every",
    placeholder: "duration",
    env: "SYNCLINE_BACKUP_EVERY",
    parse: parseBackupEvery,
    default: null,
    defaultText: "none are made",
    description: "Time between two scheduled backups, 1s or more",
    commands: ["serve"],
    setting: {},
  }),
  backupKeep: option({
    flag: "--backup-keep",
    placeholder: "count",
    env: "SYNCLINE_BACKUP_KEEP",
    parse: parseBackupKeep,
    default: opsLimits.backupsKeptDefault,
    defaultText: String(opsLimits.backupsKeptDefault),
    description: "Scheduled backups that are kept; older ones are deleted, those made by hand never",
    commands: ["serve"],
    setting: {},
  }),
  backupTo: option({
    flag: "--backup-to",
    placeholder: "place",
    env: "SYNCLINE_BACKUP_TO",
    parse: parseBackupPlace,
    default: null,
    defaultText: "backups/ in the data folder",
    description: "Where scheduled backups go: a folder, or s3://bucket/prefix",
    commands: ["serve"],
    setting: {},
  }),
  replicateTo: option({
    flag: "--replicate-to",
    placeholder: "place",
    env: "SYNCLINE_REPLICATE_TO",
    parse: parseBackupPlace,
    default: null,
    defaultText: "nothing is replicated",
    description: "Where every commit goes soon after it was made: a folder, or s3://bucket/prefix",
    commands: ["serve"],
  }),
  replicateEvery: option({
    flag: "--replicate-every",
    placeholder: "duration",
    env: "SYNCLINE_REPLICATE_EVERY",
    parse: parseDurationWithin({ least: replicationLimits.everyMsMin, most: replicationLimits.everyMsMax }),
    default: replicationLimits.everyMs,
    defaultText: "1s",
    description:
      "Time between a commit and its shipping, up to 1h; nothing is asked of the place when nothing changes",
    commands: ["serve"],
  }),
  snapshotEvery: option({
    flag: "--snapshot-every",
    placeholder: "duration",
    env: "SYNCLINE_SNAPSHOT_EVERY",
    parse: parseDurationWithin({
      least: replicationLimits.snapshotEveryMsMin,
      most: replicationLimits.snapshotEveryMsMax,
    }),
    default: replicationLimits.snapshotEveryMs,
    defaultText: "1d",
    description: "Time between two snapshots of the replica, 1s to 30d; restores begin with one",
    commands: ["serve"],
  }),
  replicateKeep: option({
    flag: "--replicate-keep",
    placeholder: "duration",
    env: "SYNCLINE_REPLICATE_KEEP",
    parse: parseDuration,
    default: replicationLimits.keepMs,
    defaultText: "7d",
    description: "How far back restores from the replica reach; contents of deleted files are kept as long",
    commands: ["serve"],
  }),
  replicateMaxPending: option({
    flag: "--replicate-max-pending",
    placeholder: "size",
    env: "SYNCLINE_REPLICATE_MAX_PENDING",
    parse: parseMaxPending,
    default: replicationLimits.maxPendingBytes,
    defaultText: "1GiB",
    description:
      "Commits that may wait for a place that is away; beyond it they are dropped and a snapshot is taken",
    commands: ["serve"],
  }),
  followed: option({
    flag: "--follow",
    attribute: "follow",
    placeholder: "replica",
    env: "SYNCLINE_FOLLOW_REPLICA",
    parse: parseBackupPlace,
    default: null,
    defaultText: "the server has commits of its own",
    description: "Serve what another server ships to this place, read only: a folder, or s3://bucket/prefix",
    commands: ["serve"],
  }),
  promote: option({
    flag: "--promote",
    placeholder: null,
    env: "SYNCLINE_PROMOTE",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description:
      "With --follow: take what the place has once more, then go on as a server with commits of its own",
    commands: ["serve"],
  }),
  cluster: option({
    flag: "--cluster",
    placeholder: "url",
    env: "SYNCLINE_CLUSTER",
    parse: parseCluster,
    default: null,
    defaultText: "the server is alone",
    description:
      "Be one of several servers on this PostgreSQL, postgres://user:password@host/database; give it by the variable",
    commands: ["serve"],
  }),
  clusterSecret: option({
    flag: "--cluster-secret",
    placeholder: "text",
    env: "SYNCLINE_CLUSTER_SECRET",
    parse: parseClusterSecret,
    default: null,
    defaultText: "none",
    description: "What all servers of a cluster know and nobody else; give it by the variable",
    commands: ["serve"],
  }),
  clusterSnapshots: option({
    flag: "--cluster-snapshots",
    placeholder: "place",
    env: "SYNCLINE_CLUSTER_SNAPSHOTS",
    parse: parseBackupPlace,
    default: null,
    defaultText: "none",
    description:
      "Where all servers of a cluster find snapshots to begin with: s3://bucket/prefix, or a folder they share",
    commands: ["serve", "restore"],
  }),
  clusterAddress: option({
    flag: "--cluster-address",
    placeholder: "host:port",
    env: "SYNCLINE_CLUSTER_ADDRESS",
    parse: parseHostAndPort,
    default: null,
    defaultText: "the address that reaches the database, any free port",
    description:
      "Where the other servers of the cluster reach this one, to send it what only the leader does",
    commands: ["serve"],
  }),
  clusterListen: option({
    flag: "--cluster-listen",
    placeholder: "host:port",
    env: "SYNCLINE_CLUSTER_LISTEN",
    parse: parseHostAndPort,
    default: null,
    defaultText: "the address of --cluster-address",
    description: "Where this server listens for the others, when that is another address than theirs for it",
    commands: ["serve"],
  }),
  heartbeatUrl: option({
    flag: "--heartbeat-url",
    placeholder: "url",
    env: "SYNCLINE_HEARTBEAT_URL",
    parse: parseWebUrl,
    default: null,
    defaultText: "none",
    description: "Address asked when commits have reached the replica, at most once a minute",
    commands: ["serve"],
  }),
  from: option({
    flag: "--from",
    placeholder: "replica",
    env: "SYNCLINE_FROM",
    parse: parseRestorePlace,
    default: null,
    defaultText: "an archive is restored",
    description: "Replica to restore from: a folder, or s3://bucket/prefix; or a cluster's PostgreSQL",
    commands: ["restore"],
  }),
  list: option({
    flag: "--list",
    placeholder: null,
    env: "SYNCLINE_LIST",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Tell what can be restored from the replica instead",
    commands: ["restore"],
  }),
  toTime: option({
    flag: "--to-time",
    placeholder: "time",
    env: "SYNCLINE_TO_TIME",
    parse: parseTime,
    default: null,
    defaultText: "the newest state",
    description: "Restore the state of this time, ISO 8601 with its offset, as 2030-01-02T14:02:00Z",
    commands: ["restore"],
  }),
  toTs: option({
    flag: "--to-ts",
    placeholder: "number",
    env: "SYNCLINE_TO_TS",
    parse: parseTs,
    default: null,
    defaultText: "the newest state",
    description: "Restore the state after this commit",
    commands: ["restore"],
  }),
  generation: option({
    flag: "--generation",
    placeholder: "name",
    env: "SYNCLINE_GENERATION",
    parse: parseText,
    default: null,
    defaultText: "the newest that has the point",
    description: "Generation of the replica to restore from",
    commands: ["restore"],
  }),
  dryRun: option({
    flag: "--dry-run",
    placeholder: null,
    env: "SYNCLINE_DRY_RUN",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Tell what would be done, and change nothing",
    commands: ["restore", "deploy", "rollback", "migrate"],
  }),
  json: option({
    flag: "--json",
    placeholder: null,
    env: "SYNCLINE_JSON",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Print JSON",
    commands: ["restore", "doctor"],
  }),
  url: option({
    flag: "--url",
    placeholder: "url",
    env: "SYNCLINE_URL",
    parse: parsePublicUrl,
    default: null,
    defaultText: "none: it has to be given",
    description: "Address of the server, such as https://app.example.com",
    commands: ["deploy", "rollback"],
  }),
  deployKey: option({
    flag: "--deploy-key",
    placeholder: "key",
    env: "SYNCLINE_DEPLOY_KEY",
    parse: parseBearerToken,
    default: null,
    defaultText: "none: it has to be given, best by the variable",
    description: "Deploy key, which deploy-key create prints",
    commands: ["deploy", "rollback"],
  }),
  env: option({
    flag: "--env",
    placeholder: "NAME=value",
    env: "SYNCLINE_ENV",
    parse: parseVariables,
    default: {},
    defaultText: "none",
    description: "Variable of ctx.env that the server is to keep; repeatable",
    commands: ["deploy"],
    repeatable: true,
  }),
  table: option({
    flag: "--table",
    placeholder: "name",
    env: "SYNCLINE_TABLE",
    parse: parseText,
    default: null,
    defaultText: "none: it has to be given",
    description: "Table whose documents are migrated",
    commands: ["migrate"],
  }),
  anew: option({
    flag: "--anew",
    placeholder: null,
    env: "SYNCLINE_ANEW",
    parse: parseSwitch,
    default: false,
    defaultText: "off: a migration that was left is gone on with",
    description: "Begin with the first document again",
    commands: ["migrate"],
  }),
  restartExitCode: option({
    flag: "--restart-exit-code",
    placeholder: "number",
    env: "SYNCLINE_RESTART_EXIT_CODE",
    parse: parseExitCode,
    default: null,
    defaultText: "none: administrators cannot restart it",
    description: "Exit code with which the server ends when an administrator restarts it",
    commands: ["serve"],
  }),
  logKeep: option({
    flag: "--log-keep",
    placeholder: "duration",
    env: "SYNCLINE_LOG_KEEP",
    parse: parseLogKeep,
    default: logLimits.keepMsDefault,
    defaultText: "7d",
    description: "How long the execution log keeps runs of functions; off keeps no log",
    commands: ["serve"],
    setting: { parse: parseLogKeepSetting },
  }),
  logMaxSize: option({
    flag: "--log-max-size",
    placeholder: "size",
    env: "SYNCLINE_LOG_MAX_SIZE",
    parse: parseLogSize,
    default: logLimits.bytesDefault,
    defaultText: "1GiB",
    description: "Size of the execution log beyond which its oldest runs go, however new they are",
    commands: ["serve"],
    setting: {},
  }),
  follow: option({
    flag: "--follow",
    placeholder: null,
    env: "SYNCLINE_FOLLOW",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Go on with the runs that come, until a signal",
    commands: ["logs"],
  }),
  last: option({
    flag: "--last",
    placeholder: "number",
    env: "SYNCLINE_LAST",
    parse: parseLast,
    default: logLimits.pageRunsDefault,
    defaultText: String(logLimits.pageRunsDefault),
    description: `Newest runs to begin with, up to ${logLimits.pageRunsMax}`,
    commands: ["logs"],
  }),
  only: option({
    flag: "--only",
    placeholder: "paths",
    env: "SYNCLINE_ONLY",
    parse: parseText,
    default: null,
    defaultText: "all",
    description: "Functions whose runs are shown, separated by commas; orders:* stands for all that begin so",
    commands: ["logs"],
  }),
  outcome: option({
    flag: "--outcome",
    placeholder: "outcomes",
    env: "SYNCLINE_OUTCOME",
    parse: parseText,
    default: null,
    defaultText: "all",
    description: "How they ended: success, user_error, error, timeout, refused",
    commands: ["logs"],
  }),
  level: option({
    flag: "--level",
    placeholder: "level",
    env: "SYNCLINE_LEVEL",
    parse: parseText,
    default: null,
    defaultText: "all",
    description: "Only runs with a line of at least this level: DEBUG, INFO, WARN or ERROR",
    commands: ["logs"],
  }),
  text: option({
    flag: "--text",
    placeholder: "text",
    env: "SYNCLINE_TEXT",
    parse: parseText,
    default: null,
    defaultText: "all",
    description: "A text in an error or a line",
    commands: ["logs"],
  }),
  request: option({
    flag: "--request",
    placeholder: "id",
    env: "SYNCLINE_REQUEST",
    parse: parseText,
    default: null,
    defaultText: "all",
    description: "Only the runs of one request",
    commands: ["logs"],
  }),
  metrics: option({
    flag: "--metrics",
    placeholder: null,
    env: "SYNCLINE_METRICS",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Answer GET /metrics for Prometheus",
    commands: ["serve"],
  }),
  metricsToken: option({
    flag: "--metrics-token",
    placeholder: "token",
    env: "SYNCLINE_METRICS_TOKEN",
    parse: parseBearerToken,
    default: null,
    defaultText: "none: anyone who reaches the server",
    description: "Bearer token that readers of /metrics have to show; refused without --metrics",
    commands: ["serve"],
  }),
  format: option({
    flag: "--format",
    placeholder: tableFormats.join("|"),
    env: "SYNCLINE_FORMAT",
    parse: parseChoice(tableFormats),
    default: null,
    defaultText: "by the file's ending; jsonl for exports",
    description:
      "Whether files hold one JSON object a line or CSV with a header; of a folder, the files to take",
    commands: ["import", "export"],
  }),
  tables: option({
    flag: "--tables",
    placeholder: "names",
    env: "SYNCLINE_TABLES",
    parse: parseTables,
    default: null,
    defaultText: "all tables of the app",
    description: "Tables to export, separated by commas; _users and _scheduled_functions only when named",
    commands: ["export"],
    repeatable: true,
  }),
  mode: option({
    flag: "--mode",
    placeholder: importModes.join("|"),
    env: "SYNCLINE_MODE",
    parse: parseChoice(importModes),
    default: "insert" as const,
    defaultText: "insert",
    description: "Whether documents that are there are refused, replaced, or all deleted first",
    commands: ["import"],
  }),
  out: option({
    flag: "--out",
    placeholder: "path",
    env: "SYNCLINE_OUT",
    parse: parsePath,
    default: null,
    defaultText: "a new name with the present time",
    description: "What is made: the folder of an export, which has to be new or empty; the file of a backup",
    commands: ["export", "backup"],
  }),
  withAux: option({
    flag: "--with-aux",
    placeholder: null,
    env: "SYNCLINE_WITH_AUX",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Put the execution log into the backup as well",
    commands: ["backup"],
  }),
  withFiles: option({
    flag: "--with-files",
    placeholder: null,
    env: "SYNCLINE_WITH_FILES",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description:
      "Put the uploaded files of the data folder into the backup, or the export, as well; files in a bucket stay there",
    commands: ["backup", "export"],
  }),
  includeSecret: option({
    flag: "--include-secret",
    placeholder: null,
    env: "SYNCLINE_INCLUDE_SECRET",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Put the secret key into the backup as well: whoever has it can sign in as anybody",
    commands: ["backup"],
  }),
  cancel: option({
    flag: "--cancel",
    placeholder: null,
    env: "SYNCLINE_CANCEL",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Cancel a staged restore instead",
    commands: ["restore"],
  }),
  passwordStdin: option({
    flag: "--password-stdin",
    placeholder: null,
    env: "SYNCLINE_PASSWORD_STDIN",
    parse: parseSwitch,
    default: false,
    defaultText: "off: one is generated and printed",
    description: "Read the password from the first line of standard input",
    commands: ["users create", "users set-password", "admin create", "admin reset-password"],
  }),
} as const;

export type OptionName = keyof typeof options;

type ValueOf<Spec> = Spec extends OptionSpec<infer Value, infer Default> ? Value | Widened<Default> : never;
type Widened<Value> = Value extends boolean ? boolean : Value;

/** What a command was asked to do, checked but not yet looked up on the disk. Only the command's own options are there. */
export type OptionValues = { readonly [Name in OptionName]: ValueOf<(typeof options)[Name]> };

/** The options of `serve`. */
export type ServeOptions = Omit<
  OptionValues,
  | "cancel"
  | "passwordStdin"
  | "format"
  | "mode"
  | "tables"
  | "out"
  | "withAux"
  | "withFiles"
  | "includeSecret"
  | "from"
  | "list"
  | "toTime"
  | "toTs"
  | "generation"
  | "dryRun"
  | "json"
  | "url"
  | "deployKey"
  | "env"
  | "table"
  | "anew"
>;

/** The text of each option that was given, and by what. */
export type GivenTexts = ReadonlyMap<OptionName, { readonly by: "flag" | "env"; readonly text: string }>;

/** The options of one command, by name, in the order of the table. */
export function optionsOf(command: CommandName): [OptionName, OptionSpec][] {
  return (Object.entries(options) as [OptionName, OptionSpec][])
    .filter(([, spec]) => spec.commands.includes(command));
}
