/** The npm packages of an app as its isolates get them: looked up at each start of one, from memory while nothing changes. */
import { pathToFileURL } from "node:url";
import type { IsolateRole } from "../wire.ts";
import { importMapPath, sources } from "../isolate/start_flags.ts";
import type { MapEntries, PackageGraph } from "./package_graph.ts";
import type { PackageFiles } from "./package_files.ts";
import { type AppPlace, packageRoots } from "./package_roots.ts";
import type { PackageTable } from "./package_table.ts";

/** What isolates need for the packages of an app. */
export interface UsablePackages {
  /** Folders they read from while they load. */
  readonly roots: readonly string[];
  readonly table: PackageTable;
  /** JSON of the import map for isolates of this role. */
  importMap(role: IsolateRole): string;
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
    const packages = used ? { roots, table, importMap: (role: IsolateRole) => mapWith(entries, role) } : null;
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

interface ImportMap {
  readonly imports: Record<string, string>;
  readonly scopes: Record<string, Record<string, string>>;
}

/** The import map of all isolates of this role and the entries of an app. Nothing of ours gives way to an entry. */
function mapWith(entries: MapEntries, role: IsolateRole): string {
  const { imports, scopes } = JSON.parse(Deno.readTextFileSync(importMapPath(role))) as ImportMap;
  const [ours = {}] = Object.values(scopes);
  const added: Record<string, Record<string, string>> = {};
  for (const [scope, map] of entries) if (scope !== "") added[scope] = Object.fromEntries(map);
  return JSON.stringify({
    imports: { ...Object.fromEntries(entries.get("") ?? []), ...imports },
    scopes: { ...added, [pathToFileURL(sources).href]: ours },
  });
}
