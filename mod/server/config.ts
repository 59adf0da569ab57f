/** From checked options to what a server is started with: folders looked up, files read, defaults chosen. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import type { AccountPolicy, SmtpOptions } from "../auth/mod.ts";
import type { BucketPlace } from "../kit/bucket.ts";
import type { ServeOptions } from "./options.ts";
import { reasonOf, StartError } from "./start_error.ts";

export interface ServeConfig {
  readonly host: string;
  /** `null`: the default port, or the next free one. 0: any free one. */
  readonly port: number | null;
  /** Absolute. */
  readonly dataDir: string;
  /** Absolute. */
  readonly functionsDir: string;
  /** Absolute; `null` without a static frontend. */
  readonly staticDir: string | null;
  /** Whether the bundled example is served because there is no app. */
  readonly example: boolean;
  readonly dev: boolean;
  /** Hosts that actions may reach; `null` for any. */
  readonly actionNet: readonly string[] | null;
  /** What actions see as `ctx.env`. */
  readonly env: Readonly<Record<string, string>>;
  /** Address of the server for browsers, without a slash at its end; `null`: the one it listens on. */
  readonly publicUrl: string | null;
  /** Addresses and CIDR ranges. */
  readonly trustedProxies: readonly string[];
  readonly accounts: AccountsConfig;
  readonly storage: StorageConfig;
  /** With which the process ends when an administrator restarts the server; `null`: nobody can. */
  readonly restartExitCode: number | null;
  /** `null`: there are none. */
  readonly metrics: MetricsConfig | null;
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

/** What the operator decided about accounts. */
export interface AccountsConfig {
  readonly policy: AccountPolicy;
  readonly accessTokenMs: number;
  readonly redirectUrls: readonly string[];
  /** `null`: no mail server. */
  readonly smtp: SmtpOptions | null;
  /** Absolute; `null` for the built-in templates. */
  readonly templatesDir: string | null;
  /** `null`: the host of the public address. */
  readonly appName: string | null;
}

const EXAMPLE_DIR = fileURLToPath(new URL("../../examples/chat", import.meta.url));

/** Where an app's functions are. */
export interface FunctionsFolder {
  /** Absolute. */
  readonly functionsDir: string;
  /** Whether it is the bundled example, because there is no app. */
  readonly example: boolean;
}

/** The functions folder for what `--functions` says; `null` when it was not given. Throws a `StartError`. */
export async function resolveFunctions(given: string | null): Promise<FunctionsFolder> {
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
export async function resolveConfig(options: ServeOptions): Promise<ServeConfig> {
  const { functionsDir, example } = await resolveFunctions(options.functions);
  const staticDir = options.static ?? (example ? resolve(EXAMPLE_DIR, "public") : null);
  return {
    host: options.host,
    port: options.port,
    dataDir: resolve(options.data),
    functionsDir,
    staticDir: staticDir === null ? null : resolve(staticDir),
    example,
    dev: options.dev,
    actionNet: options.actionNet,
    env: options.envFile === null ? {} : await readEnvFile(options.envFile),
    publicUrl: options.publicUrl,
    trustedProxies: options.trustedProxy,
    accounts: accountsConfig(options),
    storage: storageConfig(options),
    restartExitCode: options.restartExitCode,
    metrics: metricsConfig(options),
  };
}

/** A token alone switches nothing on, and an operator who gave one believes that something is guarded by it. */
function metricsConfig({ metrics, metricsToken }: ServeOptions): MetricsConfig | null {
  if (metrics) return { token: metricsToken };
  if (metricsToken === null) return null;
  throw new StartError("There are no metrics to guard: give --metrics with --metrics-token, or neither");
}

function accountsConfig(options: ServeOptions): AccountsConfig {
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
    appName: options.appName,
  };
}

function storageConfig(options: ServeOptions): StorageConfig {
  return {
    s3: options.storage === null ? null : s3Config(options, options.storage),
    uploadBytesMax: options.uploadMaxBytes,
    privateReads: options.storagePrivate,
    keepDeletedMs: options.storageKeepDeleted,
    thumbnailSizes: options.thumbSizes,
  };
}

function s3Config(
  { s3Endpoint, s3Region, s3AccessKeyId, s3SecretAccessKey }: ServeOptions,
  place: { readonly bucket: string; readonly prefix: string },
): BucketPlace {
  if (s3AccessKeyId === null || s3SecretAccessKey === null) {
    throw new StartError(
      "Files in a bucket need its keys: set SYNCLINE_S3_ACCESS_KEY_ID and SYNCLINE_S3_SECRET_ACCESS_KEY",
    );
  }
  return {
    ...place,
    endpoint: s3Endpoint,
    region: s3Region,
    accessKeyId: s3AccessKeyId,
    secretAccessKey: s3SecretAccessKey,
  };
}

async function readEnvFile(path: string): Promise<Record<string, string>> {
  try {
    const values = parseEnv(await Deno.readTextFile(path));
    return Object.fromEntries(
      Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
  } catch (error) {
    throw new StartError(`Cannot read the environment file "${path}": ${reasonOf(error)}`, { cause: error });
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
