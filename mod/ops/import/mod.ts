/** Imports of tables, for the server. */
export { fileSource } from "./file_source.ts";
export { ImportError, type ImportErrorKind } from "./import_error.ts";
export {
  Importer,
  type ImportMode,
  importModes,
  type ImportProgress,
  type ImportSource,
  type ImportSummary,
} from "./importer.ts";
export { importRoutes, type ImportRoutesOptions } from "./routes.ts";
export { type ImportFormat, importFormats } from "./row_batches.ts";
export { tableNumbersOf } from "./table_numbers.ts";
