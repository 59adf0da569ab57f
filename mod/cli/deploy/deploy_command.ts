/** The commands `deploy` and `rollback`: what a server serves is changed from elsewhere, with a deploy key. */
import { helpFields } from "../../explained.ts";
import { resolve } from "node:path";
import { resolveFunctions } from "../../config/functions_folder.ts";
import { readEnvFile } from "../../config/env_file.ts";
import type { OptionValues } from "../../config/options.ts";
import { StartError } from "../../config/start_error.ts";
import { updateGeneratedModule } from "../../functions/generated_module.ts";
import { VersionError } from "../../functions/versions/mod.ts";
import { stderrLog } from "../../kit/log.ts";
import { type Bundle, BundleError, type DeployResult, readBundle } from "../../ops/deploy/mod.ts";
import { type CommandSpec, exitCodes } from "../command_line.ts";
import { DeployTarget, UnfitError } from "./deploy_target.ts";
import { changesText } from "./deploy_text.ts";

export const deployCommands: readonly CommandSpec[] = [
  {
    name: "deploy",
    description: "Serve these functions on a running server, with the front end named by --static",
    run: (options) => told(() => deploy(options)),
  },
  {
    name: "rollback",
    description: "Have a running server serve a version that it served before",
    argument: {
      name: "hash",
      description: "The version; the one before the present one when left out",
      optional: true,
    },
    run: (options, hash) => told(() => rollBack(options, hash === "" ? null : hash)),
  },
];

type DeployOptions = Pick<
  OptionValues,
  "url" | "deployKey" | "functions" | "static" | "dryRun" | "env" | "envFile"
>;

async function deploy(options: DeployOptions): Promise<string> {
  const { dryRun, env, envFile } = options;
  const target = new DeployTarget(options);
  const [bundle, { pinned, versions }] = await Promise.all([bundleOf(options), target.versions()]);
  if (pinned) {
    throw new StartError(
      "The server serves the folder it was started with: start it without --functions and --dev",
      { code: "deploy" },
    );
  }
  const file = envFile === null ? null : await readEnvFile(envFile);
  for (const hint of file?.warnings ?? []) stderrLog({ debug: false })("warn", hint);
  const variables = { ...file?.values, ...env };
  const { hash } = bundle.manifest;
  if (versions.some((version) => version.hash === hash && version.current)) {
    return `${await setVariables(target, { variables, dryRun })}Nothing has changed: ${hash} is served.`;
  }
  // A version that the server has is not sent again.
  const kept = versions.some((version) => version.hash === hash);
  const serve = (dryRun: boolean) =>
    kept ? target.rollBack(hash, { dryRun }) : target.deploy(bundle.packed(), { dryRun });
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
  return error instanceof UnfitError
    ? new UnfitError(message, error.changes)
    : new StartError(message, { cause: error });
}

async function rollBack(options: Pick<OptionValues, "url" | "deployKey" | "dryRun">, hash: string | null) {
  const { dryRun } = options;
  const result = await new DeployTarget(options).rollBack(hash, { dryRun });
  const changes = changesText(result.changes);
  return dryRun
    ? `${changes}\nNothing was changed: this was a dry run.`
    : `${changes}\n${servedText(result)}`;
}

function servedText({ hash, previous, swapped }: DeployResult): string {
  if (!swapped) return `Nothing has changed: ${hash} is served.`;
  return `Serving ${hash}${previous === null ? "" : ` in place of ${previous}`}.`;
}

async function bundleOf(options: DeployOptions): Promise<Bundle> {
  const { functionsDir, example } = await resolveFunctions(options.functions);
  if (example) {
    throw new StartError('There is no folder "functions" here: name it with --functions', {
      code: "app_not_loaded",
    });
  }
  const staticDir = options.static === null ? null : resolve(options.static);
  await updateGeneratedModule(functionsDir, stderrLog({ debug: false }));
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

/** Prints what a command says, and turns refusals into an exit code. */
async function told(command: () => Promise<string>): Promise<number> {
  const log = stderrLog({ debug: false });
  const print = async (text: string) => {
    const bytes = new TextEncoder().encode(`${text}\n`);
    for (let sent = 0; sent < bytes.length;) sent += await Deno.stdout.write(bytes.subarray(sent));
  };
  try {
    await print(await command());
    return exitCodes.ok;
  } catch (error) {
    const isTold = [StartError, BundleError, VersionError].some((kind) => error instanceof kind);
    if (!isTold || !(error instanceof Error)) throw error;
    if (error instanceof UnfitError && error.changes !== null) await print(changesText(error.changes));
    log("error", error.message, helpFields(error));
    return error instanceof UnfitError ? exitCodes.unfit : exitCodes.failed;
  }
}
