/** The commands `deploy` and `rollback`, which change the version that a server serves. They use a deploy key. */
import { resolve } from "node:path";
import { readEnvFile } from "../../config/env_file.ts";
import { resolveFunctions } from "../../config/functions_folder.ts";
import type { OptionValues } from "../../config/options.ts";
import { StartError } from "../../config/start_error.ts";
import { helpFields } from "../../explained.ts";
import { updateGeneratedModule } from "../../functions/generated_module.ts";
import { VersionError } from "../../functions/versions/mod.ts";
import { statIfThere } from "../../kit/durable_files.ts";
import {
  type Bundle,
  BundleError,
  type DeployChanges,
  type DeployedVersions,
  type DeployResult,
  readBundle,
} from "../../ops/deploy/mod.ts";
import { type CommandSpec, exitCodes } from "../command_line.ts";
import { commandLog } from "../../kit/command_log.ts";
import { checkAppTypes } from "./app_types.ts";
import { changesText, versionsText } from "./deploy_text.ts";

/** Documents do not match the schema of the version to serve. */
class SchemaMismatchError extends StartError {
  readonly changes: DeployChanges | null;

  constructor(message: string, changes: DeployChanges | null) {
    super(message);
    this.changes = changes;
  }
}

/** A request that takes longer has failed; a bundle may take its time. */
const ANSWER_MS = 60_000;
const DEPLOY_MS = 30 * 60_000;

interface ServeOptions {
  readonly dryRun: boolean;
  readonly message: string | null;
}

/** A server that is deployed to, by its address and a deploy key. */
class DeployTarget {
  readonly #url: string;
  readonly #key: string;

  /** Throws a `StartError` that says what is missing. */
  constructor({ url, deployKey }: Pick<OptionValues, "url" | "deployKey">) {
    if (url === null) {
      throw new StartError("Name the server with --url or SYNCLINE_URL, such as https://app.example.com", {
        code: "deploy",
      });
    }
    if (deployKey === null) {
      throw new StartError(
        "Give a deploy key in SYNCLINE_DEPLOY_KEY: syncline deploy-key create <name> makes one on the server",
        { code: "deploy" },
      );
    }
    this.#url = url;
    this.#key = deployKey;
  }

  async versions(): Promise<DeployedVersions> {
    return await this.#ask("GET", "/versions") as never;
  }

  async deploy(
    packed: ReadableStream<Uint8Array>,
    { dryRun, keepFrontend, message }: ServeOptions & { readonly keepFrontend: boolean },
  ): Promise<DeployResult> {
    const query = new URLSearchParams({
      ...{ dryRun: String(dryRun), keepFrontend: String(keepFrontend) },
      ...message !== null && { message },
    });
    return await this.#ask("PUT", `?${query}`, {
      body: packed,
      ms: DEPLOY_MS,
    }) as never;
  }

  async rollBack(
    hash: string | null,
    { dryRun, message }: ServeOptions,
  ): Promise<DeployResult> {
    const body = JSON.stringify({ hash, dryRun, ...message !== null && { message } });
    return await this.#ask("POST", "/rollback", { body, ms: DEPLOY_MS }) as never;
  }

  async setVariables(
    changes: Readonly<Record<string, string>>,
  ): Promise<{ readonly overridden: readonly string[] }> {
    return await this.#ask("PATCH", "/env", { body: JSON.stringify(changes) }) as never;
  }

  async #ask(
    method: string,
    path: string,
    { body, ms = ANSWER_MS }: {
      readonly body?: BodyInit | ReadableStream<Uint8Array>;
      readonly ms?: number;
    } = {},
  ): Promise<unknown> {
    let response;
    let answer;
    try {
      response = await fetch(`${this.#url}/api/admin/functions${path}`, {
        method,
        headers: {
          Authorization: `Bearer ${this.#key}`,
          ...(typeof body === "string" && { "Content-Type": "application/json" }),
        },
        ...(body !== undefined && { body: body as BodyInit }),
        redirect: "error",
        signal: AbortSignal.timeout(ms),
      });
      answer = await response.json();
    } catch (error) {
      if (error instanceof BundleError) throw new StartError(error.message, { cause: error });
      if (response !== undefined) {
        throw new StartError(
          `${this.#url} is not the address of a Syncline server (status ${response.status})`,
          { code: "deploy" },
        );
      }
      throw new StartError(
        `${this.#url} cannot be reached: ${reason(error)}. Nothing is known to have changed`,
        {
          cause: error,
        },
      );
    }
    if (response.ok) return answer;
    const { errorMessage = "", errorData = null } = answer as {
      readonly errorMessage?: string;
      readonly errorData?: { readonly code: string; readonly data: unknown } | null;
    };
    switch (errorData?.code) {
      case "schema_mismatch":
        throw new SchemaMismatchError(errorMessage, errorData.data as DeployChanges | null);
      case "invalid_token":
        throw new StartError(
          `${this.#url} does not know the deploy key: it was revoked, or is another server's`,
          { code: "deploy" },
        );
      case "not_found":
        throw new StartError(
          `${this.#url} is a server that cannot be deployed to: it is older than this command`,
          { code: "deploy" },
        );
      default:
        throw new StartError(errorMessage || `${this.#url} answered with status ${response.status}`);
    }
  }
}

