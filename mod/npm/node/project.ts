/** Finds the project of a command: the nearest parent folder that has functions or depends on the package. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { PlainError } from "./plain_error.ts";

export interface Manifest {
  readonly name?: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** Returns the folder of the project, or `null`. */
export function findProject(from: string): string | null {
  for (let folder = from;; folder = dirname(folder)) {
    if (isProject(folder)) return folder;
    if (folder === dirname(folder)) return null;
  }
}

function isProject(folder: string): boolean {
  if (isFolder(join(folder, "functions"))) return true;
  if (!existsSync(join(folder, "package.json"))) return false;
  const { dependencies, devDependencies } = readManifest(folder);
  return "syncline" in { ...dependencies, ...devDependencies };
}

/** Reads the `package.json` of a folder. Throws a `PlainError` if that fails. */
export function readManifest(folder: string): Manifest {
  const path = join(folder, "package.json");
  try {
    // Some Windows editors write a byte order mark, which npm accepts as well.
    return JSON.parse(readFileSync(path, "utf8").replace(/^\uFEFF/, "")) as Manifest;
  } catch (error) {
    throw new PlainError(`Cannot read ${path}: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
}

export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
