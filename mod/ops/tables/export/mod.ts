/** Exports of tables to files or HTTP clients. */
export { ExportError } from "./export_error.ts";
export type { FileContents } from "./exported_files.ts";
export { holdContents, type HoldOptions } from "./held_contents.ts";
export { exportFiles, type ExportFilesOptions, type ExportSummary } from "./export_files.ts";
export { exportNewest, type NewestExportOptions } from "./newest_export.ts";
export { exportRoutes, type ExportRoutesOptions } from "./routes.ts";
