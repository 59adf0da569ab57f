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
export {
  type FinishedImport,
  ImportError,
  type ImportErrorKind,
  type RunningImport,
} from "./import_status.ts";
export type { ImportMode } from "../mod.ts";
export { importRoutes, type ImportRoutesOptions } from "./routes.ts";
