/** Gathers what a version is made of: the functions folder, and the files of packages that it leads to. */
import { dirname } from "node:path";
import type { TimeSlicer } from "../../kit/time_slicer.ts";
import { type AppCode, plainCode } from "../packages/app_code.ts";
import type { PackageFiles } from "../packages/package_files.ts";
import type { PackageGraph, PackagePlace } from "../packages/package_graph.ts";
import { type AppPlace, isInside, packageRoots } from "../packages/package_roots.ts";
import { ownFiles } from "./own_files.ts";

/** The code of an app where its author has it. Absolute paths. */
export interface Collected {
  /** The folder that everything lies below. */
  readonly folder: string;
  readonly files: readonly string[];
  /** Links by path: real paths. */
  readonly links: ReadonlyMap<string, string>;
  readonly code: AppCode;
  /** Whether what was walked is still as it was. */
  readonly unchanged: () => boolean;
}

/** What reads packages, loaded for apps that may have some. */
interface Walker {
  readonly files: PackageFiles;
  readonly walk: (place: PackagePlace, turns: TimeSlicer) => Promise<PackageGraph>;
}

export class Collector {
  #walker: Promise<Walker> | null = null;

  /** Throws with the reason when something cannot be read, or cannot be part of a version. */
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
    // What a link of the folder leads to is there under its own name.
    const linked = [...links.keys()];
    const reached = graph.files.filter((path) => !isInside(path, linked));
    const files = [...new Set([...own, ...reached])];
    const folder = commonFolder([above, ...files.map(dirname), ...graph.scopes]);
    return { folder, files, links, code: graph.code(folder), unchanged: () => known.unchanged };
  }
}

/** Something has changed since it was read. */
export class ChangedError extends Error {
  constructor() {
    super("Files of the app go on changing");
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

/** The innermost folder that holds all of these, each of which may be it. */
function commonFolder(folders: readonly string[]): string {
  let [common = "/"] = folders;
  for (const folder of folders) {
    while (!isInside(folder, [common])) common = dirname(common);
  }
  return common;
}
