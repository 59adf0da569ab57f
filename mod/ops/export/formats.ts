/** The formats of exported tables. */

/** Each with the ending of its files and its content type. */
export const exportFormats = {
  /** One document in a line, as JSON. */
  jsonl: { extension: "jsonl", contentType: "application/x-ndjson; charset=utf-8" },
  /** RFC 4180 with a header row. */
  csv: { extension: "csv", contentType: "text/csv; charset=utf-8; header=present" },
} as const;

export type ExportFormat = keyof typeof exportFormats;

export function isExportFormat(name: string): name is ExportFormat {
  return Object.hasOwn(exportFormats, name);
}
