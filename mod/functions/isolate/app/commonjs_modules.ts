/**
 * The app's npm packages. The runtime loads ES modules through the import map. CommonJS files run here, and `require` resolves
 * like an import, so no way of loading code bypasses the import map.
 */
import { commonJsKey, type PackageTable, type PackageTarget } from "../../wire/package_table.ts";
import { appImporter, type ImportAsApp } from "../process/import_as_app.ts";
import { explainImports } from "./import_message.ts";
import { fileUrl } from "./loader.ts";
import { inspected } from "../ctx/log_lines.ts";

const { readTextFileSync } = Deno;

/** `compileFunction` of `node:vm`. */
type Compile = (
  source: string,
  parameters: readonly string[],
  options: {
    readonly filename: string;
    readonly importModuleDynamically: (specifier: string) => Promise<unknown>;
  },
) => (...args: unknown[]) => unknown;
type Require = (specifier: string) => unknown;

/** `module` of a CommonJS file. */
interface CommonJsModule {
  exports: unknown;
  loaded: boolean;
  readonly id: string;
  readonly filename: string;
  readonly require: Require;
  readonly children: readonly never[];
  readonly paths: readonly string[];
}

/** A preloaded module, or the error of loading it. */
type Imported = { readonly exports: unknown } | { readonly error: unknown };

/** Prepares the packages while files can be read. Does not run CommonJS files. `folder` is the location of the app's code. */
export async function preparePackages(table: PackageTable, folder: string): Promise<Packages> {
  const importAsApp = await appImporter();
  const { compileFunction } = await import("node:vm");
  const packages = new Packages(table, { importAsApp, compile: compileFunction as unknown as Compile });
  Object.defineProperty(globalThis, Symbol.for(commonJsKey), {
    value: (path: unknown) => packages.run(`${folder}/${String(path)}`),
  });
  explainImports(table.refusals);
  await packages.importRequired();
  return packages;
}

export class Packages {
  readonly #table: PackageTable;
  readonly #importAsApp: ImportAsApp;
  readonly #compile: Compile;
  /** Sources of files that have not run. */
  readonly #sources = new Map<string, string>();
  readonly #modules = new Map<string, CommonJsModule>();
  readonly #imported = new Map<string, Imported>();

  /** Reads the files. */
  constructor(
    table: PackageTable,
    { importAsApp, compile }: { readonly importAsApp: ImportAsApp; readonly compile: Compile },
  ) {
    this.#table = table;
    this.#importAsApp = importAsApp;
    this.#compile = compile;
    for (const path of Object.keys(table.files)) this.#sources.set(path, readTextFileSync(path));
  }

  /** Imports the ES modules that CommonJS files require. An error is thrown when the module is required. */
  async importRequired(): Promise<void> {
    for (const specifier of this.#table.required) {
      try {
        const namespace = await this.#importAsApp(specifier);
        this.#imported.set(specifier, { exports: requiredForm(specifier, namespace) });
      } catch (error) {
        this.#imported.set(specifier, { error });
      }
    }
  }

  /** Imports modules named in `import()` while they can still be read. */
  async importDeferred(): Promise<void> {
    for (const specifier of this.#table.deferred) {
      // The importing code gets this error again.
      await this.#importAsApp(specifier).catch(() => {});
    }
  }

  /** Returns the exports of a CommonJS file. Runs it on first use. */
  run(path: string): unknown {
    const known = this.#modules.get(path);
    if (known !== undefined) return known.exports;
    const source = this.#sources.get(path);
    if (source === undefined) throw notFound(path, "the app");
    const module: CommonJsModule = {
      exports: {},
      loaded: false,
      id: path,
      filename: path,
      require: this.#requireOf(path),
      children: [],
      paths: [],
    };
    this.#modules.set(path, module);
    try {
      if (path.endsWith(".json")) module.exports = JSON.parse(source);
      else this.#evaluate(module, source);
    } catch (error) {
      this.#modules.delete(path);
      throw error;
    }
    module.loaded = true;
    this.#sources.delete(path);
    return module.exports;
  }

  #evaluate(module: CommonJsModule, source: string): void {
    const { filename } = module;
    const compiled = this.#compiled(filename, source);
    const folder = filename.slice(0, filename.lastIndexOf("/"));
    Reflect.apply(compiled, module.exports, [module.exports, module.require, module, filename, folder]);
  }

  #compiled(filename: string, source: string): ReturnType<Compile> {
    try {
      return this.#compile(
        source.replace(/^\uFEFF/, "").replace(/^#!/, "//"),
        ["exports", "require", "module", "__filename", "__dirname"],
        {
          filename: fileUrl(filename),
          importModuleDynamically: (specifier: string) => this.#import(specifier, filename),
        },
      );
    } catch (error) {
      // The runtime's message does not include the file.
      throw error instanceof SyntaxError ? new SyntaxError(`${filename}: ${error.message}`) : error;
    }
  }

  #requireOf(from: string): Require {
    const find = (specifier: string): PackageTarget => {
      const target = ownEntry(this.#table.files[from]?.requires, specifier);
      if (target === undefined) throw notFound(specifier, from);
      return target;
    };
    const require = (specifier: string): unknown => {
      const target = find(specifier);
      if ("file" in target) return this.run(target.file);
      if ("refused" in target) throw new TypeError(target.refused);
      const imported = this.#imported.get(target.module);
      if (imported === undefined) throw new TypeError(`"${specifier}" cannot be required while it loads`);
      if ("error" in imported) throw imported.error;
      return imported.exports;
    };
    return Object.assign(require, {
      resolve: (specifier: string) => {
        const target = find(specifier);
        return "file" in target ? target.file : specifier;
      },
      cache: {},
      extensions: {},
      main: undefined,
    });
  }

  async #import(specifier: string, from: string): Promise<unknown> {
    const target = ownEntry(this.#table.files[from]?.imports, specifier);
    if (target === undefined) return await this.#importAsApp(specifier);
    if ("module" in target) return await this.#importAsApp(target.module);
    if ("refused" in target) throw new TypeError(target.refused);
    const exports = this.run(target.file);
    return Object.freeze({ ...Object(exports), default: exports });
  }
}

function ownEntry(
  targets: Readonly<Record<string, PackageTarget>> | undefined,
  specifier: string,
): PackageTarget | undefined {
  return targets !== undefined && Object.hasOwn(targets, specifier) ? targets[specifier] : undefined;
}

/** The result of `require` for an ES module: the default export of built-ins, the namespace of others. */
function requiredForm(specifier: string, namespace: Record<string, unknown>): unknown {
  if (specifier.startsWith("node:")) return namespace["default"];
  return "module.exports" in namespace ? namespace["module.exports"] : namespace;
}

/** Same code as in Node, so that packages with optional dependencies recognize it. */
function notFound(specifier: string, from: string): Error {
  const error = new Error(
    `Cannot find module ${
      inspected(specifier)
    }, which ${from} requires: install the package, and name it with a string literal`,
  );
  return Object.assign(error, { code: "MODULE_NOT_FOUND" });
}
