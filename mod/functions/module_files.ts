/** Finds the modules of an app and their path prefixes. */
import { functionLimits } from "../limits.ts";

export interface ModuleFile {
  /** Absolute path. */
  readonly file: string;
  /** Path relative to the functions folder. */
  readonly name: string;
  /** Path prefix of its functions: the name without extension, empty for `index` in the root. */
  readonly modulePath: string;
}

// Captured before lockdown.
const { readDirSync } = Deno;

/** Limits of files and nesting. More indicates a mistake, such as a link to the whole disk. */
const MODULES_MAX = 10_000;
const DEPTH_MAX = 32;

const extensions = [".tsx", ".ts", ".mjs", ".js"];

/** Returns the modules below a folder, sorted by name. Throws if two of them have the same path. */
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

/** Symbolic links are not followed: they may leave the folder or form cycles. */
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