function reason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : "";
  return cause === "" || message.includes(cause) ? message : `${message}: ${cause}`;
}

export const deployCommands: readonly CommandSpec[] = [
  {
    name: "deploy",
    description: "Serve these functions on a running server, with the frontend named by --static",
    run: (options) => reported(() => deploy(options)),
  },
  {
    name: "rollback",
    description: "Serve an earlier version again, and list the versions",
    argument: {
      name: "hash",
      description: "The version, or the start of its hash (default: the one served before)",
      optional: true,
    },
    run: (options, hash) => reported(() => rollBack(options, hash === "" ? null : hash)),
  },
];

type DeployOptions = Pick<
  OptionValues,
  | "url"
  | "deployKey"
  | "functions"
  | "static"
  | "noStatic"
  | "dryRun"
  | "message"
  | "env"
  | "envFile"
  | "skipTypeCheck"
>;

async function deploy(options: DeployOptions): Promise<string> {
  const { dryRun, env, envFile, message } = options;
  const target = new DeployTarget(options);
  const functionsDir = await functionsOf(options);
  const [bundle, { pinned, versions, hasFrontend }] = await Promise.all([
    bundleOf(functionsDir, options),
    target.versions(),
  ]);
  if (pinned) {
    throw new StartError(
      "The server serves the folder it was started with: start it without --functions and --dev",
      { code: "deploy" },
    );
  }
  const file = envFile === null ? null : await readEnvFile(envFile);
  for (const hint of file?.warnings ?? []) commandLog()("warn", hint);
  const variables = { ...file?.values, ...env };
  const { hash } = bundle.manifest;
  const keepFrontend = hasFrontend && options.static === null && !options.noStatic;
  if (versions.some((version) => version.hash === hash && version.current)) {
    return `${await setVariables(target, { variables, dryRun })}Nothing has changed: ${hash} is served.`;
  }
  if (!options.skipTypeCheck) {
    await checkAppTypes(functionsDir, (message) => commandLog()("warn", message));
  }
  // A version that the server has is not sent again. With the served frontend, it is another version.
  const kept = !keepFrontend && versions.some((version) => version.hash === hash);
  const serve = (dryRun: boolean) =>
    kept
      ? target.rollBack(hash, { dryRun, message })
      : target.deploy(bundle.packed(), { dryRun, keepFrontend, message });
  if (dryRun) return `${changesText((await serve(true)).changes)}\nNothing was changed: this was a dry run.`;
  const names = Object.keys(variables);
  // New functions find their variables, and those that are refused change none.
  if (names.length > 0) await serve(true);
  const set = await setVariables(target, { variables, dryRun });
  const result = await serve(false).catch((error) => {
    throw names.length === 0 ? error : withVariables(error, names);
  });
  return `${set}${changesText(result.changes)}\n${servedText(result)}`;
}

