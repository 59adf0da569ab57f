/** Imports of tables. */
export {
  type FileSource,
  fileSource,
  Importer,
  type ImportProgress,
  type ImportSource,
  type ImportSummary,
  tableNumbersOf,
} from "./importer.ts";
export { ExportedFolder, folderNames } from "./exported_folder.ts";
export type { FinishedImport, RunningImport } from "./import_status.ts";
export { ImportError, type ImportErrorKind } from "./import_error.ts";
export type { ImportMode } from "../formats.ts";
export { importRoutes, type ImportRoutesOptions } from "./routes.ts";
