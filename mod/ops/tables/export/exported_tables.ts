/** Which tables can be exported: those of the app, and those of the service that app code may read, when they are named. */
import type { ExportSnapshot } from "../../../engine/mod.ts";
import { readableSystemTables } from "../../../functions/readable_system_tables.ts";
import { ExportError } from "./export_error.ts";

/** Names listed in a message. */
const NAMES_SHOWN = 50;

/** Tables of the app. Those that its schema no longer has are among them: their documents are still there. */
export function appTables({ tables }: ExportSnapshot): readonly string[] {
  return tables.filter((name) => !name.startsWith("_"));
}

/**
 * The tables named, each once. Throws an {@linkcode ExportError} that lists the tables there are when one is unknown;
 * tables with secrets are unknown.
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
      `There is no table "${name}" to export; the tables are ${
        known.slice(0, NAMES_SHOWN).join(", ")
      }${more}`,
    );
  }
  return [...new Set(names)];
}
