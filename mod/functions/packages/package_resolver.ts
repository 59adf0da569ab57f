/** Which file a specifier names in a file, as Node decides it, and whether app code may have it. */
import { isBuiltin } from "node:module";
import * as fs from "node:fs";
import { dirname } from "node:path";
import enhancedResolve, { type Resolver } from "enhanced-resolve";
import { slashed } from "./slashed_paths.ts";
import { isInside } from "./package_roots.ts";

export type Resolution =
  | { readonly kind: "file"; readonly path: string }
  /** A module of the runtime, as `node:name`. */
  | { readonly kind: "builtin"; readonly specifier: string }
  /** Another kind of address, or one of ours: the import map and the runtime decide. */
  | { readonly kind: "left" }
  | { readonly kind: "missing" }
  | { readonly kind: "refused"; readonly reason: string };

/** What a specifier stands in: an `import` or a `require`. */
export type ImportKind = "import" | "require";

/** Longer than any walk: the cache is emptied at its end. */
const CACHE_MS = 60_000;
const ADDRESS = /^[a-z][a-z0-9+.-]*:/i;

/** The files that this process may read: others are not there. A package is looked for in all folders above a file. */
const readableFiles: typeof fs = {
  ...fs,
  statSync: whereReadable(fs.statSync),
  lstatSync: whereReadable(fs.lstatSync),
  readFileSync: whereReadable(fs.readFileSync),
  readlinkSync: whereReadable(fs.readlinkSync),
  readdirSync: whereReadable(fs.readdirSync),
};

function whereReadable<F extends (...args: never[]) => unknown>(call: F): F {
  return ((...args: Parameters<F>) => {
    try {
      return call(...args);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotCapable)) throw error;
      throw Object.assign(new Error("not readable", { cause: error }), { code: "ENOENT" });
    }
  }) as F;
}

export class PackageResolver {
  readonly #folders: readonly string[];
  readonly #files: InstanceType<typeof enhancedResolve.CachedInputFileSystem>;
  readonly #resolvers: Readonly<Record<ImportKind, Resolver>>;

  /** `folders`: where files may lie. */
  constructor(folders: readonly string[]) {
    this.#folders = folders;
    this.#files = new enhancedResolve.CachedInputFileSystem(readableFiles, CACHE_MS);
    const resolver = (...conditionNames: string[]) =>
      enhancedResolve.ResolverFactory.createResolver({
        useSyncFileSystemCalls: true,
        fileSystem: this.#files,
        conditionNames,
        extensions: [".js", ".json", ".node"],
        mainFields: ["main"],
        symlinks: true,
        plugins: [runtimeModules],
      });
    this.#resolvers = {
      import: resolver("node", "import", "module-sync"),
      require: resolver("node", "require", "module-sync"),
    };
  }

  /** `from`: the absolute path of the file that has the specifier. */
  resolve(specifier: string, { from, as }: { readonly from: string; readonly as: ImportKind }): Resolution {
    if (isBuiltin(specifier)) return builtin(specifier);
    if (specifier === "syncline/server" || ADDRESS.test(specifier)) return { kind: "left" };
    let path: string | false;
    try {
      path = this.#resolvers[as].resolveSync({}, dirname(from), withoutQuery(specifier));
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return /^Can't resolve/.test(message) ? { kind: "missing" } : { kind: "refused", reason: message };
    }
    if (path === false) return { kind: "missing" };
    if (isBuiltin(path)) return builtin(path);
    path = slashed(withoutQuery(path));
    if (!isInside(path, this.#folders)) {
      return {
        kind: "refused",
        reason: `it is a link to ${path}, which lies outside the project of the app`,
      };
    }
    return { kind: "file", path };
  }

  [Symbol.dispose](): void {
    this.#files.purge();
  }
}

function builtin(name: string): Resolution {
  return { kind: "builtin", specifier: name.startsWith("node:") ? name : `node:${name}` };
}

/** Ends at a module of the runtime, to which the `imports` of a package may lead. */
const runtimeModules = {
  apply(resolver: Resolver): void {
    resolver.ensureHook("imports-resolve").tapAsync("RuntimeModules", (request, _context, callback) => {
      if (request.request === undefined || !isBuiltin(request.request)) return callback();
      callback(null, { ...request, path: request.request });
    });
  },
};

function withoutQuery(specifier: string): string {
  return specifier.replace(/[?\0].*$/s, "");
}
