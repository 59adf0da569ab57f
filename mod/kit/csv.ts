/** Reads and writes CSV (RFC 4180, UTF-8). Cells are strings; a quoted empty cell equals a bare one. */
import { CsvError as LibraryError, parse } from "csv-parse";
import { stringify } from "csv-stringify/sync";
import { csvLimits } from "./limits.ts";
import { yieldToEventLoop } from "./clock.ts";

/** The file is not CSV or exceeds the limits. The message names the error and the line. */
export class CsvError extends Error {
  override readonly name = "CsvError";
  /** First line of the row, counted from 1. */
  readonly line: number;

  constructor(line: number, reason: string, options?: ErrorOptions) {
    super(`Line ${line}: ${reason}`, options);
    this.line = line;
  }
}

export interface CsvRow {
  /** First line of the row, counted from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

/** Line ends and the byte order mark are quoted, besides commas and quotes. */
const QUOTED_TOO = /[\r\n\ufeff]/;

/** Returns rows as CSV; each ends in CRLF. Cells must not have lone surrogates. */
export function csvText(rows: readonly (readonly string[])[]): string {
  return stringify(rows as string[][], { record_delimiter: "\r\n", quoted_match: QUOTED_TOO });
}

/** Bytes parsed at once: bounds the rows in memory and the pause of the event loop. */
const SLICE_BYTES = 8 * 1024;
const LF = 0x0a;
const CR = 0x0d;
const QUOTE = 0x22;
const COMMA = 0x2c;

/**
 * Parses a stream and yields its rows, the header first. Rows end in CRLF or LF and have as many cells as the first. A
 * byte order mark is skipped, and so are empty lines where rows have several cells. Throws a {@linkcode CsvError} after
 * the rows before the error. Closes the source when the caller stops early.
 */
export async function* csvRows(source: AsyncIterable<Uint8Array>): AsyncGenerator<CsvRow, void, void> {
  const parser = new RowParser();
  for await (const piece of source) {
    for (let from = 0; from < piece.length; from += SLICE_BYTES) {
      await yieldToEventLoop();
      yield* rowsBefore(parser, await parser.read(piece.subarray(from, from + SLICE_BYTES)));
    }
  }
  yield* rowsBefore(parser, await parser.end());
}

function* rowsBefore(parser: RowParser, fault: CsvError | null): Generator<CsvRow, void, void> {
  yield* parser.take();
  if (fault !== null) throw fault;
}

/** Drives the library's parser synchronously, so that rows before an error are not lost. */
class RowParser {
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  readonly #parser = parse({
    bom: true,
    record_delimiter: ["\r\n", "\n"],
    // Checked in `read`, with a better message.
    relax_column_count: true,
    // Returning `null` keeps the library's own output empty.
    on_record: (cells: string[]): null => {
      this.#add(cells);
      return null;
    },
  });
  readonly #lines = new RowLines();
  #rows: CsvRow[] = [];
  /** Cells of the first row. */
  #columns = 0;
  /** Bytes up to this line are valid UTF-8. */
  #checkedLine = 1;
  #rowBytes = 0;

  constructor() {
    // The callbacks below report errors.
    this.#parser.on("error", () => {});
  }

  /** Reads the next bytes; returns their error, if any. */
  async read(bytes: Uint8Array): Promise<CsvError | null> {
    const fault = this.#checkUtf8(bytes);
    if (fault !== null) return fault;
    const rows = this.#lines.withoutBlank(bytes);
    this.#rowBytes += rows.length;
    const unfit = await this.#run((done) => this.#parser.write(rows, done));
    if (unfit !== null) return unfit;
    if (this.#rowBytes <= csvLimits.rowBytesMax) return null;
    return new CsvError(
      this.#lines.current,
      `the row is longer than ${csvLimits.rowBytesMax} bytes; is a quote left open?`,
    );
  }

  /** Reads the end of the file. */
  async end(): Promise<CsvError | null> {
    return this.#checkUtf8(null) ??
      await this.#run((done) => this.#parser.end(this.#lines.heldBack(), done));
  }

  /** Returns the rows read since the last call. */
  take(): readonly CsvRow[] {
    const rows = this.#rows;
    this.#rows = [];
    return rows;
  }

  #run(feed: (done: (error?: Error | null) => void) => void): Promise<CsvError | null> {
    return new Promise((resolve) => feed((error) => resolve(error ? this.#fault(error) : null)));
  }

  #fault(error: Error): CsvError {
    return error instanceof CsvError
      ? error
      : new CsvError(this.#lines.current, reasonOf(error), { cause: error });
  }

  #add(cells: string[]): void {
    const { columnsMax } = csvLimits;
    this.#rowBytes = 0;
    const line = this.#lines.current;
    if (this.#columns === 0) {
      if (cells.length > columnsMax) {
        throw new CsvError(line, `the header has ${cells.length} columns and the limit is ${columnsMax}`);
      }
      this.#columns = cells.length;
    }
    if (cells.length !== this.#columns) {
      throw new CsvError(line, `the row has ${cells.length} cells and the header has ${this.#columns}`);
    }
    this.#rows.push({ line, cells });
    this.#lines.next();
  }

  /** Refuses other encodings, whose characters would be replaced. `null` is the end of the file. */
  #checkUtf8(bytes: Uint8Array | null): CsvError | null {
    const first = this.#checkedLine;
    if (bytes !== null) {
      for (let at = bytes.indexOf(LF); at >= 0; at = bytes.indexOf(LF, at + 1)) this.#checkedLine++;
    }
    try {
      if (bytes === null) this.#utf8.decode();
      else this.#utf8.decode(bytes, { stream: true });
      return null;
    } catch (cause) {
      const lines = first === this.#checkedLine ? "" : `, or in one up to line ${this.#checkedLine}`;
      return new CsvError(first, `here${lines}, a text is not UTF-8; save the file as UTF-8`, { cause });
    }
  }
}

