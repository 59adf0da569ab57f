/** Files that a server needs to read and write while it runs, according to its configuration. */
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { GENERATED_FILE } from "../../functions/generated_module.ts";
import type { ServeConfig } from "../../config/config.ts";
import type { ObjectLocation } from "../../kit/locations/object_store.ts";
import { programRoot } from "../../kit/processes/program_root.ts";

/** Absolute paths, both as configured and with symbolic links resolved. */
export interface FileAccess {
  readonly read: readonly string[];
  readonly write: readonly string[];
}

/** Files of the program that are read while it runs: modules loaded on demand, pages, client modules. */
export const PROGRAM_FILES = [
  ...["mod", "dashboard/public", "examples/chat", "docs"],
  ...["deno.json", "deno.lock", "deno.serve.json", "deno.serve.lock"],
];
/** Longest path of a data folder that contains its own sockets; others use the folder for temporary files. */
const SHORT_PATH_BYTES_MAX = 60;

export async function requiredFileAccess(config: ServeConfig): Promise<FileAccess> {
  const { dataDir, functionsDir, staticDir, accounts, backups, replication, follow, cluster } = config;
  const write = [
    dataDir,
    ...config.dev ? [join(functionsDir, GENERATED_FILE)] : [],
    ...folderOf(backups?.to),
    ...folderOf(replication?.to),
    ...folderOf(follow?.from),
    ...folderOf(cluster?.snapshots),
    ...cluster?.place.host.startsWith("/") ? [cluster.place.host] : [],
    ...await socketFolders(dataDir),
  ];
  const read = [
    ...PROGRAM_FILES.map((path) => fileURLToPath(new URL(path, programRoot))),
    ...await codeFolders(functionsDir, dataDir),
    ...[staticDir, accounts.templatesDir].filter((path) => path !== null),
    ...[cluster?.place.tls?.rootFile ?? null].filter((path) => path !== null),
    ...accounts.authConfig?.kind === "file" ? await authConfigFiles(accounts.authConfig.path) : [],
  ];
  const written = await withRealPaths(write);
  return { read: [...new Set([...written, ...await withRealPaths(read)])], write: written };
}

function folderOf(place: ObjectLocation | undefined): string[] {
  return place?.kind === "folder" ? [place.path] : [];
}

/** Folders of the sockets of a data folder, if they are outside of it. */
export async function socketFolders(dataDir: string): Promise<string[]> {
  const bytes = (await withRealPaths([dataDir])).map((path) => new TextEncoder().encode(path).length);
  return Math.max(...bytes) > SHORT_PATH_BYTES_MAX ? [Deno.env.get("TMPDIR") || "/tmp"] : [];
}

/**
 * Folders of the functions and their packages: `node_modules` in the functions folder and above, and the targets of symbolic
 * links in it.
 */
async function codeFolders(functionsDir: string, dataDir: string): Promise<string[]> {
  const places = [functionsDir];
  const { packageRoots } = await import("../../functions/packages/mod.ts");
  for (const start of await withRealPaths([functionsDir])) {
    places.push(...packageRoots({ functionsDir: start, dataDir }));
    for (let folder = start;; folder = dirname(folder)) {
      places.push(join(folder, "node_modules"));
      if (folder === dirname(folder)) break;
    }
  }
  return places;
}

/** The file, its folder, and the secret files it names. */
async function authConfigFiles(path: string): Promise<string[]> {
  const folder = dirname(path);
  const places = [path, folder];
  try {
    JSON.parse(await Deno.readTextFile(path), (key, value) => {
      if (key === "file" && typeof value === "string") places.push(resolve(folder, value));
      return value;
    });
  } catch {
    // The code that uses the file reports its errors.
  }
  return places;
}

/** Adds the real paths. For a path that does not exist yet, the existing part is resolved. */
async function withRealPaths(paths: readonly string[]): Promise<string[]> {
  const real = await Promise.all(paths.map(realPath));
  return [...new Set([...paths, ...real])];
}

async function realPath(path: string): Promise<string> {
  try {
    return await Deno.realPath(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(await realPath(parent), basename(path));
  }
}
