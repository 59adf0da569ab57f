/** Imports of tables. */
export { type FileSource, fileSource } from "./file_source.ts";
export { ExportedFolder, folderNames } from "./exported_folder.ts";
export type { FinishedImport, RunningImport } from "./import_status.ts";
export { ImportError, type ImportErrorKind } from "./import_error.ts";
export { Importer, type ImportProgress, type ImportSource, type ImportSummary } from "./importer.ts";
export type { ImportMode } from "./modes.ts";
export { importRoutes, type ImportRoutesOptions } from "./routes.ts";
export { tableNumbersOf } from "./table_numbers.ts";
