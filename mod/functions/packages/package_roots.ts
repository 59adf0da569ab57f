/** Finds the folders that contain the npm packages of an app, and tests which files are in them. */
import { dirname } from "node:path";
import { packageLimits } from "../limits.ts";

/** Returns a path relative to a folder that contains it: `src/a.ts`. The folder may be the root. */
export function nameBelow(folder: string, path: string): string {
  return path.slice(folder === "/" ? 1 : folder.length + 1);
}

/** Whether a path is one of the folders or inside one. */
export function isInside(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(folder === "/" ? folder : `${folder}/`));
}

/** The location of an app, and the folder that must not be part of it. Absolute and real. */
export interface AppPlace {
  readonly functionsDir: string;
  readonly dataDir: string;
}

/**
 * Returns the `node_modules` folders of the functions folder and of every folder above it, as Node finds them, and the folders
 * of the same project that they link to (workspaces), nearest first. Leaves out links to other folders, and folders that
 * contain the data. Returns real paths.
 */
export function packageRoots({ functionsDir, dataDir }: AppPlace): string[] {
  const roots: string[] = [];
  for (let folder = functionsDir;; folder = dirname(folder)) {
    const packages = realFolder(`${folder.endsWith("/") ? folder : `${folder}/`}node_modules`);
    if (packages !== null && !overlaps(packages, dataDir)) {
      if (!isInside(packages, roots)) roots.push(packages);
      for (const target of linkTargets(packages)) {
        if (isInside(target, [folder]) && !overlaps(target, dataDir) && !isInside(target, roots)) {
          roots.push(target);
        }
      }
    }
    if (folder === dirname(folder)) return roots;
  }
}

function overlaps(one: string, other: string): boolean {
  return isInside(one, [other]) || isInside(other, [one]);
}

/** Returns the real folders that links in a folder of packages and in its scopes lead to. */
function linkTargets(packages: string): string[] {
  const targets: string[] = [];
  const collect = (folder: string, scopes: boolean) => {
    for (const entry of Deno.readDirSync(folder)) {
      const path = `${folder}/${entry.name}`;
      if (entry.isSymlink) {
        const target = realFolder(path);
        if (target !== null) targets.push(target);
        if (targets.length > packageLimits.linksMax) {
          throw new Error(`${packages} has more than ${packageLimits.linksMax} links`);
        }
      } else if (scopes && entry.isDirectory && entry.name.startsWith("@")) {
        collect(path, false);
      }
    }
  };
  try {
    collect(packages, true);
  } catch (error) {
    // A folder above may be closed to this user.
    if (!(error instanceof Deno.errors.PermissionDenied)) throw error;
  }
  return targets;
}

const absent = [
  Deno.errors.NotFound,
  Deno.errors.NotADirectory,
  Deno.errors.PermissionDenied,
  Deno.errors.FilesystemLoop,
  // A server may read the folders that existed when it started.
  Deno.errors.NotCapable,
];

/** Returns the real path of a folder, or `null` if this user cannot enter one. */
function realFolder(path: string): string | null {
  try {
    const real = Deno.realPathSync(path);
    return Deno.statSync(real).isDirectory ? real : null;
  } catch (error) {
    if (absent.some((kind) => error instanceof kind)) return null;
    throw error;
  }
}
