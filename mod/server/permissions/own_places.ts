/** The files that a server needs, as its configuration says: what it may read and write once it has started. */
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { LocationConfig, ServeConfig } from "../../config/config.ts";
import { programRoot } from "../../kit/processes/program_root.ts";

/** Paths are absolute: as they were named, and as they are without links. */
export interface OwnPlaces {
  readonly read: readonly string[];
  readonly write: readonly string[];
}

/** What of the program's own files is read while it runs: modules that are loaded late, pages, what clients import. */
export const PROGRAM = [
  ...["mod", "dashboard/public", "examples/chat", "docs"],
  ...["deno.json", "deno.lock", "deno.serve.json", "deno.serve.lock"],
];
/** Sockets of a data folder whose path is longer are made where the system keeps temporary files. */
const SHORT_PATH_BYTES_MAX = 60;

export async function ownPlaces(config: ServeConfig): Promise<OwnPlaces> {
  const { dataDir, functionsDir, staticDir, accounts, backups, replication, follow, cluster } = config;
  const write = [
    dataDir,
    ...folderOf(backups?.to),
    ...folderOf(replication?.to),
    ...folderOf(follow?.from),
    ...folderOf(cluster?.snapshots),
    ...cluster?.place.host.startsWith("/") ? [cluster.place.host] : [],
    ...await socketPlaces(dataDir),
  ];
  const read = [
    ...PROGRAM.map((path) => fileURLToPath(new URL(path, programRoot))),
    ...await codePlaces(functionsDir, dataDir),
    ...[staticDir, accounts.templatesDir].filter((path) => path !== null),
    ...[cluster?.place.tls?.rootFile ?? null].filter((path) => path !== null),
    ...accounts.authConfig?.kind === "file" ? await authConfigPlaces(accounts.authConfig.path) : [],
  ];
  const written = await withReal(write);
  return { read: [...new Set([...written, ...await withReal(read)])], write: written };
}

function folderOf(place: LocationConfig | undefined): string[] {
  return place?.kind === "folder" ? [place.path] : [];
}

/** Where sockets of a data folder are made when they are not made in it: either name of the folder may be used for them. */
export async function socketPlaces(dataDir: string): Promise<string[]> {
  const bytes = (await withReal([dataDir])).map((path) => new TextEncoder().encode(path).length);
  return Math.max(...bytes) > SHORT_PATH_BYTES_MAX ? [Deno.env.get("TMPDIR") || "/tmp"] : [];
}

/**
 * The functions and the packages they use: in the folder they lie in, which is the app's, and in those above it; where links
 * among these lead within the project is known from what is there now.
 */
async function codePlaces(functionsDir: string, dataDir: string): Promise<string[]> {
  const places = [functionsDir];
  const { packageRoots } = await import("../../functions/packages/mod.ts");
  for (const start of await withReal([functionsDir])) {
    places.push(...packageRoots({ functionsDir: start, dataDir }));
    for (let folder = start;; folder = dirname(folder)) {
      places.push(join(folder, "node_modules"));
      if (folder === dirname(folder)) break;
    }
  }
  return places;
}

/** The file, what lies beside it, and the files of secrets it names. */
async function authConfigPlaces(path: string): Promise<string[]> {
  const folder = dirname(path);
  const places = [path, folder];
  try {
    JSON.parse(await Deno.readTextFile(path), (key, value) => {
      if (key === "file" && typeof value === "string") places.push(resolve(folder, value));
      return value;
    });
  } catch {
    // Whoever uses it says what is wrong with it.
  }
  return places;
}

/** These paths, and those they lead to; of one that is not there yet, as far as it is. */
async function withReal(paths: readonly string[]): Promise<string[]> {
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
