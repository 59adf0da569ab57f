/** The deployed versions of a server, and the one it serves. Stored in a file, because it is read before any isolate runs. */
import { join } from "node:path";
import { removeIfThere, type StagedFile, stageDurably, syncFolder } from "../../kit/durable_files.ts";
import { isHash } from "./manifest.ts";

const FILE = "deployed.json";
const FORMAT = 1;

/** A version, and when it began to be served. */
export interface ServedVersion {
  readonly hash: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly by: string;
  /** A line by the author of the deploy or rollback. */
  readonly message?: string;
}

/** The last deploy or rollback to a version, with the message of its first deploy. */
export interface Deployment extends ServedVersion {
  /** Fingerprints of its functions, by path. */
  readonly functions: Readonly<Record<string, string>>;
}

export interface Deployed {
  /** Hash of the version served by a server without a functions folder. */
  readonly current: string;
  /** Newest first. */
  readonly deployments: readonly Deployment[];
  /** Newest first, bounded. Missing in files of earlier releases. */
  readonly history?: readonly ServedVersion[];
}

/** Returns the served versions, newest first. */
export function historyOf({ deployments, history }: Deployed): readonly ServedVersion[] {
  return history ?? deployments.map(({ functions: _, ...served }) => served);
}

/** Returns `null` if nothing was deployed. Throws if the file is damaged. */
export async function readDeployed(dataDir: string): Promise<Deployed | null> {
  const path = join(dataDir, FILE);
  let text;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  const { format, current, deployments, history } = parsed(text, path);
  if (format !== FORMAT || !isHash(current) || !Array.isArray(deployments)) throw unreadable(path);
  return { current, deployments, ...Array.isArray(history) && { history } };
}

/** Writes the file atomically and durably. `null` removes it. */
export async function writeDeployed(dataDir: string, deployed: Deployed | null): Promise<void> {
  if (deployed === null) {
    await removeIfThere(join(dataDir, FILE));
    return await syncFolder(dataDir);
  }
  await using staged = await stageDeployed(dataDir, deployed);
  await staged.commit();
}

/** Written and synced, but not renamed yet. */
export function stageDeployed(dataDir: string, deployed: Deployed): Promise<StagedFile> {
  return stageDurably(join(dataDir, FILE), JSON.stringify({ format: FORMAT, ...deployed }));
}

/** Removes files left by killed processes. No deploy may be running. */
export async function removeStaged(dataDir: string): Promise<void> {
  for await (const { name } of Deno.readDir(dataDir)) {
    if (name.startsWith(`.${FILE}.`)) await removeIfThere(join(dataDir, name));
  }
}

function parsed(text: string, path: string): Deployed & { readonly format: unknown } {
  try {
    return JSON.parse(text);
  } catch {
    throw unreadable(path);
  }
}

function unreadable(path: string): Error {
  return new Error(
    `${path} cannot be read: name the functions with --functions, or remove it and deploy again`,
  );
}
