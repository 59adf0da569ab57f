/** Produces the output of a table in small pieces. */
import type { ExportSnapshot } from "../../../engine/mod.ts";
import { csvPieces } from "./csv_pieces.ts";
import type { TableFormat } from "../formats.ts";
import type { ExportPiece } from "./export_piece.ts";
import { jsonPieces } from "./json_pieces.ts";
import { type DocumentFilter, filteredDocuments } from "./shown_documents.ts";

/**
 * Returns the output of a table, or of the documents matching a filter. Pieces are small, so that other work can run in between.
 * Throws an `ExportError` before the first output if the documents cannot be represented in the format.
 */
export function exportPieces(
  snapshot: ExportSnapshot,
  { table, format, shown }: {
    readonly table: string;
    readonly format: TableFormat;
    /** Omit to export all documents. */
    readonly shown?: DocumentFilter | undefined;
  },
): Generator<ExportPiece, void, void> {
  const documents = shown === undefined
    ? () => snapshot.documents(table)
    : filteredDocuments(snapshot, { table, shown });
  return format === "csv" ? csvPieces(documents, table) : jsonPieces(documents());
}
