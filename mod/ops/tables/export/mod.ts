/** Exports of tables to files or HTTP clients. */
export { ExportError } from "./exported_tables.ts";
export { type FileContents, holdContents, type HoldOptions } from "./exported_files.ts";
export {
  exportFiles,
  type ExportFilesOptions,
  exportNewest,
  type ExportSummary,
  type NewestExportOptions,
} from "./export_files.ts";
export { exportRoutes, type ExportRoutesOptions } from "./routes.ts";
