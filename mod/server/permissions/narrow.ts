/** Revokes the grant of the whole disk after requesting the paths needed, which become grants of their own. */
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServeConfig } from "../../config/config.ts";
import type { Log } from "../../kit/log.ts";
import { GENERATED_FILE } from "../../functions/generated_module.ts";
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

/** Files that a server needs to read and write while it runs, according to its configuration. */
export async function requiredFileAccess(config: ServeConfig): Promise<FileAccess> {
  const { dataDir, functionsDir, staticDir, accounts, backups, replication, follow, cluster } = config;
  const write = [
    dataDir,
    ...config.dev ? [join(functionsDir, GENERATED_FILE)] : [],
    ...folderOf(backups?.to),
    ...folderOf(replication?.to),
    ...folderOf(follow?.from),
    ...folderOf(cluster?.snapshots),
    ...cluster?.database.host.startsWith("/") ? [cluster.database.host] : [],
    ...await socketFolders(dataDir),
  ];
  const read = [
    ...PROGRAM_FILES.map((path) => fileURLToPath(new URL(path, programRoot))),
    ...await codeFolders(functionsDir, dataDir),
    ...[staticDir, accounts.templatesDir].filter((path) => path !== null),
    ...[cluster?.database.tls?.rootFile ?? null].filter((path) => path !== null),
    ...accounts.authConfig?.kind === "file" ? await authConfigFiles(accounts.authConfig.path) : [],
  ];
  const written = await withRealPaths(write);
  return { read: [...new Set([...written, ...await withRealPaths(read)])], write: written };
}

function folderOf(location: ObjectLocation | undefined): string[] {
  return location?.kind === "folder" ? [location.path] : [];
}

export async function socketFolders(dataDir: string): Promise<string[]> {
  const bytes = (await withRealPaths([dataDir])).map((path) => new TextEncoder().encode(path).length);
  return Math.max(...bytes) > SHORT_PATH_BYTES_MAX ? [Deno.env.get("TMPDIR") || "/tmp"] : [];
}

/** Folders of functions and packages: `node_modules` there and above, the targets of links in it, and `package.json`. */
async function codeFolders(functionsDir: string, dataDir: string): Promise<string[]> {
  const folders = [functionsDir];
  const { packageRoots } = await import("../../functions/packages/mod.ts");
  for (const start of await withRealPaths([functionsDir])) {
    folders.push(...packageRoots({ functionsDir: start, dataDir }));
    for (let folder = start;; folder = dirname(folder)) {
      folders.push(join(folder, "node_modules"), join(folder, "package.json"));
      if (folder === dirname(folder)) break;
    }
  }
  return folders;
}

/** The file, its folder, and the secret files it names. */
async function authConfigFiles(path: string): Promise<string[]> {
  const folder = dirname(path);
  const paths = [path, folder];
  try {
    JSON.parse(await Deno.readTextFile(path), (key, value) => {
      if (key === "file" && typeof value === "string") paths.push(resolve(folder, value));
      return value;
    });
  } catch {
    // The code that uses the file reports its errors.
  }
  return paths;
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

const WHOLE_DISK = "/";

/** Restricts reads and writes to the paths of the configuration. Logs a warning if the permissions are too wide for that. */
export async function narrowPermissions(config: ServeConfig, log: Log): Promise<void> {
  const access = await requiredFileAccess(config);
  const narrowed = await Promise.all([keepOnly("read", access.read), keepOnly("write", access.write)]);
  if (narrowed.includes(false)) {
    log("warn", "The server may read or write all files. Start it with the permission set serve (-P=serve)");
  }
}

/** Returns whether the whole disk is no longer granted. */
async function keepOnly(name: "read" | "write", paths: readonly string[]): Promise<boolean> {
  const { permissions } = Deno;
  for (const path of paths) {
    // Requesting a path that is not granted could prompt the operator.
    const { state } = await permissions.query({ name, path });
    if (state === "granted") await permissions.request({ name, path });
  }
  await permissions.revoke({ name, path: WHOLE_DISK });
  return (await permissions.query({ name, path: WHOLE_DISK })).state !== "granted";
}

/** Returns the machine's network interfaces and revokes that permission. Empty if it is not granted. */
export async function networkInterfaces(): Promise<Deno.NetworkInterfaceInfo[]> {
  try {
    return Deno.networkInterfaces();
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return [];
    throw error;
  } finally {
    await Deno.permissions.revoke({ name: "sys", kind: "networkInterfaces" });
  }
}
