/** Finds the modules of an app: the files of its functions folder, and the path each gives its functions. */
import { functionLimits } from "../limits.ts";

/** A module to import. */
export interface ModuleFile {
  /** Absolute path of the file. */
  readonly file: string;
  /** Path below the functions folder. */
  readonly name: string;
  /** What the paths of its functions begin with: the name without extension; empty for `index` in the root. */
  readonly modulePath: string;
}

// Taken before lockdown closes it to app code.
const { readDirSync } = Deno;

/** Files an app may have, and folders it may nest: more is a mistake, such as a folder with the whole disk in it. */
const MODULES_MAX = 10_000;
const DEPTH_MAX = 32;

const extensions = [".tsx", ".ts", ".mjs", ".js"];

/** The modules below a folder in the order of their names. Throws when two files give their functions the same path. */
export function findModules(functionsDir: string): ModuleFile[] {
  const found: ModuleFile[] = [];
  walk(functionsDir, "", found);
  found.sort((a, b) => a.name < b.name ? -1 : 1);
  const taken = new Map<string, string>();
  for (const { modulePath, name } of found) {
    const other = taken.get(modulePath);
    if (other !== undefined) {
      throw new Error(`${other} and ${name} would give their functions the same paths: rename one of them`);
    }
    taken.set(modulePath, name);
  }
  return found;
}

/** Symbolic links are not followed: they may lead out of the folder, or in a circle. */
function walk(root: string, folder: string, found: ModuleFile[]): void {
  if (folder.split("/").length > DEPTH_MAX) {
    throw new Error(`${folder} is nested deeper than ${DEPTH_MAX} folders`);
  }
  for (const entry of readDirSync(folder === "" ? root : `${root}/${folder}`)) {
    if (/^[._]/.test(entry.name) || entry.name === "node_modules") continue;
    const name = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory) walk(root, name, found);
    if (!entry.isFile || /\.(test|d)\.[a-z]+$|_test\.[a-z]+$/.test(entry.name)) continue;
    const extension = extensions.find((candidate) => name.endsWith(candidate));
    if (extension === undefined) continue;
    const path = name.slice(0, -extension.length);
    if (path.includes(":") || path.length > functionLimits.udfPathCharsMax) {
      throw new Error(`${name} cannot be a module: its name is too long or has a colon`);
    }
    found.push({ file: `${root}/${name}`, name, modulePath: path === "index" ? "" : path });
    if (found.length > MODULES_MAX) {
      throw new Error(`The functions folder has more than ${MODULES_MAX} modules`);
    }
  }
}
