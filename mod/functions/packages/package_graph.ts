/**
 * The npm packages an app uses: the files that its modules and their packages ask for, walked without running any of them.
 * Of this come the entries of the isolates' import map and the table of CommonJS files.
 */
import { dirname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { findModules } from "../module_files.ts";
import { commonJsStub } from "./commonjs_stub.ts";
import type { PackageFiles } from "./package_files.ts";
import { type ImportKind, PackageResolver, type Resolution } from "./package_resolver.ts";
import { type AppPlace, isInside } from "./package_roots.ts";
import type { CommonJsFile, PackageTable, PackageTarget } from "../wire/package_table.ts";

/** Entries of an import map, by the URL of the folder they are for; `""`: for every folder. */
export type MapEntries = Map<string, Map<string, string>>;

export interface PackageGraph {
  readonly entries: MapEntries;
  readonly table: PackageTable;
  /** Whether everything that is asked for is there. */
  readonly complete: boolean;
}

export interface PackagePlace extends AppPlace {
  readonly roots: readonly string[];
}

/** Walks all files that can be reached. Throws when one cannot be read, or past the limits. */
export function packageGraph(place: PackagePlace, files: PackageFiles): PackageGraph {
  files.begin(place.roots);
  using resolver = new PackageResolver([...place.roots, place.functionsDir]);
  const graph = new Walk({ place, files, resolver }).run();
  files.end();
  return graph;
}

interface WalkParts {
  readonly place: PackagePlace;
  readonly files: PackageFiles;
  readonly resolver: PackageResolver;
}

class Walk {
  readonly #place: PackagePlace;
  readonly #files: PackageFiles;
  readonly #resolver: PackageResolver;
  /** Files to look at; each is in it once. */
  readonly #queue = new Set<string>();
  readonly #entries: MapEntries = new Map();
  readonly #commonJs: Record<string, CommonJsFile> = {};
  readonly #required = new Set<string>();
  readonly #deferred = new Set<string>();
  /** Stand-ins of CommonJS files for modules, by path. */
  readonly #stubs = new Map<string, string>();
  readonly #refusals: Record<string, string> = {};
  #complete = true;

  constructor({ place, files, resolver }: WalkParts) {
    this.#place = place;
    this.#files = files;
    this.#resolver = resolver;
  }

  run(): PackageGraph {
    for (const { file } of findModules(this.#place.functionsDir)) this.#queue.add(file);
    for (const path of this.#queue) this.#look(path);
    // Files found late stand at the bottom of what asks for them.
    const required = [...this.#required].reverse();
    return {
      entries: this.#entries,
      table: {
        files: this.#commonJs,
        required,
        deferred: [...this.#deferred],
        refusals: this.#refusals,
      },
      complete: this.#complete,
    };
  }

  #look(path: string): void {
    const file = this.#read(path);
    if (file.kind === "module") {
      for (const specifier of file.facts.imports) this.#import(specifier, path);
      for (const specifier of file.facts.deferred) {
        const address = this.#import(specifier, path);
        if (address !== null) this.#deferred.add(address);
      }
    } else if (file.kind === "commonJs") {
      const { requires, deferred } = file.facts;
      this.#commonJs[path] = {
        requires: this.#targets(requires, { from: path, as: "require" }),
        imports: this.#targets(deferred, { from: path, as: "import" }),
      };
    } else if (file.kind === "json") {
      this.#commonJs[path] = { requires: {}, imports: {} };
    }
  }

  /** An import of a module: what is needed beside Deno's own ways. Gives the address that the import leads to. */
  #import(specifier: string, from: string): string | null {
    if (specifier === "zod" && this.#isOwn(from)) return null;
    const relative = /^(?:\.{0,2}\/|file:)/.test(specifier);
    const found = relative
      ? fileAt(specifier, from)
      : this.#resolver.resolve(specifier, { from, as: "import" });
    switch (found.kind) {
      case "file": {
        const address = this.#address(found.path);
        if (address === null) {
          this.#refusals[specifier] = addonReason(found.path);
          return null;
        }
        const own = pathToFileURL(found.path).href;
        if (!relative) this.#enter(this.#scopeOf(from), specifier, address);
        else if (address !== own) this.#enter("", own, address);
        return address;
      }
      case "refused":
        this.#complete = false;
        this.#refusals[specifier] = found.reason;
        return null;
      case "missing":
        this.#complete = false;
        return null;
      case "builtin":
        // Named by the package's own `imports`.
        if (specifier.startsWith("#")) {
          this.#enter(this.#scopeOf(from), specifier, runtimeModule(found.specifier));
        }
        return null;
      case "left":
        return null;
      default:
        return found satisfies never;
    }
  }

  /** What a module has to import to get a file, which is looked at too. `null` for a native addon. */
  #address(path: string): string | null {
    const file = this.#isReadable(path) ? this.#read(path) : null;
    switch (file?.kind) {
      case "commonJs":
        this.#queue.add(path);
        return this.#stub(path);
      case "addon":
        return null;
      case "module":
        this.#queue.add(path);
    }
    return pathToFileURL(path).href;
  }

  #targets(
    specifiers: readonly string[],
    { from, as }: { readonly from: string; readonly as: ImportKind },
  ): Record<string, PackageTarget> {
    const targets: Record<string, PackageTarget> = {};
    for (const specifier of specifiers) {
      const target = this.#target(this.#resolver.resolve(specifier, { from, as }), { specifier, from });
      if (target === null) continue;
      targets[specifier] = target;
      if ("module" in target) (as === "require" ? this.#required : this.#deferred).add(target.module);
    }
    return targets;
  }

  #target(
    found: Resolution,
    { specifier, from }: { readonly specifier: string; readonly from: string },
  ): PackageTarget | null {
    switch (found.kind) {
      case "builtin":
        return { module: found.specifier };
      case "left":
        return { module: specifier };
      case "missing":
        this.#complete = false;
        return specifier === "zod" ? { module: specifier } : null;
      case "refused":
        this.#complete = false;
        return { refused: `Cannot require "${specifier}" in ${from}: ${found.reason}` };
      case "file": {
        const { path } = found;
        const { kind } = this.#read(path);
        if (kind === "addon") return { refused: addonReason(path) };
        this.#queue.add(path);
        return kind === "module" ? { module: pathToFileURL(path).href } : { file: path };
      }
      default:
        return found satisfies never;
    }
  }

  /** The stand-in of a CommonJS file, with the names it exports. */
  #stub(path: string): string {
    let stub = this.#stubs.get(path);
    if (stub === undefined) {
      stub = commonJsStub(path, [...this.#namesOf(path, new Set())]);
      this.#stubs.set(path, stub);
    }
    return stub;
  }

  #namesOf(path: string, seen: Set<string>): Set<string> {
    const names = new Set<string>();
    if (seen.has(path)) return names;
    seen.add(path);
    const file = this.#read(path);
    if (file.kind !== "commonJs") return names;
    for (const name of file.facts.names) names.add(name);
    for (const specifier of file.facts.reexports) {
      const found = this.#resolver.resolve(specifier, { from: path, as: "require" });
      if (found.kind === "file") { for (const name of this.#namesOf(found.path, seen)) names.add(name); }
    }
    return names;
  }

  #read(path: string) {
    return this.#files.read(path, this.#isOwn(path));
  }

  #enter(scope: string, specifier: string, address: string): void {
    let entries = this.#entries.get(scope);
    if (entries === undefined) this.#entries.set(scope, entries = new Map());
    entries.set(specifier, address);
  }

  /** The URL of the folder whose files see what this file sees: that of the app, or of the package. */
  #scopeOf(from: string): string {
    const { functionsDir, roots } = this.#place;
    const folder = this.#isOwn(from)
      ? functionsDir
      : PACKAGE_FOLDER.exec(from)?.[0] ?? roots.find((root) => isInside(from, [root])) ?? dirname(from);
    return `${pathToFileURL(folder).href}/`;
  }

  #isOwn(path: string): boolean {
    const { functionsDir } = this.#place;
    return isInside(path, [functionsDir]) && !path.slice(functionsDir.length).includes("/node_modules/");
  }

  /** Whether isolates may read a file, where it really lies. */
  #isReadable(path: string): boolean {
    return isInside(Deno.realPathSync(path), [...this.#place.roots, this.#place.functionsDir]);
  }
}

/** The folder of the innermost package that a path is in. */
const PACKAGE_FOLDER = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;

/** A module that passes on one of the runtime's: that name is looked up in the import map, an address there is not. */
function runtimeModule(specifier: string): string {
  return `data:text/javascript,export*from"${specifier}";export{default}from"${specifier}"`;
}

function addonReason(path: string): string {
  return `${path} is a native addon, which functions cannot load`;
}

/** The file at a relative address. What is not there is told of when it is imported. */
function fileAt(specifier: string, from: string): Resolution {
  try {
    const url = new URL(specifier, pathToFileURL(from));
    url.search = url.hash = "";
    const path = fileURLToPath(url);
    return Deno.statSync(path).isFile ? { kind: "file", path } : { kind: "left" };
  } catch {
    return { kind: "left" };
  }
}
