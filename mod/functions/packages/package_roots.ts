/** Which folders the npm packages of an app lie in: what isolates may read of them while they load. */
import { dirname } from "node:path";
import { isAtOrBelow, slashed } from "./slashed_paths.ts";
import { packageLimits } from "../limits.ts";

/** Where an app is, and what it must not read. Absolute and real. */
export interface AppPlace {
  readonly functionsDir: string;
  readonly dataDir: string;
}

/**
 * The `node_modules` folders of the functions folder and of every folder above it, as Node finds them, and the folders of
 * the same project that they link to (workspaces). Links that lead anywhere else are left out, and so is whatever holds
 * the data. Real paths, the nearest first.
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

/** Whether a path is one of the folders or below one. */
export function isInside(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => isAtOrBelow(folder, path));
}

function overlaps(one: string, other: string): boolean {
  return isInside(one, [other]) || isInside(other, [one]);
}

/** Real folders behind the links in a folder of packages and in its scopes. */
function linkTargets(packages: string): string[] {
  const targets: string[] = [];
  const look = (folder: string, scopes: boolean) => {
    for (const entry of Deno.readDirSync(folder)) {
      const path = `${folder}/${entry.name}`;
      if (entry.isSymlink) {
        const target = realFolder(path);
        if (target !== null) targets.push(target);
        if (targets.length > packageLimits.linksMax) {
          throw new Error(`${packages} has more than ${packageLimits.linksMax} links`);
        }
      } else if (scopes && entry.isDirectory && entry.name.startsWith("@")) {
        look(path, false);
      }
    }
  };
  try {
    look(packages, true);
  } catch (error) {
    // A folder above that is closed to this user is no concern of the app's.
    if (!(error instanceof Deno.errors.PermissionDenied)) throw error;
  }
  return targets;
}

const absent = [
  Deno.errors.NotFound,
  Deno.errors.NotADirectory,
  Deno.errors.PermissionDenied,
  Deno.errors.FilesystemLoop,
  // Of a project's folders a server may read those it knew of when it started.
  Deno.errors.NotCapable,
];

/** The real path of a folder; `null` when there is none, or none that this user may enter. */
function realFolder(path: string): string | null {
  try {
    const real = slashed(Deno.realPathSync(path));
    return Deno.statSync(real).isDirectory ? real : null;
  } catch (error) {
    if (absent.some((kind) => error instanceof kind)) return null;
    throw error;
  }
}
