/** Groups a file's rows into batches that fit one commit, with line numbers. */
import { CsvError, csvRows } from "../../../kit/csv.ts";
import { opsLimits } from "../../limits.ts";
import type { RowBatch } from "../../isolate_functions/import.ts";
import type { TableFormat } from "../formats.ts";
import { FileFault } from "./file_fault.ts";
import { jsonLines } from "./jsonl_lines.ts";

/** Rows of a file. */
export interface NumberedBatch {
  readonly batch: RowBatch;
  /** Line in which each row starts, from 1. */
  readonly lines: readonly number[];
}

/** A row to be batched. */
interface Row<Content> {
  readonly line: number;
  readonly content: Content;
  readonly chars: number;
}

/**
 * Yields the batches of a file, at least one. Throws a {@linkcode FileFault} where the file cannot be parsed further, after
 * yielding the rows before it.
 */
export async function* rowBatches(
  source: AsyncIterable<Uint8Array>,
  format: TableFormat,
): AsyncGenerator<NumberedBatch, void, void> {
  switch (format) {
    case "jsonl":
      for await (const rows of batched(jsonRows(source))) {
        yield {
          batch: { format, lines: rows.map(({ content }) => content) },
          lines: rows.map(({ line }) => line),
        };
      }
      return;
    case "csv": {
      const rows = cellRows(source);
      const header = await rows.next();
      if (header.done) {
        throw new FileFault(1, "the file has no header. The first line must contain the column names");
      }
      const columns = [...header.value.content];
      for await (const batch of batched(rows)) {
        yield {
          batch: { format, columns, rows: batch.map(({ content }) => [...content]) },
          lines: batch.map(({ line }) => line),
        };
      }
      return;
    }
    default:
      format satisfies never;
  }
}

async function* jsonRows(source: AsyncIterable<Uint8Array>): AsyncGenerator<Row<string>, void, void> {
  for await (const { line, text } of jsonLines(source)) yield { line, content: text, chars: text.length };
}

async function* cellRows(
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Row<readonly string[]>, void, void> {
  try {
    for await (const { line, cells } of csvRows(source)) {
      yield { line, content: cells, chars: cells.reduce((sum, { length }) => sum + length, 0) };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new FileFault(error.line, error.message.replace(/^Line \d+: /, ""), { cause: error });
  }
}

/** Groups rows within the limits; an empty file is one empty batch. */
async function* batched<Content>(
  rows: AsyncIterable<Row<Content>>,
): AsyncGenerator<readonly Row<Content>[], void, void> {
  const { importBatchRowsMax, importBatchCharsMax } = opsLimits;
  let batch: Row<Content>[] = [];
  let chars = 0;
  let given = false;
  try {
    for await (const row of rows) {
      if (
        batch.length >= importBatchRowsMax || (batch.length > 0 && chars + row.chars > importBatchCharsMax)
      ) {
        yield batch;
        given = true;
        batch = [];
        chars = 0;
      }
      batch.push(row);
      chars += row.chars;
    }
  } catch (error) {
    if (error instanceof FileFault && batch.length > 0) yield batch;
    throw error;
  }
  if (batch.length > 0 || !given) yield batch;
}
