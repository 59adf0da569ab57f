/** The versions that were deployed to a server, and the one it serves: a file beside them, because it is read before any isolate runs. */
import { join } from "node:path";
import { removeIfThere, type StagedFile, stageDurably, syncFolder } from "../../kit/durable_files.ts";
import { isHash } from "./manifest.ts";

const FILE = "deployed.json";
const FORMAT = 1;

/** A version that was deployed. */
export interface Deployment {
  readonly hash: string;
  /** When it was deployed last, in milliseconds since 1970. */
  readonly at: number;
  /** Who did it, for people. */
  readonly by: string;
  /** What its functions are, by path: equal texts are equal functions. */
  readonly functions: Readonly<Record<string, string>>;
}

export interface Deployed {
  /** Hash of what a server without a functions folder serves. */
  readonly current: string;
  /** The newest first. */
  readonly deployments: readonly Deployment[];
}

/** `null` when nothing was deployed. Throws when the file is not what was written. */
export async function readDeployed(dataDir: string): Promise<Deployed | null> {
  const path = join(dataDir, FILE);
  let text;
  try {
    text = await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
  const { format, current, deployments } = parsed(text, path);
  if (format !== FORMAT || !isHash(current) || !Array.isArray(deployments)) throw unreadable(path);
  return { current, deployments };
}

/** Brought to disk as a whole or not at all. `null`: nothing was deployed. */
export async function writeDeployed(dataDir: string, deployed: Deployed | null): Promise<void> {
  if (deployed === null) {
    await removeIfThere(join(dataDir, FILE));
    return await syncFolder(dataDir);
  }
  await using staged = await stageDeployed(dataDir, deployed);
  await staged.commit();
}

/** On disk, but not in place yet. */
export function stageDeployed(dataDir: string, deployed: Deployed): Promise<StagedFile> {
  return stageDurably(join(dataDir, FILE), JSON.stringify({ format: FORMAT, ...deployed }));
}

/** Removes what a process that was killed has staged; nobody may be deploying meanwhile. */
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
