/**
 * The table of all options. The command line, the settings of administrators and the docs are built from it: flags, environment
 * variables, defaults and `--help`. Parsers throw an `OptionValueError` for an invalid value. Combinations of
 * options are checked where the configuration is resolved.
 */
import { type AuthConfigSource, type MailKind, parseEntry, templateOf } from "../auth/mod.ts";
import { checkKeyPattern } from "../functions/key_scope.ts";
import { ClientAddresses } from "../kit/client_address.ts";
import { parseMailAddresses, parseQuietHours, parseThresholds, parseWebhooks } from "./alert_options.ts";
import { authLimits, type RateLimits, rateLimits } from "../auth/limits.ts";
import { clusterLimits } from "../cluster/postgres/limits.ts";
import { parsePostgresUrl, type PostgresAddress } from "../cluster/postgres/postgres_address.ts";
import { functionLimits } from "../limits.ts";
import {
  logLimits,
  opsLimits,
  replicationLimits,
  type TelemetrySignal,
  telemetrySignals,
} from "../ops/limits.ts";
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
  | "admin remove-factors"
  | "admin revoke-sessions"
  | "run"
  | "openapi"
  | "mcp"
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
  | "api-key create"
  | "api-key list"
  | "api-key revoke"
  | "env list"
  | "env set"
  | "env unset"
  | "migrate"
  | "service";

/** Commands that operate on a data folder. */
const dataFolderCommands = [
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
  "admin remove-factors",
  "admin revoke-sessions",
  "run",
  "openapi",
  "mcp",
  "users list",
  "users create",
  "users verify",
  "users set-password",
  "users revoke-sessions",
  "users delete",
  "deploy-key create",
  "deploy-key list",
  "deploy-key revoke",
  "api-key create",
  "api-key list",
  "api-key revoke",
  "env list",
  "env set",
  "env unset",
  "migrate",
] as const;

export interface OptionSpec<Value = unknown, Default = unknown> {
  /** Long flag, including the two dashes. */
  readonly flag: `--${string}`;
  /** Placeholder for the value in `--help`; `null` for a switch. */
  readonly placeholder: string | null;
  /** Environment variable used when the flag is absent. */
  readonly env: `SYNCLINE_${string}`;
  /** Parses the value. Throws `OptionValueError`. */
  readonly parse: (text: string) => Value;
  readonly default: Default;
  /** The default as shown by `--help`; `null` to show none. */
  readonly defaultText: string | null;
  readonly description: string;
  readonly commands: readonly CommandName[];
  /** Commander's attribute name for the flag, where another option of the table has the same flag or is its opposite. */
  readonly attribute?: string;
  /** Deprecated names, which still work. */
  readonly former?: { readonly flag: `--${string}`; readonly env: `SYNCLINE_${string}` };
  /** Whether the flag can be repeated. Its values are joined with commas. */
  readonly repeatable?: true;
  /** Present if administrators can also change the option while the server runs. */
  readonly setting?: SettingOptions<Value>;
}

/**
 * How an option is changed at run time. Changes apply immediately; the `s3` settings apply only to backups. Flags and environment
 * variables take precedence.
 */
export interface SettingOptions<Value> {
  /** The value is stored encrypted and never shown. */
  readonly secret?: true;
  /** The value is a URL that is secret because of its password, and is shown without it. */
  readonly passwordInUrl?: true;
  /** The value is JSON; each `{"secret": "..."}` in it is stored encrypted and never shown. */
  readonly encryptsSecrets?: true;
  /** The value has several lines. */
  readonly long?: true;
  /** Parses the setting, if its format differs from the flag's. */
  readonly parse?: (text: string) => Value;
  /** Another option whose flag or variable also takes precedence over this setting. */
  readonly overriddenBy?: string;
}

function option<Value, Default>(spec: OptionSpec<Value, Default>): OptionSpec<Value, Default> {
  return spec;
}

/** Parses thumbnail sizes into `WxH` strings. */
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

/** Parses `NAME=value` pairs. A comma followed by another name ends a value. */
function parseVariables(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split(/,(?=[A-Za-z_][A-Za-z0-9_]*=)/).map((part) => {
      const [, name, value = ""] = part.match(/^([A-Za-z_][A-Za-z0-9_]*)=([^]*)$/) ?? [];
      if (name === undefined) throw new OptionValueError("expected NAME=value");
      return [name, value];
    }),
  );
}