/** Finds row starts and drops empty lines, for which the library takes thousands of times as long. */
class RowLines {
  /** Line of the next byte. */
  #line = 1;
  #quoted = false;
  /** Whether the next byte begins a line that is not part of a row yet. */
  #fresh = true;
  /** Whether a CR at such a position waits for the next byte. */
  #heldBack = false;
  #inHeader = true;
  /** Whether the header has several columns; otherwise an empty line is a row of one cell. */
  #severalColumns = false;
  /** Lines of rows that have begun, after the first `#taken`. */
  #begun: number[] = [];
  #taken = 0;

  get current(): number {
    return this.#begun[this.#taken] ?? this.#line;
  }

  next(): void {
    this.#taken++;
  }

  /** Returns the bytes without empty lines. A trailing CR may come with the next bytes. */
  withoutBlank(bytes: Uint8Array): Uint8Array {
    this.#begun = this.#begun.slice(this.#taken);
    this.#taken = 0;
    const kept = new Uint8Array(bytes.length + 1);
    let length = 0;
    for (const byte of bytes) {
      if (this.#fresh && this.#severalColumns) {
        if (byte === LF) {
          this.#heldBack = false;
          this.#line++;
          continue;
        }
        if (byte === CR && !this.#heldBack) {
          this.#heldBack = true;
          continue;
        }
      }
      if (this.#fresh) this.#begin();
      if (this.#heldBack) {
        this.#heldBack = false;
        kept[length++] = CR;
      }
      kept[length++] = byte;
      this.#follow(byte);
    }
    return kept.subarray(0, length);
  }

  /** Returns the CR that was held back at the end of the file. */
  heldBack(): Uint8Array {
    return new Uint8Array(this.#heldBack ? [CR] : []);
  }

  #begin(): void {
    this.#begun.push(this.#line);
    this.#fresh = false;
  }

  #follow(byte: number): void {
    switch (byte) {
      case QUOTE:
        // A doubled quote closes the quotes and opens them again.
        this.#quoted = !this.#quoted;
        return;
      case COMMA:
        if (this.#inHeader && !this.#quoted) this.#severalColumns = true;
        return;
      case LF:
        this.#line++;
        if (this.#quoted) return;
        this.#fresh = true;
        this.#inHeader = false;
    }
  }
}

function reasonOf(error: Error): string {
  switch (error instanceof LibraryError ? error.code : "") {
    case "CSV_QUOTE_NOT_CLOSED":
      return "a quote in this row is never closed";
    case "CSV_INVALID_CLOSING_QUOTE":
      return "a closing quote must be followed by a comma or a line end; double the quotes inside a cell";
    case "INVALID_OPENING_QUOTE":
      return "an unquoted cell contains a quote; quote the cell and double its quotes";
    default:
      return `the row is not CSV: ${error.message}`;
  }
}
