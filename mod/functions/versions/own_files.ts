/** Lists the functions folder: files of a version, and links between them. */
import { extname } from "node:path";
import { slashed } from "../packages/slashed_paths.ts";
import { packageLimits, versionLimits } from "../limits.ts";
import { isInside } from "../packages/package_roots.ts";

export interface OwnFiles {
  /** Absolute paths of regular files. */
  readonly files: readonly string[];
  /** Real paths of links within the folder, by absolute path. */
  readonly links: ReadonlyMap<string, string>;
}

/** Thrown if something in the functions folder cannot be part of a version. The message names it. */
export class BadSourceError extends Error {
  override readonly name = "BadSourceError";
}

const SOURCE = /^\.(?:[cm]?[jt]s|[jt]sx|json|wasm)$/;

/**
 * Lists a functions folder (a real path). Skips names that begin with a dot, packages, the data folder, and large files other
 * than source code.
 * @throws BadSourceError for a link to a target outside the folder.
 */
export function ownFiles(functionsDir: string, dataDir: string): OwnFiles {
  const files: string[] = [];
  const links = new Map<string, string>();
  const walk = (folder: string, depth: number) => {
    if (depth > versionLimits.depthMax) {
      throw new BadSourceError(`${folder} is nested deeper than ${versionLimits.depthMax} folders`);
    }
    for (const entry of Deno.readDirSync(folder)) {
      if (entry.name.startsWith(".") || entry.name === "node_modules") continue;
      const path = `${folder}/${entry.name}`;
      if (entry.isSymlink) {
        const target = linkTarget(path, functionsDir);
        if (target !== null) links.set(path, target);
      } else if (entry.isDirectory) {
        if (!isInside(path, [dataDir])) walk(path, depth + 1);
      } else if (entry.isFile && isTaken(path)) {
        files.push(path);
      }
      if (files.length + links.size > packageLimits.filesMax) {
        throw new BadSourceError(`${functionsDir} has more than ${packageLimits.filesMax} files`);
      }
    }
  };
  walk(functionsDir, 0);
  return { files, links };
}

/** Returns the target of a link, or `null` if it is broken. */
function linkTarget(path: string, functionsDir: string): string | null {
  let target;
  try {
    target = slashed(Deno.realPathSync(path));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.FilesystemLoop) return null;
    throw error;
  }
  if (isInside(target, [functionsDir])) return target;
  throw new BadSourceError(
    `${path} is a link to ${target}, which is outside the functions folder: put a copy in its place, or install it as a package`,
  );
}

function isTaken(path: string): boolean {
  return SOURCE.test(extname(path)) || Deno.statSync(path).size <= versionLimits.assetBytesMax;
}
