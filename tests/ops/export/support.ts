/** Shared helpers of the export tests. */
import { openExport } from "../../../mod/engine/mod.ts";
import type { TableFormat } from "../../../mod/ops/tables/mod.ts";
import { exportPieces } from "../../../mod/ops/tables/export/pieces.ts";
import { anyTable, TestDatabase } from "../../engine/support.ts";

/** A database with one table `items` of any fields, and one commit per document. */
export function databaseOf(documents: readonly Record<string, unknown>[]): TestDatabase {
  const database = new TestDatabase({ items: anyTable() });
  for (const fields of documents) database.commit((tx) => tx.insert("items", fields));
  return database;
}

/** The complete output of a table. */
export function textOf(path: string, format: TableFormat, table = "items"): string {
  using snapshot = openExport(path);
  let text = "";
  for (const piece of exportPieces(snapshot, { table, format })) text += piece.text;
  return text;
}
