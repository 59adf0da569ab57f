/** Export formats. */
import { type TableFormat, tableFormats } from "../formats.ts";

/** File extension and content type by format. */
export const exportFormats = {
  jsonl: { extension: "jsonl", contentType: "application/x-ndjson; charset=utf-8" },
  csv: { extension: "csv", contentType: "text/csv; charset=utf-8; header=present" },
} as const satisfies Record<TableFormat, object>;

export function isExportFormat(name: string): name is TableFormat {
  return tableFormats.some((format) => format === name);
}
