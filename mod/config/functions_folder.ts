/** Where the functions of an app are found. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { reasonOf, StartError } from "./start_error.ts";

/** The app that is served where there is none. */
export const EXAMPLE_DIR = fileURLToPath(new URL("../../examples/chat", import.meta.url));

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
