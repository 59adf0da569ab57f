/** Collects the files of a version: the functions folder and the package files it depends on. */
import { dirname } from "node:path";
import type { TimeSlicer } from "../../kit/clock.ts";
import { type AppCode, plainCode } from "../packages/app_code.ts";
import type { PackageFiles } from "../packages/package_files.ts";
import type { PackageGraph, PackagePlace } from "../packages/package_graph.ts";
import { type AppPlace, isInside, packageRoots } from "../packages/package_roots.ts";
import { ownFiles } from "./own_files.ts";

/** An app's code at the author's location. Absolute paths. */
export interface Collected {
  /** The common parent folder. */
  readonly folder: string;
  readonly files: readonly string[];
  /** Links by path, with their real paths. */
  readonly links: ReadonlyMap<string, string>;
  readonly code: AppCode;
  /** Whether the package files are unchanged since they were read. */
  readonly unchanged: () => boolean;
}

/** The package reader. Loaded for apps that may use packages. */
interface Walker {
  readonly files: PackageFiles;
  readonly walk: (place: PackagePlace, turns: TimeSlicer) => Promise<PackageGraph>;
}

export class Collector {
  #walker: Promise<Walker> | null = null;

  /** Throws if a file cannot be read or cannot be part of a version. */
  async collect(place: AppPlace, turns: TimeSlicer): Promise<Collected> {
    const { functionsDir, dataDir } = place;
    const { files: own, links } = ownFiles(functionsDir, dataDir);
    await turns.yieldIfDue();
    const roots = packageRoots(place);
    const above = dirname(functionsDir);
    if (roots.length === 0) {
      return { folder: above, files: own, links, code: plainCode, unchanged: () => true };
    }
    const { files: known, walk } = await (this.#walker ??= loadWalker());
    const graph = await walk({ ...place, roots }, turns);
    // Link targets in the folder are listed under their own names.
    const linked = [...links.keys()];
    const reached = graph.files.filter((path) => !isInside(path, linked));
    const files = [...new Set([...own, ...reached])];
    const folder = commonFolder([above, ...files.map(dirname), ...graph.scopes]);
    return { folder, files, links, code: graph.code(folder), unchanged: () => known.unchanged };
  }
}

/** Thrown if a file changed since it was read. */
export class ChangedError extends Error {
  constructor() {
    super("The app's files keep changing");
  }
}

async function loadWalker(): Promise<Walker> {
  const [{ PackageFiles }, { packageGraph }] = await Promise.all([
    import("../packages/package_files.ts"),
    import("../packages/package_graph.ts"),
  ]);
  const files = new PackageFiles();
  return { files, walk: (place, turns) => packageGraph(place, { files, turns }) };
}

/** Returns the innermost folder that contains all of these, or is one of them. */
function commonFolder(folders: readonly string[]): string {
  let [common = "/"] = folders;
  for (const folder of folders) {
    while (!isInside(folder, [common])) common = dirname(common);
  }
  return common;
}
