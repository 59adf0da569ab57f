/**
 * CSV as RFC 4180 has it, both ways: a thin face of two libraries. Cells are texts; what they mean is for others to say.
 * Texts are UTF-8. A quoted empty cell and a bare one are the same.
 */
import { CsvError as LibraryError, parse } from "csv-parse";
import { stringify } from "csv-stringify/sync";
import { csvLimits } from "./limits.ts";
import { pause } from "./pause.ts";

/** A file that is not CSV, or more than the limits allow. The message says what is wrong and in which line. */
export class CsvError extends Error {
  override readonly name = "CsvError";
  /** Line in which the row begins, counted from 1. */
  readonly line: number;

  constructor(line: number, reason: string, options?: ErrorOptions) {
    super(`Line ${line}: ${reason}`, options);
    this.line = line;
  }
}

/** One row. */
export interface CsvRow {
  /** Line of the file in which the row begins, counted from 1. */
  readonly line: number;
  readonly cells: readonly string[];
}

/** What is quoted beside cells with commas and quotes: line ends, and the mark that readers skip at a file's beginning. */
const QUOTED_TOO = /[\r\n\ufeff]/;

/** The text of rows; each ends in CRLF. Lone surrogates have no form in UTF-8: the caller sees to it that there are none. */
export function csvText(rows: readonly (readonly string[])[]): string {
  return stringify(rows as string[][], { record_delimiter: "\r\n", quoted_match: QUOTED_TOO });
}

/**
 * Bytes given to the parser at once, so that few rows are in memory however large the pieces of the source are. The process
 * does its other work before each: the shortest rows, thousands of them, take some milliseconds.
 */
const SLICE_BYTES = 8 * 1024;
const LF = 0x0a;
const CR = 0x0d;
const QUOTE = 0x22;
const COMMA = 0x2c;

/**
 * The rows of a file, the header first, as the source gives its bytes. Rows end in CRLF or LF, and all have as many cells
 * as the first; lines with nothing in them are skipped where rows have several cells. A byte order mark is skipped.
 * Throws a {@linkcode CsvError} after the rows before the fault. The source is closed when the caller stops early.
 */
export async function* csvRows(source: AsyncIterable<Uint8Array>): AsyncGenerator<CsvRow, void, void> {
  const parser = new RowParser();
  for await (const piece of source) {
    for (let from = 0; from < piece.length; from += SLICE_BYTES) {
      await pause();
      yield* rowsBefore(parser, await parser.read(piece.subarray(from, from + SLICE_BYTES)));
    }
  }
  yield* rowsBefore(parser, await parser.end());
}

function* rowsBefore(parser: RowParser, fault: CsvError | null): Generator<CsvRow, void, void> {
  yield* parser.take();
  if (fault !== null) throw fault;
}

/** The library's parser, asked for rows instead of being a stream: rows before a fault are not lost. */
class RowParser {
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  readonly #parser = parse({
    bom: true,
    record_delimiter: ["\r\n", "\n"],
    // Checked here, in words that say what to do.
    relax_column_count: true,
    // Nothing is left for the library's own output.
    on_record: (cells: string[]): null => {
      this.#add(cells);
      return null;
    },
  });
  readonly #lines = new RowLines();
  #rows: CsvRow[] = [];
  /** Cells of the first row. */
  #columns = 0;
  /** Line up to which the bytes are known to be UTF-8. */
  #checkedLine = 1;
  /** Bytes read since the last end of a row. */
  #rowBytes = 0;

  constructor() {
    // Errors are told by the callbacks below.
    this.#parser.on("error", () => {});
  }

  /** Reads the next bytes; gives what is wrong with them. */
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

  /** The rows read since the last call. */
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

  /** Other encodings are refused: their texts would be stored with holes. `null` is the end of the file. */
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
      const place = first === this.#checkedLine ? "" : `, or in one up to line ${this.#checkedLine}`;
      return new CsvError(first, `here${place}, a text is not UTF-8; save the file as UTF-8`, { cause });
    }
  }
}

/**
 * Where rows begin, and which lines are none: found in the bytes before the library reads them, because it takes thousands
 * of times as long for a blank line, and counts a CRLF inside of quotes twice. Right up to the first fault of a file.
 */
class RowLines {
  /** Line in which the next byte stands. */
  #line = 1;
  #quoted = false;
  /** Whether the next byte is the first of a line that is no part of a row yet. */
  #fresh = true;
  /** Whether a CR at such a place waits for what follows. */
  #heldBack = false;
  #inHeader = true;
  /** Whether the header has several columns: a blank line is a row of one cell else. */
  #severalColumns = false;
  /** Lines of the rows that have begun; those before `#taken` have been taken. */
  #begun: number[] = [];
  #taken = 0;

  /** Line of the row that the library gives next. */
  get current(): number {
    return this.#begun[this.#taken] ?? this.#line;
  }

  /** Goes on to the row behind the current one. */
  next(): void {
    this.#taken++;
  }

  /** The bytes without blank lines. A CR in the end may come with the next bytes. */
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

  /** What was held back at the end of the file. */
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
        // A doubled one ends the quotes and opens them again.
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
      return "a quote that is opened in this row is not closed";
    case "CSV_INVALID_CLOSING_QUOTE":
      return "after a closing quote only a comma or a line end may stand; quotes inside of a cell are doubled";
    case "INVALID_OPENING_QUOTE":
      return "a quote stands in a cell that is not quoted; such cells are quoted, and their quotes doubled";
    default:
      return `the row is not CSV: ${error.message}`;
  }
}
