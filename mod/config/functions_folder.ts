/** Finds the functions folder of an app. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { fileErrorReason, StartError } from "./start_error.ts";

/** The bundled example, served with `--demo` if there is no app. */
export const EXAMPLE_DIR = fileURLToPath(new URL("../../examples/chat", import.meta.url));
/** Served until the first deploy if there is no app: a page without functions. */
export const EMPTY_APP_DIR = fileURLToPath(new URL("empty_app", import.meta.url));

export interface FunctionsFolder {
  /** Absolute. */
  readonly functionsDir: string;
  /** Whether it is the bundled example. */
  readonly example: boolean;
  /** Whether it is the empty app. */
  readonly empty: boolean;
}

/**
 * Resolves `--functions` (`null` if absent). `demo`: whether the example is used where there is no app. Throws a `StartError`
 * if the folder does not exist.
 */
export async function resolveFunctions(
  named: string | null,
  { demo }: { readonly demo: boolean },
): Promise<FunctionsFolder> {
  const given = named === null ? null : resolve(named);
  if (given !== null && !await isFolder(given)) {
    throw new StartError(
      await isFile(given)
        ? `--functions needs a folder, but "${given}" is a file`
        : `Cannot find the functions folder "${given}"`,
      { code: "app_not_loaded" },
    );
  }
  const functionsDir = given ?? (await isFolder("functions") ? "functions" : null);
  if (functionsDir !== null) return { functionsDir: resolve(functionsDir), example: false, empty: false };
  return demo
    ? { functionsDir: resolve(EXAMPLE_DIR, "functions"), example: true, empty: false }
    : { functionsDir: EMPTY_APP_DIR, example: false, empty: true };
}

async function isFolder(path: string): Promise<boolean> {
  return (await statOf(path))?.isDirectory ?? false;
}

async function isFile(path: string): Promise<boolean> {
  return (await statOf(path))?.isFile ?? false;
}

/** Returns `null` if the path does not exist. */
async function statOf(path: string): Promise<Deno.FileInfo | null> {
  try {
    return await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return null;
    throw new StartError(`Cannot read the folder "${path}": ${fileErrorReason(error)}`, { cause: error });
  }
}
