/** A table as the text of a file, in pieces that are made quickly. */
import type { ExportSnapshot } from "../../../engine/mod.ts";
import { csvPieces } from "./csv_pieces.ts";
import type { TableFormat } from "../formats.ts";
import type { ExportPiece } from "./export_piece.ts";
import { jsonPieces } from "./json_pieces.ts";
import { type Shown, shownDocuments } from "./shown_documents.ts";

/**
 * The whole text of a table, or of the documents in it that a filter shows, which the snapshot must have. Each piece takes little time, so that others can do something
 * between two of them. Throws an `ExportError` when the documents do not fit into the format, before the first text.
 */
export function exportPieces(
  snapshot: ExportSnapshot,
  { table, format, shown }: {
    readonly table: string;
    readonly format: TableFormat;
    /** All documents without. */
    readonly shown?: Shown | undefined;
  },
): Generator<ExportPiece, void, void> {
  const documents = shown === undefined
    ? () => snapshot.documents(table)
    : shownDocuments(snapshot, { table, shown });
  return format === "csv" ? csvPieces(documents, table) : jsonPieces(documents());
}
