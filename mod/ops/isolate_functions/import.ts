/**
 * Imports as the writer sees them: a batch of rows of one table is checked, or checked and written, in one mutation. Rows
 * come as they stand in the file, so that reading them costs main nothing. Tables of the service are not there.
 */
import { z } from "zod";
import { EngineError } from "../../engine/mod.ts";
import { UserError } from "../../errors.ts";
import { type Id, id } from "../../functions/api/service.ts";
import type { DeletedSome, ImportApi } from "../../functions/isolate/mod.ts";
import { noteImported } from "../admin/isolate_functions/work.ts";
import { type AdminMutationCtx, systemMutation } from "../admin/tables.ts";
import { opsLimits } from "../limits.ts";
import { CellReader, ColumnsError } from "./cell_values.ts";

/** Rows of a file. */
const rowBatch = z.discriminatedUnion("format", [
  /** `lines`: each the JSON text of one document. */
  z.strictObject({ format: z.literal("jsonl"), lines: z.array(z.string()) }),
  /** `columns`: what the header names; `rows`: the cells of each row. */
  z.strictObject({
    format: z.literal("csv"),
    columns: z.array(z.string()),
    rows: z.array(z.array(z.string())),
  }),
]);

/** Rows of a file, as they are handed to the writer. */
export type RowBatch = z.output<typeof rowBatch>;

/** What is wrong with a row; `row` counts from 0 within the batch. */
export interface RowFault {
  readonly row: number;
  readonly message: string;
}

/** What a check found. */
export interface BatchCheck {
  /** Up to `importFaultsMax`. */
  readonly faults: readonly RowFault[];
  /** The id that each row comes with; `null` for rows that get one. */
  readonly ids: readonly (string | null)[];
}

/** The document that tells of the import; there is none without a server. */
const workId = id("_admin_work").optional();

const batchArgs = { table: z.string(), mode: z.enum(["insert", "upsert"]), batch: rowBatch };

/**
 * Checks rows as if they were written; nothing is. Throws `UserError`s with the codes `unknown_table` and
 * `unknown_columns`; what is wrong with rows is in the answer.
 */
export const check = systemMutation({
  args: batchArgs,
  handler: (ctx, { table, mode, batch }): BatchCheck => {
    const importer = importerOf(ctx);
    const faults: RowFault[] = [];
    const ids: (string | null)[] = [];
    const before = importer.savepoint();
    for (const [row, read] of documentsOf(importer, { table, batch }).entries()) {
      let id: string | null = null;
      try {
        const document = read();
        if (typeof document["_id"] === "string") id = document["_id"];
        importer.store(table, document, mode);
      } catch (error) {
        faults.push({ row, message: faultText(error) });
        if (faults.length >= opsLimits.importFaultsMax) break;
      }
      ids.push(id);
    }
    before.rollback();
    return { faults, ids };
  },
});

/**
 * Writes rows, all or none. Throws what {@linkcode check} does, `bad_row` with a {@linkcode RowFault} as its data, and
 * `import_ended`.
 */
export const write = systemMutation({
  args: { ...batchArgs, workId },
  handler: async (ctx, { table, mode, batch, workId }): Promise<void> => {
    const importer = importerOf(ctx);
    const documents = documentsOf(importer, { table, batch });
    await noteIn(ctx, workId, { changed: documents.length });
    for (const [row, read] of documents.entries()) {
      try {
        importer.store(table, read(), mode);
      } catch (error) {
        const message = faultText(error);
        throw new UserError("bad_row", message, { row, message } satisfies RowFault);
      }
    }
  },
});

/**
 * Deletes some documents of a table, of those that were there when the first call was made: it has `until: null`, each
 * further one the `rest` of the one before. Throws `unknown_table` and `import_ended`.
 */
export const empty = systemMutation({
  args: { table: z.string(), until: z.string().nullable(), workId },
  handler: async (ctx, { table, until, workId }): Promise<DeletedSome> => {
    const importer = importerOf(ctx);
    tableSchema(importer, table);
    const some = importer.deleteSome(table, {
      rowsMax: opsLimits.importDeletedRowsMax,
      charsMax: opsLimits.importDeletedCharsMax,
      until,
    });
    await noteIn(ctx, workId, { emptied: some.deleted });
    return some;
  },
});

async function noteIn(
  ctx: AdminMutationCtx,
  workId: Id<"_admin_work"> | undefined,
  done: Parameters<typeof noteImported>[2],
): Promise<void> {
  if (workId !== undefined) await noteImported(ctx, workId, done);
}

/** Functions of the service have one, which the type of `ctx` that authors know does not say. */
function importerOf(ctx: object): ImportApi {
  return (ctx as { readonly importer: ImportApi }).importer;
}

function tableSchema(importer: ImportApi, table: string): z.ZodType {
  if (table.startsWith("_")) {
    throw new UserError(
      "unknown_table",
      `Table "${table}" belongs to the service: nothing can be imported into it`,
    );
  }
  try {
    return importer.schema(table);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UserError("unknown_table", error.message);
  }
}

/** A function for each row that makes its document, or throws with what is wrong with it. */
function documentsOf(
  importer: ImportApi,
  { table, batch }: { readonly table: string; readonly batch: RowBatch },
): (() => Record<string, unknown>)[] {
  const schema = tableSchema(importer, table);
  if (batch.format === "jsonl") return batch.lines.map((line) => () => jsonDocument(line));
  try {
    const reader = new CellReader(table, schema, batch.columns);
    return batch.rows.map((cells) => () => reader.document(cells));
  } catch (error) {
    if (!(error instanceof ColumnsError)) throw error;
    throw new UserError("unknown_columns", error.message);
  }
}

function jsonDocument(line: string): Record<string, unknown> {
  const value: unknown = JSON.parse(line);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  const what = value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`;
  throw new TypeError(`Expected a JSON object with the fields of a document, received ${what}`);
}

/** What is wrong with a row. Rethrows errors that are not the row's. */
function faultText(error: unknown): string {
  if (error instanceof EngineError && (error.code === "failed_group" || error.code === "ended")) throw error;
  const text = error instanceof SyntaxError
    ? `Not JSON: ${error.message}`
    : error instanceof Error
    ? error.message
    : String(error);
  const { importFaultCharsMax } = opsLimits;
  return text.length > importFaultCharsMax ? `${text.slice(0, importFaultCharsMax)}…` : text;
}
