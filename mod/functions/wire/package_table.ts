/** What an isolate is told of the npm packages of its app: which CommonJS files there are and what each one asks for. */

/** What a specifier stands for in one file. */
export type PackageTarget =
  /** A CommonJS or JSON file of the table, by absolute path. */
  | { readonly file: string }
  /** A module that the isolate imports: `node:path`, `zod`, or the URL of a file. */
  | { readonly module: string }
  /** What using it throws. */
  | { readonly refused: string };

export interface CommonJsFile {
  /** By the text in `require("...")`. */
  readonly requires: Readonly<Record<string, PackageTarget>>;
  /** By the text in `import("...")`. */
  readonly imports: Readonly<Record<string, PackageTarget>>;
}

export interface PackageTable {
  /** By absolute path; JSON files ask for nothing. */
  readonly files: Readonly<Record<string, CommonJsFile>>;
  /** Modules that CommonJS files require, imported in this order before the app is: `require` cannot wait. */
  readonly required: readonly string[];
  /**
   * Modules that are named in `import("...")`, imported after the app: once it is loaded no file can be read. One that
   * fails fails again, in the hands of whoever imports it.
   */
  readonly deferred: readonly string[];
  /** Why something that is named in an import cannot be had, by its specifier: for the message of the failed import. */
  readonly refusals: Readonly<Record<string, string>>;
}

/** Where modules of the import map find the function that runs a CommonJS file, by its path below the folder of the app's code. */
export const commonJsKey = "syncline.commonJs";
