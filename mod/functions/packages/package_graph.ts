/**
 * The npm packages an app uses: the files that its modules and their packages ask for, walked without running any of them.
 * Of this come the entries of the isolates' import map and the table of CommonJS files.
 */
import { dirname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { nameBelow, slashed } from "./slashed_paths.ts";
import type { TimeSlicer } from "../../kit/clock.ts";
import { findModules } from "../module_files.ts";
import type { PackageTarget } from "../wire/package_table.ts";
import type { AppCode } from "./app_code.ts";
import { commonJsStub } from "./commonjs_stub.ts";
import type { PackageFiles } from "./package_files.ts";
import { type ImportKind, PackageResolver, type Resolution } from "./package_resolver.ts";
import { type AppPlace, isInside } from "./package_roots.ts";

/** Where an import leads, until it is known below which folder everything lies. */
type Target =
  | { readonly file: string }
  /** The stand-in of a CommonJS file, with the names it exports. */
  | { readonly stub: string; readonly names: readonly string[] };

/** Like a {@linkcode PackageTarget}; a module of the app is named by its path. */
type Wanted = { readonly file: string; readonly kind: "module" | "commonJs" } | PackageTarget;

export interface PackageGraph {
  /** Every file that the app's modules lead to, they themselves included. Absolute paths. */
  readonly files: readonly string[];
  /** Folders that the files of packages see their imports from. */
  readonly scopes: readonly string[];
  /** What isolates have to be told, by paths below this folder, which must hold all files and scopes. */
  readonly code: (folder: string) => AppCode;
}

export interface PackagePlace extends AppPlace {
  readonly roots: readonly string[];
}

/** Walks all files that can be reached. Throws when one cannot be read, or past the limits. */
export async function packageGraph(
  place: PackagePlace,
  { files, turns }: { readonly files: PackageFiles; readonly turns: TimeSlicer },
): Promise<PackageGraph> {
  files.begin(place.roots);
  using resolver = new PackageResolver([...place.roots, place.functionsDir]);
  const graph = await new Walk({ place, files, resolver }).run(turns);
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
  /** Addresses of files that lead elsewhere. */
  readonly #redirected = new Map<string, Target>();
  /** By the folder they are for. */
  readonly #entries = new Map<string, Map<string, Target | string>>();
  readonly #commonJs = new Map<
    string,
    { readonly requires: Map<string, Wanted>; readonly imports: Map<string, Wanted> }
  >();
  readonly #required = new Set<string>();
  readonly #deferred = new Map<string, Target | string>();
  /** Stand-ins of CommonJS files for modules, by path. */
  readonly #stubs = new Map<string, Target>();
  readonly #refusals: Record<string, string> = {};

  constructor({ place, files, resolver }: WalkParts) {
    this.#place = place;
    this.#files = files;
    this.#resolver = resolver;
  }

  async run(turns: TimeSlicer): Promise<PackageGraph> {
    for (const { file } of findModules(this.#place.functionsDir)) this.#queue.add(file);
    for (const path of this.#queue) {
      this.#look(path);
      await turns.yieldIfDue();
    }
    return {
      files: this.#files.paths,
      scopes: [...this.#entries.keys()],
      code: (folder) => this.#code(folder),
    };
  }

  #code(folder: string): AppCode {
    const below = (path: string) => path === folder ? "." : nameBelow(folder, path);
    const named = (path: string) => path === folder ? "." : `./${below(path)}`;
    const address = (target: Target | string): string => {
      if (typeof target === "string") return target;
      return "file" in target ? named(target.file) : commonJsStub(below(target.stub), target.names);
    };
    const wanted = (target: Wanted): PackageTarget => {
      if (!("kind" in target)) return target;
      return target.kind === "module" ? { module: named(target.file) } : { file: below(target.file) };
    };
    const record = <Value, Result>(map: ReadonlyMap<string, Value>, convert: (value: Value) => Result) =>
      Object.fromEntries([...map].map(([key, value]) => [key, convert(value)]));
    return {
      files: Object.fromEntries(
        [...this.#redirected].map(([path, target]) => [named(path), address(target)]),
      ),
      scopes: Object.fromEntries(
        [...this.#entries].map(([scope, entries]) => [named(scope), record(entries, address)]),
      ),
      table: {
        files: Object.fromEntries(
          [...this.#commonJs].map(([path, { requires, imports }]) => [
            below(path),
            { requires: record(requires, wanted), imports: record(imports, wanted) },
          ]),
        ),
        // Files found late stand at the bottom of what asks for them.
        required: [...this.#required].reverse().map((name) => isPath(name) ? named(name) : name),
        deferred: [...new Set([...this.#deferred.values()].map(address))],
        refusals: this.#refusals,
      },
    };
  }

  #look(path: string): void {
    const file = this.#read(path);
    if (file.kind === "module") {
      for (const specifier of file.facts.imports) this.#import(specifier, path);
      for (const specifier of file.facts.deferred) {
        const target = this.#import(specifier, path);
        if (target !== null) this.#defer(target);
      }
    } else if (file.kind === "commonJs") {
      const { requires, deferred } = file.facts;
      this.#commonJs.set(path, {
        requires: this.#targets(requires, { from: path, as: "require" }),
        imports: this.#targets(deferred, { from: path, as: "import" }),
      });
    } else if (file.kind === "json") {
      this.#commonJs.set(path, { requires: new Map(), imports: new Map() });
    }
  }

  /** Imported after the app, in this order. */
  #defer(target: Target | string): void {
    this.#deferred.set(
      typeof target === "string" ? target : "file" in target ? target.file : `stub ${target.stub}`,
      target,
    );
  }

  /** An import of a module: what is needed beside Deno's own ways. Gives where the import leads, of files. */
  #import(specifier: string, from: string): Target | null {
    if (specifier === "zod" && this.#isOwn(from)) return null;
    const relative = /^(?:\.{0,2}\/|file:)/.test(specifier);
    const found = relative
      ? fileAt(specifier, from)
      : this.#resolver.resolve(specifier, { from, as: "import" });
    switch (found.kind) {
      case "file": {
        const target = this.#target(found.path);
        if (target === null) {
          this.#refusals[specifier] = addonReason(found.path);
          return null;
        }
        if (!relative) this.#enter(this.#scopeOf(from), specifier, target);
        else if ("stub" in target) this.#redirected.set(found.path, target);
        return target;
      }
      case "refused":
        this.#refusals[specifier] = found.reason;
        return null;
      case "builtin":
        // Named by the package's own `imports`.
        if (specifier.startsWith("#")) {
          this.#enter(this.#scopeOf(from), specifier, runtimeModule(found.specifier));
        }
        return null;
      case "missing":
      case "left":
        return null;
      default:
        return found satisfies never;
    }
  }

  /** What a module has to import to get a file, which is looked at too. `null` for a native addon. */
  #target(path: string): Target | null {
    const real = slashed(Deno.realPathSync(path));
    if (!this.#isReadable(real)) {
      // What lies elsewhere is not taken along: importing it fails. A link must not bring it in.
      if (real === path) return { file: path };
      throw new Error(`${path} is a link to ${real}, which lies outside the project of the app`);
    }
    const file = this.#read(path);
    switch (file.kind) {
      case "commonJs":
        this.#queue.add(path);
        return this.#stub(path);
      case "addon":
        return null;
      case "module":
        this.#queue.add(path);
    }
    return { file: path };
  }

  #targets(
    specifiers: readonly string[],
    { from, as }: { readonly from: string; readonly as: ImportKind },
  ): Map<string, Wanted> {
    const targets = new Map<string, Wanted>();
    for (const specifier of specifiers) {
      const target = this.#wanted(this.#resolver.resolve(specifier, { from, as }), { specifier, from });
      if (target === null) continue;
      targets.set(specifier, target);
      const module = "module" in target
        ? target.module
        : "kind" in target && target.kind === "module"
        ? target.file
        : null;
      if (module === null) continue;
      if (as === "require") this.#required.add(module);
      else this.#defer(isPath(module) ? { file: module } : module);
    }
    return targets;
  }

  #wanted(
    found: Resolution,
    { specifier, from }: { readonly specifier: string; readonly from: string },
  ): Wanted | null {
    switch (found.kind) {
      case "builtin":
        return { module: found.specifier };
      case "left":
        return { module: specifier };
      case "missing":
        return specifier === "zod" ? { module: specifier } : null;
      case "refused":
        return { refused: `Cannot require "${specifier}" in ${from}: ${found.reason}` };
      case "file": {
        const { path } = found;
        const { kind } = this.#read(path);
        if (kind === "addon") return { refused: addonReason(path) };
        this.#queue.add(path);
        return { file: path, kind: kind === "module" ? "module" : "commonJs" };
      }
      default:
        return found satisfies never;
    }
  }

  /** The stand-in of a CommonJS file, with the names it exports. */
  #stub(path: string): Target {
    let stub = this.#stubs.get(path);
    if (stub === undefined) {
      stub = { stub: path, names: [...this.#namesOf(path, new Set())] };
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

  #enter(scope: string, specifier: string, target: Target | string): void {
    let entries = this.#entries.get(scope);
    if (entries === undefined) this.#entries.set(scope, entries = new Map());
    entries.set(specifier, target);
  }

  /** The folder whose files see what this file sees: that of the app, or of the package. */
  #scopeOf(from: string): string {
    const { functionsDir, roots } = this.#place;
    return this.#isOwn(from)
      ? functionsDir
      : PACKAGE_FOLDER.exec(from)?.[0] ?? roots.find((root) => isInside(from, [root])) ?? dirname(from);
  }

  #isOwn(path: string): boolean {
    const { functionsDir } = this.#place;
    return isInside(path, [functionsDir]) && !path.slice(functionsDir.length).includes("/node_modules/");
  }

  /** Whether a file may be part of the app, by its real path. */
  #isReadable(real: string): boolean {
    return isInside(real, [...this.#place.roots, this.#place.functionsDir]);
  }
}

/** Whether a name is a path, and not an address. */
function isPath(name: string): boolean {
  return /^(?:[a-z]:)?\//i.test(name);
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
    const path = slashed(fileURLToPath(url));
    return Deno.statSync(path).isFile ? { kind: "file", path } : { kind: "left" };
  } catch {
    return { kind: "left" };
  }
}
