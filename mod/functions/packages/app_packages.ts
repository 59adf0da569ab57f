/** The npm packages of an app as its isolates get them: looked up at each start of one, from memory while nothing changes. */
import type { MapEntries, PackageGraph } from "./package_graph.ts";
import type { PackageFiles } from "./package_files.ts";
import { type AppPlace, packageRoots } from "./package_roots.ts";
import type { PackageTable } from "../wire/package_table.ts";

/** What isolates need for the packages of an app. */
export interface UsablePackages {
  /** Folders they read from while they load. */
  readonly roots: readonly string[];
  readonly table: PackageTable;
  /** For their import map. */
  readonly entries: MapEntries;
}

/** What reads packages, loaded for apps that may have some. */
interface Walker {
  readonly files: PackageFiles;
  readonly walk: (roots: readonly string[]) => PackageGraph;
}

export class AppPackages {
  readonly #place: AppPlace;
  #walker: Promise<Walker> | null = null;
  /** The newest answer, with what it was made of. */
  #newest: { readonly roots: readonly string[]; readonly packages: UsablePackages | null } | null = null;

  constructor(place: AppPlace) {
    this.#place = place;
  }

  /** `null` for an app that uses none. Throws with the reason when they cannot be read. */
  async find(): Promise<UsablePackages | null> {
    const roots = packageRoots(this.#place);
    if (roots.length === 0) return null;
    const { files, walk } = await (this.#walker ??= this.#loadWalker());
    const newest = this.#newest;
    if (newest !== null && newest.roots.join("\n") === roots.join("\n") && files.unchanged) {
      return newest.packages;
    }
    const { entries, table, complete } = walk(roots);
    const used = [Object.fromEntries(entries), table.files, table.refusals].some((part) =>
      Object.keys(part).length > 0
    );
    const packages = used ? { roots, table, entries } : null;
    // What is missing now may be there the next time.
    this.#newest = complete ? { roots, packages } : null;
    return packages;
  }

  async #loadWalker(): Promise<Walker> {
    const [{ PackageFiles }, { packageGraph }] = await Promise.all([
      import("./package_files.ts"),
      import("./package_graph.ts"),
    ]);
    const files = new PackageFiles();
    return { files, walk: (roots) => packageGraph({ ...this.#place, roots }, files) };
  }
}
