/** Import functions: a mutation checks or writes a batch of rows, unparsed to save time of main. No system tables. */
import { z } from "zod";
import { EngineError } from "../../engine/mod.ts";
import { UserError } from "../../errors.ts";
import { type Id, id } from "../../functions/api/service.ts";
import type { DeletedSome, ImportApi } from "../../functions/isolate/mod.ts";
import { recordImport } from "../admin/isolate_functions/work.ts";
import { type AdminMutationCtx, systemMutation } from "../admin/tables.ts";
import { opsLimits } from "../limits.ts";
import { CellReader, ColumnsError } from "./cell_values.ts";

const rowBatch = z.discriminatedUnion("format", [
  /** `lines`: one JSON document per line. */
  z.strictObject({ format: z.literal("jsonl"), lines: z.array(z.string()) }),
  /** `columns`: the header; `rows`: the cells of each row. */
  z.strictObject({
    format: z.literal("csv"),
    columns: z.array(z.string()),
    rows: z.array(z.array(z.string())),
  }),
]);

export type RowBatch = z.output<typeof rowBatch>;

/** An invalid row; `row` is its index in the batch. */
export interface RowFault {
  readonly row: number;
  readonly message: string;
}

export interface BatchCheck {
  /** At most `importFaultsMax`. */
  readonly faults: readonly RowFault[];
  /** The `_id` of each row; `null` if it gets a new one. */
  readonly ids: readonly (string | null)[];
}

/** Document that tracks the import; absent without a server. */
const workId = id("_admin_work").optional();

const batchArgs = { table: z.string(), mode: z.enum(["insert", "upsert"]), batch: rowBatch };

/** Validates rows and returns the invalid ones. Throws `unknown_table` and `unknown_columns`. */
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

/** Writes rows atomically. Throws as {@linkcode check}, `bad_row` with a {@linkcode RowFault}, and `import_ended`. */
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

/** Deletes a batch of a table: first with `until: null`, then with the last `rest`. Throws `unknown_table`, `import_ended`. */
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
  done: Parameters<typeof recordImport>[2],
): Promise<void> {
  if (workId !== undefined) await recordImport(ctx, workId, done);
}

/** System functions have an import API that the public `ctx` type does not declare. */
function importerOf(ctx: object): ImportApi {
  return (ctx as { readonly importer: ImportApi }).importer;
}

function tableSchema(importer: ImportApi, table: string): z.ZodType {
  if (table.startsWith("_")) {
    throw new UserError(
      "unknown_table",
      `Cannot import into table "${table}": it is a system table`,
    );
  }
  try {
    return importer.schema(table);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UserError("unknown_table", error.message);
  }
}

/** Returns a function per row that parses it or throws its error. */
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

/** Error message of a row. Rethrows other errors. */
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
