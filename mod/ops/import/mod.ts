/** Imports of tables, for the server. */
export { ImportError, type ImportErrorKind } from "./import_error.ts";
export {
  Importer,
  type ImportMode,
  importModes,
  type ImportProgress,
  type ImportSource,
  type ImportSummary,
} from "./importer.ts";
export { type ImportFormat, importFormats } from "./row_batches.ts";