/** A failure that says which variables were set before it. */
function withVariables(error: unknown, names: readonly string[]): unknown {
  if (!(error instanceof StartError)) return error;
  const message = `${error.message}. Set in ctx.env before that, and still set: ${names.join(", ")}`;
  return error instanceof SchemaMismatchError
    ? new SchemaMismatchError(message, error.changes)
    : new StartError(message, { cause: error });
}

async function rollBack(
  options: Pick<OptionValues, "url" | "deployKey" | "dryRun" | "message">,
  hash: string | null,
) {
  const { dryRun, message } = options;
  const target = new DeployTarget(options);
  const result = await target.rollBack(hash, { dryRun, message });
  const done = dryRun ? "Nothing was changed: this was a dry run." : servedText(result);
  const { versions } = await target.versions();
  return `${changesText(result.changes)}\n${done}\n${versionsText(versions)}`;
}

function servedText({ hash, previous, swapped }: DeployResult): string {
  if (!swapped) return `Nothing has changed: ${hash} is served.`;
  return `Serving ${hash}${previous === null ? "" : ` in place of ${previous}`}.`;
}

async function functionsOf(options: Pick<DeployOptions, "functions">): Promise<string> {
  const { functionsDir, empty } = await resolveFunctions(options.functions, { demo: false });
  if (empty) {
    throw new StartError('There is no folder "functions" here: name it with --functions', {
      code: "app_not_loaded",
    });
  }
  await updateGeneratedModule(functionsDir, commandLog());
  return functionsDir;
}

async function bundleOf(functionsDir: string, options: Pick<DeployOptions, "static">): Promise<Bundle> {
  const staticDir = options.static === null ? null : resolve(options.static);
  if (staticDir !== null && await statIfThere(staticDir) === null) {
    throw new StartError(
      `There is no folder "${options.static}" (--static): build the frontend first, such as with npm run build`,
      { code: "deploy" },
    );
  }
  try {
    return await readBundle({ functionsDir, staticDir, dataDir: resolve("data") });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartError(`The app cannot be deployed: ${reason}`, { code: "deploy", cause: error });
  }
}

async function setVariables(
  target: DeployTarget,
  { variables, dryRun }: { readonly variables: Readonly<Record<string, string>>; readonly dryRun: boolean },
): Promise<string> {
  const names = Object.keys(variables);
  if (names.length === 0 || dryRun) return "";
  const { overridden } = await target.setVariables(variables);
  const lines = [`Set ${names.join(", ")} in ctx.env.`];
  if (overridden.length > 0) {
    lines.push(
      `The server's own --env-file sets ${overridden.join(", ")} too and takes precedence.`,
    );
  }
  return `${lines.join("\n")}\n`;
}

/** Prints the output of a command, and turns expected errors into exit codes. */
async function reported(command: () => Promise<string>): Promise<number> {
  const log = commandLog();
  const print = async (text: string) => {
    const bytes = new TextEncoder().encode(`${text}\n`);
    for (let sent = 0; sent < bytes.length;) sent += await Deno.stdout.write(bytes.subarray(sent));
  };
  try {
    await print(await command());
    return exitCodes.ok;
  } catch (error) {
    const isExpected = [StartError, BundleError, VersionError].some((kind) => error instanceof kind);
    if (!isExpected || !(error instanceof Error)) throw error;
    if (error instanceof SchemaMismatchError && error.changes !== null) {
      await print(changesText(error.changes));
    }
    log("error", error.message, helpFields(error));
    return error instanceof SchemaMismatchError ? exitCodes.unfit : exitCodes.failed;
  }
}
