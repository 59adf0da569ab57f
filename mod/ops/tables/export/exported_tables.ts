/** Exportable tables: the app's, and system tables readable by app code if requested by name. */
import type { ExportSnapshot } from "../../../engine/mod.ts";
import { readableSystemTables } from "../../../functions/readable_system_tables.ts";
import { ExportError } from "./export_error.ts";

/** Maximum number of names listed in a message. */
const NAMES_SHOWN = 50;

/** Returns the app's tables, including those removed from its schema, whose documents are kept. */
export function appTables({ tables }: ExportSnapshot): readonly string[] {
  return tables.filter((name) => !name.startsWith("_"));
}

/**
 * Returns the named tables without duplicates. Throws an {@linkcode ExportError} listing the available tables if one is unknown,
 * which includes tables with secrets.
 */
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
