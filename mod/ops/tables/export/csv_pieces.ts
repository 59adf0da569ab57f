/**
 * Writes a table as CSV: a header with every top-level field of any document, and a row per document.
 *
 * Strings are written as they are, all other values as JSON, `null` and missing values as empty cells. Cells that spreadsheet
 * programs interpret as formulas are not escaped, because the file must be importable.
 */
import type { Doc } from "../../../engine/mod.ts";
import { csvText } from "../../../kit/csv.ts";
import { csvLimits } from "../../../kit/limits.ts";
import { opsLimits } from "../../limits.ts";
import { ExportError } from "./export_error.ts";
import type { ExportPiece } from "./export_piece.ts";
import { PAUSE } from "./json_pieces.ts";

/** Cost of a cell in characters, since it may be empty. */
const CHARS_OF_A_CELL = 8;

const NOTHING: ExportPiece = { text: "", documents: 0 };

type Documents = () => Iterable<string>;

/** Reads the documents twice, first for the columns. Throws like `exportPieces`. */
export function* csvPieces(documents: Documents, table: string): Generator<ExportPiece, void, void> {
  const columns = yield* columnsOf(documents, table);
  yield { text: csvText([columns]), documents: 0 };
  let rows: string[][] = [];
  let work = 0;
  for (const text of documents()) {
    if (text === PAUSE) {
      yield { text: csvText(rows), documents: rows.length };
      rows = [];
      work = 0;
      continue;
    }
    const doc = JSON.parse(text) as Doc;
    rows.push(columns.map((column) => cellOf(doc, column)));
    work += text.length + columns.length * CHARS_OF_A_CELL;
    if (work < opsLimits.exportPieceChars) continue;
    yield { text: csvText(rows), documents: rows.length };
    rows = [];
    work = 0;
  }
  if (rows.length > 0) yield { text: csvText(rows), documents: rows.length };
}

/** Returns `_id`, `_creationTime` and all other fields in the order of their first occurrence. */
function* columnsOf(
  documents: Documents,
  table: string,
): Generator<ExportPiece, readonly string[], void> {
  const columns = new Set(["_id", "_creationTime"]);
  let work = 0;
  for (const text of documents()) {
    if (text === PAUSE) {
      yield NOTHING;
      continue;
    }
    const doc = JSON.parse(text) as Doc;
    for (const [field, value] of Object.entries(doc)) {
      if (!field.isWellFormed() || (typeof value === "string" && !value.isWellFormed())) {
        throw notCsv(
          table,
          `document "${doc._id}" has a lone surrogate in ${shown(field)}, which UTF-8 cannot represent`,
        );
      }
      columns.add(field);
    }
    if (columns.size > csvLimits.columnsMax) {
      throw notCsv(table, `its documents have more than ${csvLimits.columnsMax} different fields`);
    }
    work += text.length;
    if (work < opsLimits.exportPieceChars) continue;
    yield NOTHING;
    work = 0;
  }
  return [...columns];
}

function notCsv(table: string, reason: string): ExportError {
  return new ExportError("not_csv", `Cannot write table "${table}" as CSV: ${reason}. Use the format jsonl`);
}

/** Truncates a field name for a message. */
function shown(field: string): string {
  return `field ${JSON.stringify(field.slice(0, 80))}`;
}

function cellOf(doc: Doc, column: string): string {
  // Field names may collide with properties of Object.prototype.
  const value = Object.hasOwn(doc, column) ? doc[column] : null;
  if (value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
