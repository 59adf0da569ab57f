/** Groups a file's rows into batches that fit one commit, with line numbers. */
import { Buffer } from "node:buffer";
import { yieldToEventLoop } from "../../../kit/clock.ts";
import { CsvError, csvRows } from "../../../kit/csv.ts";
import type { RowBatch } from "../../isolate_functions/import.ts";
import { opsLimits } from "../../limits.ts";
import type { TableFormat } from "../mod.ts";
import { FileFault } from "./import_status.ts";

/** A non-blank line. */
export interface JsonLine {
  /** Starts at 1. */
  readonly line: number;
  readonly text: string;
}

const LF = 0x0a;
const BLANK = /^\s*$/;
/** Number of blank lines after which the event loop gets a tick. */
const BLANK_LINES_AT_ONCE = 4_096;

/** Yields non-blank lines (LF or CRLF, no byte order mark). Throws a {@linkcode FileFault} for long or non-UTF-8 ones. */
export async function* jsonLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<JsonLine, void, void> {
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  let line = 1;
  let blank = 0;

  function take(last: Uint8Array): JsonLine | null {
    const whole = pieces.length === 0 ? last : Buffer.concat([...pieces, last]);
    pieces = [];
    bytes = 0;
    const number = line++;
    let text: string;
    try {
      text = utf8.decode(whole);
    } catch (cause) {
      throw new FileFault(number, "not UTF-8; save the file as UTF-8", { cause });
    }
    return BLANK.test(text) ? null : { line: number, text };
  }

  for await (const piece of source) {
    let from = 0;
    for (let end = piece.indexOf(LF); end >= 0; end = piece.indexOf(LF, from)) {
      checkLength(bytes + end - from, line);
      const found = take(piece.subarray(from, end));
      if (found !== null) yield found;
      else if (++blank % BLANK_LINES_AT_ONCE === 0) await yieldToEventLoop();
      from = end + 1;
    }
    if (from === piece.length) continue;
    bytes += piece.length - from;
    checkLength(bytes, line);
    // Copied, because the source may reuse its buffer.
    pieces.push(piece.slice(from));
  }
  const found = take(new Uint8Array());
  if (found !== null) yield found;
}

function checkLength(bytes: number, line: number): void {
  const { importLineBytesMax } = opsLimits;
  if (bytes <= importLineBytesMax) return;
  throw new FileFault(
    line,
    `the line is longer than ${importLineBytesMax} bytes. Put each document on its own line`,
  );
}

export interface NumberedBatch {
  readonly batch: RowBatch;
  /** Line in which each row starts, from 1. */
  readonly lines: readonly number[];
}

interface Row<Content> {
  readonly line: number;
  readonly content: Content;
  readonly chars: number;
}

/** Yields at least one batch. Throws a {@linkcode FileFault} at a parse error, after the rows before it. */
export async function* rowBatches(
  source: AsyncIterable<Uint8Array>,
  { format, columns: mapping }: {
    readonly format: TableFormat;
    /** Fields of the columns of a CSV file in place of its header; `null` skips a column. */
    readonly columns?: readonly (string | null)[];
  },
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
      const fields = mapping ?? header.value.content;
      if (fields.length !== header.value.content.length) {
        await rows.return();
        throw new FileFault(
          1,
          `the header has ${header.value.content.length} columns, and ${fields.length} fields were given for them`,
        );
      }
      const columns = fields.filter((field) => field !== null);
      for await (const batch of batched(rows)) {
        yield {
          batch: {
            format,
            columns,
            rows: batch.map(({ content }) => content.filter((_, column) => fields[column] !== null)),
          },
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
