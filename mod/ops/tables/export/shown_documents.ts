/** Selects the documents that match an administrator's filter in a snapshot, in the filter's order. */
import { z } from "zod";
import {
  EngineError,
  type ExportedRows,
  type ExportSnapshot,
  type IndexBounds,
} from "../../../engine/mod.ts";
import { passes } from "../../admin/conditions.ts";
import { valueOf, whereArgs } from "../../admin/where_args.ts";
import { opsLimits } from "../../limits.ts";
import { ExportError } from "./export_error.ts";
import { PAUSE } from "./json_pieces.ts";

const { table: _, ...shownArgs } = whereArgs;
const shownSchema = z.strictObject(shownArgs);

/** Engine errors for filters that do not match the table. */
const INVALID_FILTER_CODES: ReadonlySet<string> = new Set(["unknown_index", "bad_bounds", "bad_search"]);

/** A filter on a table. */
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
export function filteredDocuments(
  snapshot: ExportSnapshot,
  asked: { readonly table: string; readonly shown: DocumentFilter },
): () => Generator<string, void, void> {
  let rows: ExportedRows | undefined;
  return () => scan(snapshot, { ...asked, rows: () => rows ??= rowsOf(asked.shown) });
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
      if (passes(doc, conditions)) yield text;
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
