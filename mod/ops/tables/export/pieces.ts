/** Produces the output of a table, or of the documents that match a filter, in small pieces. */
import { z } from "zod";
import {
  type Doc,
  EngineError,
  type ExportedRows,
  type ExportSnapshot,
  type IndexBounds,
} from "../../../engine/mod.ts";
import { csvText } from "../../../kit/csv.ts";
import { csvLimits } from "../../../kit/limits.ts";
import { matchesConditions, valueOf, whereArgs } from "../../admin/where_args.ts";
import { opsLimits } from "../../limits.ts";
import type { TableFormat } from "../mod.ts";
import { ExportError } from "./exported_tables.ts";

/** A part of the output, and the number of documents it completes. A piece without text is a pause. */
export interface ExportPiece {
  readonly text: string;
  readonly documents: number;
}

/** Yielded among documents after many reads, so that the consumer can do other work. */
const PAUSE = "";

/** Returns the lines of documents given as JSON. `_id` and `_creationTime` come first, other fields as stored. */
function* jsonPieces(documents: Iterable<string>): Generator<ExportPiece, void, void> {
  let text = "";
  let count = 0;
  for (const document of documents) {
    if (document === PAUSE) {
      yield { text, documents: count };
      text = "";
      count = 0;
      continue;
    }
    text += `${systemFieldsFirst(document)}\n`;
    count++;
    if (text.length < opsLimits.exportPieceChars) continue;
    yield { text, documents: count };
    text = "";
    count = 0;
  }
  if (count > 0) yield { text, documents: count };
}

const AS_IT_SHOULD_BE = /^\{"_id":"[0-9a-z]+","_creationTime":/;

/** JavaScript orders integer-like field names before all others. */
function systemFieldsFirst(document: string): string {
  if (AS_IT_SHOULD_BE.test(document)) return document;
  const { _id, _creationTime, ...fields } = JSON.parse(document);
  const system = `"_id":${JSON.stringify(_id)},"_creationTime":${JSON.stringify(_creationTime)}`;
  const others = JSON.stringify(fields).slice(1);
  return `{${system}${others === "}" ? "" : ","}${others}`;
}

/** Cost of a cell in characters, since it may be empty. */
const CHARS_OF_A_CELL = 8;

const NOTHING: ExportPiece = { text: "", documents: 0 };

type Documents = () => Iterable<string>;

/**
 * Reads the documents twice, first for the columns: every top-level field of any document. Strings are written as they
 * are, other values as JSON, `null` and missing values as empty cells. Formulas are not escaped, because the file must be
 * importable. Throws like `exportPieces`.
 */
function* csvPieces(documents: Documents, table: string): Generator<ExportPiece, void, void> {
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

const { table: _, ...shownArgs } = whereArgs;
const shownSchema = z.strictObject(shownArgs);

/** Engine errors for filters that do not match the table. */
const INVALID_FILTER_CODES: ReadonlySet<string> = new Set(["unknown_index", "bad_bounds", "bad_search"]);

export type DocumentFilter = z.output<typeof shownSchema>;

/** Parses a filter in JSON. Throws an `ExportError`. */
export function parseFilter(text: string): DocumentFilter {
  const { exportWhereCharsMax } = opsLimits;
  if (text.length > exportWhereCharsMax) {
    throw new ExportError("bad_filter", `The filter exceeds ${exportWhereCharsMax} characters`);
  }
  const parsed = shownSchema.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = issue?.path.join(".") || "it";
  throw new ExportError("bad_filter", `Invalid filter: ${at}: ${issue?.message ?? "invalid"}`);
}

/** Returns a function that iterates over the documents as JSON. A search is ranked once for all iterations. */
function filteredDocuments(
  snapshot: ExportSnapshot,
  selection: { readonly table: string; readonly shown: DocumentFilter },
): () => Generator<string, void, void> {
  let rows: ExportedRows | undefined;
  return () => scan(snapshot, { ...selection, rows: () => rows ??= rowsOf(selection.shown) });
}

/** Yields `PAUSE` after a number of characters read. Throws an `ExportError` for an unsuitable index. */
function* scan(
  snapshot: ExportSnapshot,
  { table, shown, rows }: {
    readonly table: string;
    readonly shown: DocumentFilter;
    readonly rows: () => ExportedRows;
  },
): Generator<string, void, void> {
  const { conditions } = shown;
  let read = 0;
  try {
    for (const { doc, text } of snapshot.rows(table, rows())) {
      if (matchesConditions(doc, conditions)) yield text;
      read += text.length;
      if (read < opsLimits.exportPieceChars) continue;
      yield PAUSE;
      read = 0;
    }
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    if (!INVALID_FILTER_CODES.has(error.code)) throw error;
    throw new ExportError("bad_filter", error.message, { cause: error });
  }
}

function rowsOf({ index, range, search, order }: DocumentFilter): ExportedRows {
  if (search !== undefined) {
    if (index !== undefined || range !== undefined || order !== undefined) {
      throw new ExportError("bad_filter", "A search cannot be combined with an index or an order");
    }
    const filters = Object.entries(search.eq).map(([field, value]) => [field, valueOf(value)] as const);
    return { search: search.index, options: { query: search.text, filters } };
  }
  return {
    index: index ?? "by_creation_time",
    bounds: range === undefined ? { eq: [] } : boundsOf(range),
    order: order ?? (index === undefined ? "desc" : "asc"),
  };
}

function boundsOf({ eq, gt, gte, lt, lte }: NonNullable<DocumentFilter["range"]>): IndexBounds {
  if (gt !== undefined && gte !== undefined || lt !== undefined && lte !== undefined) {
    throw new ExportError("bad_filter", "A range can have only one bound at each end");
  }
  const bound = (open: unknown, closed: unknown) => ({
    value: valueOf(open === undefined ? closed : open),
    inclusive: open === undefined,
  });
  return {
    eq: eq.map(valueOf),
    ...((gt !== undefined || gte !== undefined) && { lower: bound(gt, gte) }),
    ...((lt !== undefined || lte !== undefined) && { upper: bound(lt, lte) }),
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the output of a table or filter, in small pieces. Throws an `ExportError` before the first one. */
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
