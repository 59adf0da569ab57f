/** Package data for isolates: CommonJS files and their dependencies. */

/** The resolution of a specifier in a file. */
export type PackageTarget =
  /** A CommonJS or JSON file of the table, by absolute path. */
  | { readonly file: string }
  /** An ES module: `node:path`, `zod`, or a file URL. */
  | { readonly module: string }
  /** Error message of a blocked module. */
  | { readonly refused: string };

export interface CommonJsFile {
  /** By the specifier in `require("...")`. */
  readonly requires: Readonly<Record<string, PackageTarget>>;
  /** By the specifier in `import("...")`. */
  readonly imports: Readonly<Record<string, PackageTarget>>;
}

export interface PackageTable {
  /** By absolute path. JSON files have no dependencies. */
  readonly files: Readonly<Record<string, CommonJsFile>>;
  /** ES modules that CommonJS files require. Imported in this order before the app, because `require` is synchronous. */
  readonly required: readonly string[];
  /** Modules named in `import("...")`. Imported after the app, because files cannot be read later. Errors are ignored then. */
  readonly deferred: readonly string[];
  /** Why imports fail, by specifier. Used in error messages. */
  readonly refusals: Readonly<Record<string, string>>;
}

/** Symbol key of the function that runs a CommonJS file, given its path relative to the app's code folder. */
export const commonJsKey = "syncline.commonJs";
