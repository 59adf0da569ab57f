/**
 * A table as CSV: a header with every field that some document has at its top, then a row for each document.
 *
 * Texts stand as they are, numbers and booleans as JSON, lists and objects as JSON too, `null` and what is missing as the
 * empty cell. Nothing is done about cells that a spreadsheet program takes for formulas: the file has to be read back.
 */
import type { Doc } from "../../../engine/mod.ts";
import { csvText } from "../../../kit/csv.ts";
import { csvLimits } from "../../../kit/limits.ts";
import { opsLimits } from "../../limits.ts";
import { ExportError } from "./export_error.ts";
import type { ExportPiece } from "./export_piece.ts";
import { PAUSE } from "./json_pieces.ts";

/** Characters that take as long as one cell, which may be empty. */
const CHARS_OF_A_CELL = 8;

const NOTHING: ExportPiece = { text: "", documents: 0 };

type Documents = () => Iterable<string>;

/** The documents are read twice, the first time for their columns. Throws as `exportPieces` does. */
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

/** `_id`, `_creationTime` and all others in the order in which documents have them. */
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
        throw unfit(
          table,
          `document "${doc._id}" has half a character in ${shown(field)}, which UTF-8 has no form for`,
        );
      }
      columns.add(field);
    }
    if (columns.size > csvLimits.columnsMax) {
      throw unfit(table, `its documents have more than ${csvLimits.columnsMax} different fields`);
    }
    work += text.length;
    if (work < opsLimits.exportPieceChars) continue;
    yield NOTHING;
    work = 0;
  }
  return [...columns];
}

function unfit(table: string, reason: string): ExportError {
  return new ExportError("not_csv", `Cannot write table "${table}" as CSV: ${reason}. Use the format jsonl`);
}

/** A field's name for a message, not too long. */
function shown(field: string): string {
  return `field ${JSON.stringify(field.slice(0, 80))}`;
}

function cellOf(doc: Doc, column: string): string {
  // A document may have any names, also those that every object has.
  const value = Object.hasOwn(doc, column) ? doc[column] : null;
  if (value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
