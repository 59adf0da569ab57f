/** Checks the types of an app before a deploy, with the app's own TypeScript and configuration. */
import { dirname, join, relative, resolve } from "node:path";
import { StartError } from "../../config/start_error.ts";
import { statIfThere } from "../../kit/durable_files.ts";

const COMPILER = "node_modules/typescript/bin/tsc";
const ERROR = /^(.+?)\(\d+,\d+\): error TS\d+: /;
const ERRORS_SHOWN = 20;

/**
 * Throws a `StartError` with the type errors in the functions. Does nothing for an app without TypeScript.
 *
 * @param warn Called if the compiler fails before it checks types, for example because of its configuration.
 */
export async function checkAppTypes(functionsDir: string, warn: (message: string) => void): Promise<void> {
  const config = await configOf(functionsDir);
  const compiler = config === null ? null : await findUpward(dirname(config), COMPILER);
  if (config === null || compiler === null) return;
  const root = dirname(config);
  // Set by the npm package, whose first line is the path of Node. Started through sh, the only program that may run.
  const [node] = (Deno.env.get("SYNCLINE_PROGRAM") ?? "node").split("\n");
  const flags = ["--noEmit", "--incremental", "false", "--pretty", "false", "--project", config];
  const { success, stdout, stderr } = await new Deno.Command("sh", {
    args: ["-c", 'exec "$0" "$@"', node ?? "node", compiler, ...flags],
    cwd: root,
    stdin: "null",
  }).output();
  if (success) return;
  const output = new TextDecoder().decode(stdout);
  const errors = errorsBelow(functionsDir, { root, output });
  if (errors.length === 0) {
    const lines = `${output}\n${new TextDecoder().decode(stderr)}`.split("\n");
    if (lines.some(isSourceError)) return;
    const first = lines.find((line) => line.trim() !== "")?.trim() ?? "no output";
    return warn(`The types of the functions were not checked, because tsc failed: ${first}`);
  }
  const more = errors.length > ERRORS_SHOWN ? [`and ${errors.length - ERRORS_SHOWN} more`] : [];
  throw new StartError(
    `The functions have type errors, so nothing was deployed. Fix them, or pass --skip-type-check\n${
      [...errors.slice(0, ERRORS_SHOWN), ...more].join("\n")
    }`,
  );
}

/** Whether a line is an error of a source file, not of the configuration. */
function isSourceError(line: string): boolean {
  const file = ERROR.exec(line)?.[1];
  return file !== undefined && !file.endsWith(".json");
}

/** Errors of files in a folder, with their indented lines. */
function errorsBelow(
  folder: string,
  { root, output }: { readonly root: string; readonly output: string },
): string[] {
  const errors: string[] = [];
  let isBelow = false;
  for (const line of output.trimEnd().split("\n")) {
    const file = ERROR.exec(line)?.[1];
    if (file !== undefined) isBelow = !relative(folder, resolve(root, file)).startsWith("..");
    if (!isBelow) continue;
    if (file !== undefined) errors.push(line);
    else errors.push(`${errors.pop() ?? ""}\n${line}`);
  }
  return errors;
}

/** Returns the configuration in the functions folder or beside it; another one may be of other programs. */
async function configOf(functionsDir: string): Promise<string | null> {
  for (const folder of [functionsDir, dirname(functionsDir)]) {
    const path = join(folder, "tsconfig.json");
    if (await statIfThere(path) !== null) return path;
  }
  return null;
}

/** Returns the path of a file in a folder or its nearest parent that has one. */
async function findUpward(from: string, name: string): Promise<string | null> {
  for (let folder = from;; folder = dirname(folder)) {
    const path = join(folder, name);
    if (await statIfThere(path) !== null) return path;
    if (folder === dirname(folder)) return null;
  }
}
