/** Exportable tables, formats and errors of exports. */
import type { ExportSnapshot } from "../../../engine/mod.ts";
import { readableSystemTables } from "../../../functions/readable_system_tables.ts";
import { type TableFormat, tableFormats } from "../mod.ts";

/**
 * A rejected or failed export, with a message for the user:
 * - `unknown_table`: no exportable table has this name;
 * - `bad_filter`: the filter is invalid or does not match the table;
 * - `not_csv`: the documents cannot be represented in CSV;
 * - `failed`: files could not be written.
 */
export class ExportError extends Error {
  override readonly name = "ExportError";
  readonly code: "unknown_table" | "bad_filter" | "not_csv" | "failed";

  constructor(code: ExportError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The contents of a file referenced by the snapshot are missing. */
export class MissingFileError extends ExportError {
  readonly blob: string;

  constructor(id: string, blob: string) {
    super(
      "failed",
      `The contents of file ${id} are not in the data folder: the file was just deleted, or files are in a bucket`,
    );
    this.blob = blob;
  }
}

export const exportFormats = {
  jsonl: { extension: "jsonl", contentType: "application/x-ndjson; charset=utf-8" },
  csv: { extension: "csv", contentType: "text/csv; charset=utf-8; header=present" },
} as const satisfies Record<TableFormat, object>;

export function isExportFormat(name: string): name is TableFormat {
  return tableFormats.some((format) => format === name);
}

/** Maximum number of names listed in a message. */
const NAMES_SHOWN = 50;

/** Returns the app's tables, including those removed from its schema, whose documents are kept. */
export function appTables({ tables }: ExportSnapshot): readonly string[] {
  return tables.filter((name) => !name.startsWith("_"));
}

/** Returns the named tables. Throws an {@linkcode ExportError} for an unknown one or one with secrets. */
export function namedTables(snapshot: ExportSnapshot, names: readonly string[]): readonly string[] {
  const known = [
    ...appTables(snapshot),
    ...snapshot.tables.filter((name) => readableSystemTables.has(name)),
  ];
  for (const name of names) {
    if (known.includes(name)) continue;
    const more = known.length > NAMES_SHOWN ? ` and ${known.length - NAMES_SHOWN} more` : "";
    throw new ExportError(
      "unknown_table",
      `Cannot export table "${name}": not found. Available tables: ${
        known.slice(0, NAMES_SHOWN).join(", ")
      }${more}`,
    );
  }
  return [...new Set(names)];
}