/** Parses the base URL of a collector, to which paths are appended. */
function parseCollectorUrl(text: string): string {
  const url = parseWebUrl(text);
  if (!/[?#]/.test(url)) return url;
  // Without the URL, whose query may be secret.
  throw new OptionValueError("expected a URL without a query, such as http://127.0.0.1:4318");
}

/** Parses `name=value` pairs with URL-encoded values, as in the variable `OTEL_EXPORTER_OTLP_HEADERS`. */
function parseHeaders(text: string): Readonly<Record<string, string>> {
  const parts = text.split(",").map((part) => part.trim()).filter((part) => part !== "");
  return Object.fromEntries(parts.map((part) => {
    const [, name, value = ""] = part.match(/^([!#$%&'*+.^_`|~\w-]+)\s*=\s*(.*)$/) ?? [];
    try {
      const decoded = decodeURIComponent(value);
      if (name !== undefined && /^[\x20-\x7e]+$/.test(decoded)) return [name.toLowerCase(), decoded];
    } catch {
      // Reported below.
    }
    // Without the value, which may be secret.
    throw new OptionValueError("expected headers such as authorization=Bearer%20TOKEN");
  }));
}

/** Parses a number from 0 to 1. */
function parseRatio(text: string): number {
  const ratio = Number(text);
  if (/^\d*\.?\d+$/.test(text.trim()) && ratio <= 1) return ratio;
  throw new OptionValueError(`expected a number from 0 to 1, received "${text}"`);
}

function parseSignals(text: string): readonly TelemetrySignal[] {
  const names = new Set(text.split(",").map((name) => name.trim()));
  const chosen = telemetrySignals.filter((signal) => names.delete(signal));
  if (names.size === 0 && chosen.length > 0) return chosen;
  throw new OptionValueError(`expected a list such as ${telemetrySignals.join(",")}, received "${text}"`);
}

/** Parses table names. Whether they exist is checked against the database later. */
function parseTables(text: string): readonly string[] {
  const names = text.split(",").map((name) => name.trim()).filter((name) => name !== "");
  if (names.length === 0) throw new OptionValueError(`expected table names, received "${text}"`);
  return names;
}

/** Parses host names; `*.example.com` matches all names below it. */
function parseHostNames(text: string): readonly string[] {
  return text.split(",").map((name) => name.trim()).filter((name) => name !== "").map((name) => {
    const [, wildcard = "", plain = ""] = /^(\*\.)?([^\s*:/?#@\\[\]]+)$/.exec(name) ?? [];
    const host = plain === "" ? undefined : URL.parse(`http://${plain}/`)?.hostname;
    if (host === undefined) {
      throw new OptionValueError(
        `expected host names without scheme and port, such as app.example.com, received "${name}"`,
      );
    }
    return `${wildcard}${host.replace(/\.$/, "")}`;
  });
}

/** Parses page origins such as `https://app.example.com`; `none` is an empty list. */
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

/** Parses rate limit overrides: `mailsPerAddress=10/2` allows a burst of ten, then two a minute. */
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

/** Parses the interval of scheduled backups, in milliseconds. */
const parseBackupEvery = parseDurationWithin({
  least: opsLimits.backupEveryMsMin,
  most: opsLimits.backupEveryMsMax,
});

/** Parses the timeout of queries or mutations, in milliseconds. */
const parseTimeout = parseDurationWithin({
  least: functionLimits.timeoutMsMin,
  most: functionLimits.timeoutMsMax,
});

/** Parses the number of scheduled backups to keep. */
function parseBackupKeep(text: string): number {
  const count = /^\d{1,9}$/.test(text.trim()) ? Number(text) : 0;
  if (count < 1 || count > opsLimits.backupsKeptMax) {
    throw new OptionValueError(`expected a number from 1 to ${opsLimits.backupsKeptMax}, received "${text}"`);
  }
  return count;
}

/** Parses the retention of the execution log, in milliseconds; `null` turns the log off. */
function parseLogKeep(text: string): number | null {
  if (text.trim() === "off") return null;
  const keepMs = parseDuration(text);
  const { keepMsMin, keepMsMax } = logLimits;
  if (keepMs < keepMsMin || keepMs > keepMsMax) {
    const bounds = `${shownDuration(keepMsMin)} to ${shownDuration(keepMsMax)}`;
    throw new OptionValueError(`expected off, or a duration from ${bounds}, received "${text}"`);
  }
  return keepMs;
}

/** Parses the number of runs to print first. */
function parseLast(text: string): number {
  const count = /^\d{1,4}$/.test(text.trim()) ? Number(text) : 0;
  if (count < 1 || count > logLimits.pageRunsMax) {
    throw new OptionValueError(`expected a number from 1 to ${logLimits.pageRunsMax}, received "${text}"`);
  }
  return count;
}

/** Parses the maximum size of the execution log, in bytes. */
function parseLogSize(text: string): number {
  const bytes = parseBytes(text);
  if (bytes < logLimits.bytesMin) {
    throw new OptionValueError(`expected at least ${logLimits.bytesMin / 1024 ** 2}MiB, received "${text}"`);
  }
  return bytes;
}

/** Parses the memory budget, in bytes. */
function parseMemory(text: string): number {
  const bytes = parseBytes(text);
  if (bytes < MEMORY_BYTES_MIN) {
    throw new OptionValueError(`expected at least ${MEMORY_BYTES_MIN / 1024 ** 2}MiB, received "${text}"`);
  }
  return bytes;
}

/** Parses the maximum size of the pending journal, in bytes. */
function parseMaxPending(text: string): number {
  const bytes = parseBytes(text);
  const least = replicationLimits.maxPendingBytesMin;
  if (bytes < least) {
    throw new OptionValueError(`expected a size of at least ${least} bytes, received "${text}"`);
  }
  return bytes;
}

function parseCluster(text: string): PostgresAddress {
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
  /** IPv6 addresses have no brackets. */
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

/** Parses an ISO 8601 time with its UTC offset into milliseconds since the epoch. */
function parseTime(text: string): number {
  const iso = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/.test(text.trim());
  const time = iso ? Date.parse(text.trim()) : NaN;
  if (Number.isNaN(time)) {
    throw new OptionValueError(`expected a time such as 2030-01-02T14:02:00Z, received "${text}"`);
  }
  return time;
}

/** Parses the `ts` of a commit. */
function parseTs(text: string): number {
  const ts = /^\d{1,15}$/.test(text.trim()) ? Number(text) : -1;
  if (ts < 0) throw new OptionValueError(`expected a commit ts, received "${text}"`);
  return ts;
}

/** Parses the log retention as a setting. The log can only be turned off at the start. */
function parseLogKeepSetting(text: string): number | null {
  if (text.trim() !== "off") return parseLogKeep(text);
  throw new OptionValueError("the log can only be turned off when the server starts, with --log-keep off");
}

/** The flag names a file of providers and issuers; the setting holds its content. */
function parseAuthConfigFile(text: string): AuthConfigSource {
  return { kind: "file", path: parsePath(text) };
}

/** Checks only that the content is a JSON object; the auth package validates the rest. */
function parseAuthConfigText(text: string): AuthConfigSource {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { kind: "text", text };
  } catch {
    // Reported below.
  }
  throw new OptionValueError('expected JSON such as {"providers": {...}, "issuers": [...]}');
}

/** Returns a parser that validates a mail template of one kind. */
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

/** Returns the option for the mail template of one kind. */
function mailText(
  kind: MailKind,
  { flag, env, sent, values = "{{link}}, {{code}} and other placeholders" }:
    & Pick<OptionSpec, "flag" | "env">
    & {
      readonly sent: string;
      readonly values?: string;
    },
): OptionSpec<string, null> {
  return option({
    flag,
    placeholder: "text",
    env,
    parse: parseMailText(kind),
    default: null,
    defaultText: "built in, or from --mail-templates",
    description: `Mail sent ${sent}: "Subject: ...", an empty line, and the body with ${values}`,
    commands: ["serve"],
    setting: { long: true, overriddenBy: "mailTemplates" },
  });
}

/** Where backups are written: a bucket or a folder. */
export type BackupTarget =
  | { readonly kind: "bucket"; readonly bucket: string; readonly prefix: string }
  | { readonly kind: "folder"; readonly path: string };

export function parseBackupTarget(text: string): BackupTarget {
  if (text.trim().startsWith("s3:")) return { kind: "bucket", ...parseBucket(text) };
  return { kind: "folder", path: parsePath(text) };
}

/** The source of a restore to a point in time: a replica, or a cluster's log. */
export type RestoreSource = BackupTarget | { readonly kind: "postgres"; readonly address: PostgresAddress };

function parseRestoreSource(text: string): RestoreSource {
  if (/^postgres(?:ql)?:/.test(text.trim())) return { kind: "postgres", address: parseCluster(text.trim()) };
  // Show only the scheme: the rest may contain a password.
  const [, scheme] = /^(?!s3:)([a-z][a-z0-9+.-]*):\/\//i.exec(text.trim()) ?? [];
  if (scheme !== undefined) {
    throw new OptionValueError(
      `expected a folder, s3:// or postgres://, received ${scheme}://`,
    );
  }
  return parseBackupTarget(text);
}

/** The default port. If it is in use, the server takes the next free port above it. */
export const DEFAULT_PORT = 3210;

/** The smallest memory budget a server can start with. */
const MEMORY_BYTES_MIN = 128 * 1024 ** 2;

export const options = {
  memory: option({
    flag: "--memory",
    placeholder: "size",
    env: "SYNCLINE_MEMORY",
    parse: parseMemory,
    default: null,
    defaultText: "the memory of the machine or its control group",
    description:
      "Memory budget of the server, such as 512MiB (at least 128MiB): bounds heaps, caches, readers, concurrent sign-ins " +
      "and client buffers",
    commands: ["serve"],
  }),
  workers: option({
    flag: "--workers",
    placeholder: "count",
    env: "SYNCLINE_WORKERS",
    parse: parseWorkers,
    default: 1,
    defaultText: "1",
    description: "Number of processes that share the port and serve sockets, queries and static files",
    commands: ["serve"],
  }),
  host: option({
    flag: "--host",
    placeholder: "address",
    env: "SYNCLINE_HOST",
    parse: parseHost,
    default: "127.0.0.1",
    defaultText: "127.0.0.1",
    description: "Address to listen on; 0.0.0.0 accepts connections from other machines",
    commands: ["serve"],
  }),
  port: option({
    flag: "--port",
    placeholder: "number",
    env: "SYNCLINE_PORT",
    parse: parsePort,
    default: null,
    defaultText: `${DEFAULT_PORT}, or the next free port`,
    description: "Port to listen on; 0 selects any free port",
    commands: ["serve"],
  }),
  data: option({
    flag: "--data",
    placeholder: "folder",
    env: "SYNCLINE_DATA",
    parse: parsePath,
    default: "./data",
    defaultText: "./data",
    description: "Data folder: the database and all other stored data; created if missing",
    commands: dataFolderCommands,
  }),
  functions: option({
    flag: "--functions",
    placeholder: "folder",
    env: "SYNCLINE_FUNCTIONS",
    parse: parsePath,
    default: null,
    defaultText: "the deployed version, or ./functions",
    description: "Folder with the app's queries, mutations and actions",
    commands: ["serve", "import", "deploy"],
  }),
  demo: option({
    flag: "--demo",
    placeholder: null,
    env: "SYNCLINE_DEMO",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Serve the bundled chat example if there is no app",
    commands: ["serve"],
  }),
  static: option({
    flag: "--static",
    placeholder: "folder",
    env: "SYNCLINE_STATIC",
    parse: parsePath,
    default: null,
    defaultText: "none",
    description: "Folder with the app's static frontend; deploy keeps the served one without it",
    commands: ["serve", "deploy"],
  }),
  noStatic: option({
    flag: "--no-static",
    attribute: "static",
    placeholder: null,
    env: "SYNCLINE_NO_STATIC",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Remove the deployed frontend from the server",
    commands: ["deploy"],
  }),
  dev: option({
    flag: "--dev",
    placeholder: null,
    env: "SYNCLINE_DEV",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description:
      "Development mode: reload edited functions, send real error messages and log lines to clients",
    commands: ["serve"],
  }),
  takeover: option({
    flag: "--takeover",
    placeholder: null,
    env: "SYNCLINE_TAKEOVER",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Take over from the server that runs on this data folder, without downtime",
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
      "With --dev: frontend server, such as Vite, that receives all requests the app does not handle",
    commands: ["serve"],
  }),
  skipTypeCheck: option({
    flag: "--skip-type-check",
    placeholder: null,
    env: "SYNCLINE_SKIP_TYPE_CHECK",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Do not type-check the functions (serve: with --dev)",
    commands: ["serve", "deploy"],
  }),
  queryTimeout: option({
    flag: "--query-timeout",
    placeholder: "duration",
    env: "SYNCLINE_QUERY_TIMEOUT",
    parse: parseTimeout,
    default: functionLimits.queryTimeoutMs,
    defaultText: `${functionLimits.queryTimeoutMs / 1000}s`,
    description: "Maximum run time of a query; a longer one fails",
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
      "Maximum run time of a mutation; a longer one is rolled back. Other mutations wait while one runs",
    commands: ["serve"],
  }),
  actionNet: option({
    flag: "--action-net",
    placeholder: "hosts",
    env: "SYNCLINE_ACTION_NET",
    parse: parseNetList,
    default: null,
    defaultText: "any host",
    description: "Hosts that actions may connect to, separated by commas",
    commands: ["serve"],
  }),
  envFile: option({
    flag: "--env-file",
    placeholder: "file",
    env: "SYNCLINE_ENV_FILE",
    parse: parsePath,
    default: null,
    defaultText: "none",
    description: "File with NAME=value lines, available to actions as ctx.env",
    commands: ["serve", "deploy"],
  }),
  publicUrl: option({
    flag: "--public-url",
    placeholder: "url",
    env: "SYNCLINE_PUBLIC_URL",
    parse: parsePublicUrl,
    default: null,
    defaultText: "none: file URLs are relative",
    description: "URL of this server for browsers; the base of links and file URLs",
    commands: ["serve", "service", "openapi"],
  }),
  trustedProxy: option({
    flag: "--trusted-proxy",
    placeholder: "ranges",
    env: "SYNCLINE_TRUSTED_PROXY",
    parse: parseCheckedList((range) => new ClientAddresses([range])),
    default: [],
    defaultText: "none",
    description: "Addresses or CIDR ranges of reverse proxies whose X-Forwarded-For is trusted; repeatable",
    commands: ["serve"],
    repeatable: true,
  }),
  allowHost: option({
    flag: "--allow-host",
    placeholder: "names",
    env: "SYNCLINE_ALLOW_HOST",
    parse: parseHostNames,
    default: [],
    defaultText: "localhost, IP addresses and the host of --public-url",
    description:
      "Additional host names accepted in requests, such as app.example.com or *.example.com; repeatable",
    commands: ["serve"],
    repeatable: true,
  }),
  allowOrigin: option({
    flag: "--allow-origin",
    placeholder: "origins",
    env: "SYNCLINE_ALLOW_ORIGIN",
    parse: parseOrigins,
    default: null,
    defaultText: "any origin",
    description: "Page origins that may use the API in addition to the server's own, or none; repeatable",
    commands: ["serve"],
    repeatable: true,
  }),
  publicOpenapi: option({
    flag: "--public-openapi",
    placeholder: null,
    env: "SYNCLINE_PUBLIC_OPENAPI",
    parse: parseSwitch,
    default: false,
    defaultText: "off; on with --dev",
    description: "Let everyone read GET /api/openapi.json; without it, only administrators can",
    commands: ["serve"],
  }),
  authRedirectUrl: option({
    flag: "--auth-redirect-url",
    placeholder: "url",
    env: "SYNCLINE_AUTH_REDIRECT_URL",
    parse: parseCheckedList(parseEntry),
    default: [],
    defaultText: "the server's own origin",
    description:
      "App URL that mail links and sign-in redirects may use, including paths below it; repeatable, the first is the default",
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
    description: "Require users to verify their email address before they can sign in",
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
    description: "Turn off sign-up",
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
    description: "Turn off sign-in by magic link",
    commands: ["serve"],
    setting: {},
  }),
  disableTotp: option({
    flag: "--disable-totp",
    placeholder: null,
    env: "SYNCLINE_DISABLE_TOTP",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Do not let users set up authenticator apps; existing ones are still required",
    commands: ["serve"],
    setting: {},
  }),
  disablePasskeys: option({
    flag: "--disable-passkeys",
    placeholder: null,
    env: "SYNCLINE_DISABLE_PASSKEYS",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Do not let users add passkeys; existing ones, and those of administrators, still sign in",
    commands: ["serve"],
    setting: {},
  }),
  anonymousSignIn: option({
    flag: "--anonymous-sign-in",
    placeholder: null,
    env: "SYNCLINE_ANONYMOUS_SIGN_IN",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Let clients sign in without an account",
    commands: ["serve"],
    setting: {},
  }),
  anonymousUserTtl: option({
    flag: "--anonymous-user-ttl",
    placeholder: "duration",
    env: "SYNCLINE_ANONYMOUS_USER_TTL",
    parse: parseDuration,
    default: authLimits.anonymousUserMs,
    defaultText: "30d",
    description: "How long anonymous users without a session are kept",
    commands: ["serve"],
    setting: {},
  }),
  disableDeviceMail: option({
    flag: "--disable-device-mail",
    placeholder: null,
    env: "SYNCLINE_DISABLE_DEVICE_MAIL",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Do not mail users and administrators about sign-ins from new devices",
    commands: ["serve"],
    setting: {},
  }),
  userKeys: option({
    flag: "--user-keys",
    placeholder: "pattern",
    env: "SYNCLINE_USER_KEYS",
    parse: parseCheckedList(checkKeyPattern),
    default: [],
    defaultText: "none",
    description:
      "Functions that API keys of users may call, such as tasks:*; repeatable, without it users create no keys",
    commands: ["serve"],
    repeatable: true,
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
    defaultText: "none: no mail is sent; with --dev it is printed",
    description: "Mail server, such as smtp://user:password@host:587 or smtps://…",
    commands: ["serve"],
    setting: { secret: true, passwordInUrl: true },
  }),
  mailFrom: option({
    flag: "--mail-from",
    placeholder: "address",
    env: "SYNCLINE_MAIL_FROM",
    parse: parseText,
    default: null,
    defaultText: "none",
    description: "Sender address of emails, such as App <no-reply@example.com>",
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
    description: "JSON file with sign-in providers and trusted token issuers",
    commands: ["serve"],
    setting: { parse: parseAuthConfigText, encryptsSecrets: true, long: true },
  }),
  mailVerify: mailText("verify", {
    flag: "--mail-verify",
    env: "SYNCLINE_MAIL_VERIFY",
    sent: "to verify an address",
  }),
  mailReset: mailText("reset", {
    flag: "--mail-reset",
    env: "SYNCLINE_MAIL_RESET",
    sent: "to reset a password",
  }),
  mailMagic: mailText("magic", {
    flag: "--mail-magic",
    env: "SYNCLINE_MAIL_MAGIC",
    sent: "to sign in",
  }),
  mailChange: mailText("change", {
    flag: "--mail-change",
    env: "SYNCLINE_MAIL_CHANGE",
    sent: "to confirm a new address",
  }),
  mailDevice: mailText("device", {
    flag: "--mail-device",
    env: "SYNCLINE_MAIL_DEVICE",
    sent: "after a sign-in from a new device",
    values: "{{device}}, {{time}} and other placeholders",
  }),
  mailTemplates: option({
    flag: "--mail-templates",
    placeholder: "folder",
    env: "SYNCLINE_MAIL_TEMPLATES",
    parse: parsePath,
    default: null,
    defaultText: "built in",
    description:
      "Folder with mail templates: verify, reset, magic, change and device, each as .txt and .html",
    commands: ["serve"],
    setting: {},
  }),
  rateLimits: option({
    flag: "--rate-limits",
    placeholder: "limits",
    env: "SYNCLINE_RATE_LIMITS",
    parse: parseRateLimits,
    default: {},
    defaultText: "see /_/docs/limits#rate-limits",
    description: "Rate limits of the auth endpoints, as name=burst/perMinute separated by commas; repeatable",
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
    defaultText: "the host name of the public URL",
    description: "App name shown in emails",
    commands: ["serve"],
    setting: {},
  }),
  environmentName: option({
    flag: "--environment-name",
    placeholder: "name",
    env: "SYNCLINE_ENVIRONMENT_NAME",
    parse: parseText,
    default: null,
    defaultText: "none",
    description: "Name of this environment, shown in the dashboard's sidebar, such as Production",
    commands: ["serve"],
    setting: {},
  }),
  environmentColor: option({
    flag: "--environment-color",
    placeholder: "color",
    env: "SYNCLINE_ENVIRONMENT_COLOR",
    parse: parseChoice(["gray", "blue", "green", "yellow", "red"]),
    default: "gray",
    defaultText: "gray",
    description: "Color of that name: gray, blue, green, yellow or red",
    commands: ["serve"],
    setting: {},
  }),
  alertMail: option({
    flag: "--alert-mail",
    placeholder: "address",
    env: "SYNCLINE_ALERT_MAIL",
    parse: parseMailAddresses,
    default: [],
    defaultText: "none",
    description: "Email address that receives alerts; repeatable",
    commands: ["serve"],
    repeatable: true,
    setting: {},
  }),
  alertWebhook: option({
    flag: "--alert-webhook",
    placeholder: "url",
    env: "SYNCLINE_ALERT_WEBHOOK",
    parse: parseWebhooks,
    default: [],
    defaultText: "none",
    description:
      "URL that receives alerts as JSON, or as a message of Slack or Discord with slack:url or discord:url; repeatable",
    commands: ["serve"],
    repeatable: true,
    setting: { secret: true },
  }),
  alertQuietHours: option({
    flag: "--alert-quiet-hours",
    placeholder: "times",
    env: "SYNCLINE_ALERT_QUIET_HOURS",
    parse: parseQuietHours,
    default: null,
    defaultText: "none",
    description: "Times at which alerts wait, such as 22:00-07:00 Europe/Berlin; UTC without a time zone",
    commands: ["serve"],
    setting: {},
  }),
  alertWhen: option({
    flag: "--alert-when",
    placeholder: "thresholds",
    env: "SYNCLINE_ALERT_WHEN",
    parse: parseThresholds,
    default: {},
    defaultText: "error-rate=1%,latency=5s,backup-age=2d,lag=1m,disk-free=10%",
    description: "Thresholds of issues, as name=value separated by commas; repeatable",
    commands: ["serve"],
    repeatable: true,
    setting: {},
  }),
  storage: option({
    flag: "--storage",
    placeholder: "location",
    env: "SYNCLINE_STORAGE",
    parse: parseBucket,
    default: null,
    defaultText: "storage/ in the data folder",
    description: "Location of uploaded files, as s3://bucket/prefix",
    commands: ["serve", "doctor"],
  }),
  s3Endpoint: option({
    flag: "--s3-endpoint",
    placeholder: "url",
    env: "SYNCLINE_S3_ENDPOINT",
    parse: parseServiceUrl,
    default: null,
    defaultText: "AWS",
    description: "URL of an S3-compatible service",
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
    description: "Access key ID for the bucket",
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
    description:
      "Secret access key; prefer the environment variable, other users of the machine can see flags",
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
    description: "Maximum size of an uploaded file",
    commands: ["serve"],
  }),
  storagePrivate: option({
    flag: "--storage-private",
    placeholder: null,
    env: "SYNCLINE_STORAGE_PRIVATE",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Require signed URLs for reading files",
    commands: ["serve"],
  }),
  storageKeepDeleted: option({
    flag: "--storage-keep-deleted",
    placeholder: "duration",
    env: "SYNCLINE_STORAGE_KEEP_DELETED",
    parse: parseDuration,
    default: 0,
    defaultText: "not kept",
    description: "How long to keep the contents of deleted files, for restores to an earlier time",
    commands: ["serve"],
  }),
  thumbSizes: option({
    flag: "--thumb-sizes",
    placeholder: "sizes",
    env: "SYNCLINE_THUMB_SIZES",
    parse: parseThumbSizes,
    default: null,
    defaultText: "any up to 1024x1024",
    description: "Allowed thumbnail sizes, such as 100x100,400; repeatable",
    commands: ["serve"],
    repeatable: true,
  }),
  backupEvery: option({
    flag: "--backup-every",
    placeholder: "duration",
    env: "SYNCLINE_BACKUP_EVERY",
    parse: parseBackupEvery,
    default: null,
    defaultText: "no scheduled backups",
    description: "Interval of scheduled backups, at least 1s",
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
    description: "Number of scheduled backups to keep; older ones are deleted, manual backups never are",
    commands: ["serve"],
    setting: {},
  }),
  backupTo: option({
    flag: "--backup-to",
    placeholder: "location",
    env: "SYNCLINE_BACKUP_TO",
    parse: parseBackupTarget,
    default: null,
    defaultText: "backups/ in the data folder",
    description: "Target of scheduled backups: a folder, or s3://bucket/prefix",
    commands: ["serve"],
    setting: {},
  }),
  replicateTo: option({
    flag: "--replicate-to",
    placeholder: "location",
    env: "SYNCLINE_REPLICATE_TO",
    parse: parseBackupTarget,
    default: null,
    defaultText: "no replication",
    description: "Replication target for all commits: a folder, or s3://bucket/prefix",
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
      "Maximum delay before a commit is shipped, up to 1h; the target is not contacted while nothing changes",
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
    description: "Interval of replica snapshots, 1s to 30d; a restore starts from one",
    commands: ["serve"],
  }),
  replicateKeep: option({
    flag: "--replicate-keep",
    placeholder: "duration",
    env: "SYNCLINE_REPLICATE_KEEP",
    parse: parseDuration,
    default: replicationLimits.keepMs,
    defaultText: "7d",
    description: "How far back the replica can be restored; contents of deleted files are kept equally long",
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
      "Maximum size of commits waiting for an unreachable target; beyond it they are dropped and a snapshot is taken",
    commands: ["serve"],
  }),
  followed: option({
    flag: "--follow",
    attribute: "follow",
    placeholder: "replica",
    env: "SYNCLINE_FOLLOW_REPLICA",
    parse: parseBackupTarget,
    default: null,
    defaultText: "the server accepts writes",
    description: "Serve another server's replica, read-only: a folder, or s3://bucket/prefix",
    commands: ["serve"],
  }),
  promote: option({
    flag: "--promote",
    placeholder: null,
    env: "SYNCLINE_PROMOTE",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "With --follow: catch up with the replica once, then accept writes",
    commands: ["serve"],
  }),
  cluster: option({
    flag: "--cluster",
    placeholder: "url",
    env: "SYNCLINE_CLUSTER",
    parse: parseCluster,
    default: null,
    defaultText: "a single server",
    description:
      "Join the cluster on this PostgreSQL, postgres://user:password@host/database; prefer the environment variable",
    commands: ["serve"],
  }),
  clusterSecret: option({
    flag: "--cluster-secret",
    placeholder: "text",
    env: "SYNCLINE_CLUSTER_SECRET",
    parse: parseClusterSecret,
    default: null,
    defaultText: "none",
    description: "Secret shared by all servers of the cluster; prefer the environment variable",
    commands: ["serve"],
  }),
  clusterSnapshots: option({
    flag: "--cluster-snapshots",
    placeholder: "location",
    env: "SYNCLINE_CLUSTER_SNAPSHOTS",
    parse: parseBackupTarget,
    default: null,
    defaultText: "none",
    description:
      "Location of the snapshots that new cluster servers start from: s3://bucket/prefix, or a shared folder",
    commands: ["serve", "restore"],
  }),
  clusterAddress: option({
    flag: "--cluster-address",
    placeholder: "host:port",
    env: "SYNCLINE_CLUSTER_ADDRESS",
    parse: parseHostAndPort,
    default: null,
    defaultText: "the address used to reach the database, any free port",
    description: "Address at which the other cluster servers reach this one",
    commands: ["serve"],
  }),
  clusterListen: option({
    flag: "--cluster-listen",
    placeholder: "host:port",
    env: "SYNCLINE_CLUSTER_LISTEN",
    parse: parseHostAndPort,
    default: null,
    defaultText: "the value of --cluster-address",
    description: "Address to listen on for the other cluster servers, if it differs from --cluster-address",
    commands: ["serve"],
  }),
  heartbeatUrl: option({
    flag: "--heartbeat-url",
    placeholder: "url",
    env: "SYNCLINE_HEARTBEAT_URL",
    parse: parseWebUrl,
    default: null,
    defaultText: "none",
    description: "URL requested after commits reach the replica, at most once a minute",
    commands: ["serve"],
  }),
  from: option({
    flag: "--from",
    placeholder: "replica",
    env: "SYNCLINE_FROM",
    parse: parseRestoreSource,
    default: null,
    defaultText: "restore an archive",
    description: "Replica to restore from: a folder, s3://bucket/prefix, or the PostgreSQL URL of a cluster",
    commands: ["restore"],
  }),
  list: option({
    flag: "--list",
    placeholder: null,
    env: "SYNCLINE_LIST",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "List the restorable points of the replica instead",
    commands: ["restore"],
  }),
  toTime: option({
    flag: "--to-time",
    placeholder: "time",
    env: "SYNCLINE_TO_TIME",
    parse: parseTime,
    default: null,
    defaultText: "the newest state",
    description: "Restore the state at this ISO 8601 time with UTC offset, such as 2030-01-02T14:02:00Z",
    commands: ["restore"],
  }),
  toTs: option({
    flag: "--to-ts",
    placeholder: "number",
    env: "SYNCLINE_TO_TS",
    parse: parseTs,
    default: null,
    defaultText: "the newest state",
    description: "Restore the state after the commit with this ts",
    commands: ["restore"],
  }),
  generation: option({
    flag: "--generation",
    placeholder: "name",
    env: "SYNCLINE_GENERATION",
    parse: parseText,
    default: null,
    defaultText: "the newest that contains the point",
    description: "Generation of the replica to restore from",
    commands: ["restore"],
  }),
  message: option({
    flag: "--message",
    placeholder: "text",
    env: "SYNCLINE_MESSAGE",
    parse: parseText,
    default: null,
    defaultText: "none",
    description: "A line about the deploy or rollback, shown in the history of versions",
    commands: ["deploy", "rollback"],
  }),
  dryRun: option({
    flag: "--dry-run",
    placeholder: null,
    env: "SYNCLINE_DRY_RUN",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Show what would be done without changing anything",
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
    defaultText: "none: required to deploy; mcp uses the server of the data folder",
    description: "URL of the server, such as https://app.example.com",
    commands: ["deploy", "rollback", "mcp"],
  }),
  adminToken: option({
    flag: "--admin-token",
    placeholder: "token",
    env: "SYNCLINE_ADMIN_TOKEN",
    parse: parseBearerToken,
    default: null,
    defaultText: "none; required with --url, prefer the environment variable",
    description: "Access token of an administrator, or an API key",
    commands: ["mcp"],
  }),
  allowWrites: option({
    flag: "--allow-writes",
    placeholder: null,
    env: "SYNCLINE_ALLOW_WRITES",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Let the agent run mutations and actions",
    commands: ["mcp"],
  }),
  deployKey: option({
    flag: "--deploy-key",
    placeholder: "key",
    env: "SYNCLINE_DEPLOY_KEY",
    parse: parseBearerToken,
    default: null,
    defaultText: "none: required; prefer the environment variable",
    description: "Deploy key, as printed by deploy-key create",
    commands: ["deploy", "rollback"],
  }),
  env: option({
    flag: "--env",
    placeholder: "NAME=value",
    env: "SYNCLINE_ENV",
    parse: parseVariables,
    default: {},
    defaultText: "none",
    description: "Variable to store on the server for ctx.env; repeatable",
    commands: ["deploy"],
    repeatable: true,
  }),
  table: option({
    flag: "--table",
    placeholder: "name",
    env: "SYNCLINE_TABLE",
    parse: parseText,
    default: null,
    defaultText: "none: required",
    description: "Table to migrate",
    commands: ["migrate"],
  }),
  fromStart: option({
    flag: "--from-start",
    placeholder: null,
    env: "SYNCLINE_FROM_START",
    former: { flag: "--anew", env: "SYNCLINE_ANEW" },
    parse: parseSwitch,
    default: false,
    defaultText: "off: an interrupted migration is continued",
    description: "Restart from the first document",
    commands: ["migrate"],
  }),
  restartExitCode: option({
    flag: "--restart-exit-code",
    placeholder: "number",
    env: "SYNCLINE_RESTART_EXIT_CODE",
    parse: parseExitCode,
    default: null,
    defaultText: "none: administrators cannot restart it",
    description: "Exit code used when an administrator restarts the server",
    commands: ["serve"],
  }),
  logKeep: option({
    flag: "--log-keep",
    placeholder: "duration",
    env: "SYNCLINE_LOG_KEEP",
    parse: parseLogKeep,
    default: logLimits.keepMsDefault,
    defaultText: "7d",
    description: "Retention of the execution log; off turns it off",
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
    description: "Maximum size of the execution log; the oldest runs are deleted first",
    commands: ["serve"],
    setting: {},
  }),
  logArgs: option({
    flag: "--log-args",
    placeholder: null,
    env: "SYNCLINE_LOG_ARGS",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Log the arguments of functions, without those that their schemas redact",
    commands: ["serve"],
    setting: {},
  }),
  tail: option({
    flag: "--tail",
    placeholder: null,
    env: "SYNCLINE_TAIL",
    former: { flag: "--follow", env: "SYNCLINE_FOLLOW" },
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Keep printing new runs until interrupted",
    commands: ["logs"],
  }),
  last: option({
    flag: "--last",
    placeholder: "number",
    env: "SYNCLINE_LAST",
    parse: parseLast,
    default: logLimits.pageRunsDefault,
    defaultText: String(logLimits.pageRunsDefault),
    description: `Number of newest runs to print first, up to ${logLimits.pageRunsMax}`,
    commands: ["logs"],
  }),
  only: option({
    flag: "--only",
    placeholder: "paths",
    env: "SYNCLINE_ONLY",
    parse: parseText,
    default: null,
    defaultText: "all",
    description: "Functions to show, separated by commas; orders:* matches a prefix",
    commands: ["logs"],
  }),
  outcome: option({
    flag: "--outcome",
    placeholder: "outcomes",
    env: "SYNCLINE_OUTCOME",
    parse: parseText,
    default: null,
    defaultText: "all",
    description: "Outcomes to show: success, user_error, error, timeout, refused",
    commands: ["logs"],
  }),
  level: option({
    flag: "--level",
    placeholder: "level",
    env: "SYNCLINE_LEVEL",
    parse: parseText,
    default: null,
    defaultText: "all",
    description: "Show runs with a log line of at least this level: DEBUG, INFO, WARN or ERROR",
    commands: ["logs"],
  }),
  text: option({
    flag: "--text",
    placeholder: "text",
    env: "SYNCLINE_TEXT",
    parse: parseText,
    default: null,
    defaultText: "all",
    description: "Show runs whose error or log lines contain this text",
    commands: ["logs"],
  }),
  request: option({
    flag: "--request",
    placeholder: "id",
    env: "SYNCLINE_REQUEST",
    parse: parseText,
    default: null,
    defaultText: "all",
    description: "Show the runs of one request, with the functions that they call",
    commands: ["logs"],
  }),
  codeVersion: option({
    flag: "--code-version",
    placeholder: "hash",
    env: "SYNCLINE_CODE_VERSION",
    parse: parseText,
    default: null,
    defaultText: "all",
    description: "Show runs that this version of the code served; the first characters of the hash suffice",
    commands: ["logs"],
  }),
  system: option({
    flag: "--system",
    placeholder: null,
    env: "SYNCLINE_SYSTEM",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Show the runs of the service's own functions too",
    commands: ["logs"],
  }),
  metrics: option({
    flag: "--metrics",
    placeholder: null,
    env: "SYNCLINE_METRICS",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Serve Prometheus metrics at GET /metrics",
    commands: ["serve"],
  }),
  metricsToken: option({
    flag: "--metrics-token",
    placeholder: "token",
    env: "SYNCLINE_METRICS_TOKEN",
    parse: parseBearerToken,
    default: null,
    defaultText: "none: anyone who can reach the server",
    description: "Bearer token required for /metrics; only valid with --metrics",
    commands: ["serve"],
  }),
  otlpEndpoint: option({
    flag: "--otlp-endpoint",
    placeholder: "url",
    env: "SYNCLINE_OTLP_ENDPOINT",
    parse: parseCollectorUrl,
    default: null,
    defaultText: "none",
    description:
      "OpenTelemetry collector that receives traces, metrics and logs, such as http://127.0.0.1:4318",
    commands: ["serve"],
  }),
  otlpHeaders: option({
    flag: "--otlp-headers",
    placeholder: "name=value",
    env: "SYNCLINE_OTLP_HEADERS",
    parse: parseHeaders,
    default: {},
    defaultText: "none",
    description:
      "HTTP headers for the collector, with URL-encoded values; prefer the environment variable; repeatable",
    commands: ["serve"],
    repeatable: true,
  }),
  otlpSample: option({
    flag: "--otlp-sample",
    placeholder: "ratio",
    env: "SYNCLINE_OTLP_SAMPLE",
    parse: parseRatio,
    default: 1,
    defaultText: "1",
    description:
      "Share of traces to export, from 0 to 1; a traceparent header of the client takes precedence",
    commands: ["serve"],
  }),
  otlpSignals: option({
    flag: "--otlp-signals",
    placeholder: "list",
    env: "SYNCLINE_OTLP_SIGNALS",
    parse: parseSignals,
    default: telemetrySignals,
    defaultText: telemetrySignals.join(","),
    description: "Signals to export to the collector, separated by commas",
    commands: ["serve"],
  }),
  format: option({
    flag: "--format",
    placeholder: tableFormats.join("|"),
    env: "SYNCLINE_FORMAT",
    parse: parseChoice(tableFormats),
    default: null,
    defaultText: "from the file extension; jsonl for exports",
    description:
      "File format: one JSON object a line, or CSV with a header row; in a folder, the files to import",
    commands: ["import", "export"],
  }),
  tables: option({
    flag: "--tables",
    placeholder: "names",
    env: "SYNCLINE_TABLES",
    parse: parseTables,
    default: null,
    defaultText: "all tables of the app",
    description:
      "Tables to export, separated by commas; _users and _scheduled_functions must be named explicitly",
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
    description:
      "How to treat existing documents: fail, replace them, or delete all documents of the table first",
    commands: ["import"],
  }),
  out: option({
    flag: "--out",
    placeholder: "path",
    env: "SYNCLINE_OUT",
    parse: parsePath,
    default: null,
    defaultText: "a new name with the current time",
    description: "Output: a new or empty folder for an export, a file for a backup",
    commands: ["export", "backup"],
  }),
  withAux: option({
    flag: "--with-aux",
    placeholder: null,
    env: "SYNCLINE_WITH_AUX",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Include the execution log in the backup",
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
      "Include the uploaded files of the data folder in the backup or export; files in a bucket are never included",
    commands: ["backup", "export"],
  }),
  includeSecret: option({
    flag: "--include-secret",
    placeholder: null,
    env: "SYNCLINE_INCLUDE_SECRET",
    parse: parseSwitch,
    default: false,
    defaultText: "off",
    description: "Include the secret key in the backup; anyone who has it can sign in as any user",
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
    defaultText: "off: a password is generated and printed",
    description: "Read the password from the first line of standard input",
    commands: ["users create", "users set-password", "admin create", "admin reset-password"],
  }),
} as const;

export type OptionName = keyof typeof options;

type ValueOf<Spec> = Spec extends OptionSpec<infer Value, infer Default> ? Value | Widened<Default> : never;
type Widened<Value> = Value extends boolean ? boolean : Value;

/** The parsed option values of a command. Only the command's own options are present. */
export type OptionValues = { readonly [Name in OptionName]: ValueOf<(typeof options)[Name]> };

/** The options of `serve`: all others are absent at run time. */
export type ServeOptions = Omit<
  OptionValues,
  | "noStatic"
  | "tail"
  | "last"
  | "only"
  | "outcome"
  | "level"
  | "text"
  | "request"
  | "codeVersion"
  | "system"
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
  | "fromStart"
>;

/** The raw text of each option set explicitly, and its origin. */
export type ExplicitValues = ReadonlyMap<OptionName, { readonly by: "flag" | "env"; readonly text: string }>;

/** Returns the options of a command in table order. */
export function optionsOf(command: CommandName): [OptionName, OptionSpec][] {
  return (Object.entries(options) as [OptionName, OptionSpec][])
    .filter(([, spec]) => spec.commands.includes(command));
}

/** Returns the environment variables of all options, including the deprecated names. */
export function optionVariables(): string[] {
  return Object.values(options as Record<string, OptionSpec>)
    .flatMap(({ env, former }) => former === undefined ? [env] : [env, former.env]);
}
