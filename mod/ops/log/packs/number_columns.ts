/**
 * Tables of numbers as bytes. Of each column its least value is kept, and of each value what is above that, in as few bytes
 * as the column's range needs: none, where all are equal.
 *
 *     least value of each column (Float64) | bytes of each column's values | the columns, each from a multiple of 8 on
 */

/** Bytes that a value may take; 8 stands for values as they are. */
const WIDTHS = [0, 1, 2, 4, 8] as const;
type Width = (typeof WIDTHS)[number];

/** Bytes are of the order that every processor has on which this runs: the least significant first. */
const arrays = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: Float64Array } as const;

interface Shape {
  readonly columns: number;
  readonly rows: number;
}

/** `table` has the rows one after the other, each with its numbers in the order of the columns. */
export function encodeColumns(table: Float64Array, { columns, rows }: Shape): Uint8Array<ArrayBuffer> {
  const cells = rows * columns;
  const leasts = new Float64Array(columns);
  const widths: Width[] = [];
  let size = headBytes(columns);
  for (let column = 0; column < columns; column++) {
    const { least, width } = rangeOf(table, { column, columns, cells });
    leasts[column] = least;
    widths.push(width);
    size += padded(rows * width);
  }
  const bytes = new Uint8Array(size);
  bytes.set(new Uint8Array(leasts.buffer));
  bytes.set(widths, 8 * columns);
  let start = headBytes(columns);
  for (const [column, width] of widths.entries()) {
    if (width === 0) continue;
    const values = new arrays[width](bytes.buffer, start, rows);
    fillColumn(values, { table, columns, column, least: leasts[column] ?? 0 });
    start += padded(rows * width);
  }
  return bytes;
}

interface Filling {
  readonly table: Float64Array;
  readonly columns: number;
  readonly column: number;
  readonly least: number;
}

/** Its loop has a function of its own: V8 throws away what it compiled for a loop within another that runs long. */
function fillColumn(
  values: Uint8Array | Uint16Array | Uint32Array | Float64Array,
  { table, columns, column, least }: Filling,
): void {
  const rows = values.length;
  for (let row = 0, cell = column; row < rows; row++, cell += columns) {
    values[row] = (table[cell] ?? 0) - least;
  }
}

/** Reads what {@linkcode encodeColumns} made. */
export class NumberColumns {
  readonly rows: number;
  readonly #leasts: Float64Array;
  /** `null`: all values are the least one. */
  readonly #values: (Uint8Array | Uint16Array | Uint32Array | Float64Array | null)[] = [];

  /** Throws a `RangeError` for bytes that are no such table. */
  constructor(bytes: Uint8Array<ArrayBuffer>, { columns, rows }: Shape) {
    // The arrays below have to begin at a multiple of their values' size.
    const { buffer, byteOffset } = bytes.byteOffset % 8 === 0 ? bytes : Uint8Array.from(bytes);
    this.rows = rows;
    if (bytes.length < headBytes(columns)) throw new RangeError("The table has no head");
    this.#leasts = new Float64Array(buffer, byteOffset, columns);
    let start = headBytes(columns);
    for (let column = 0; column < columns; column++) {
      const width = bytes[8 * columns + column] as Width;
      if (!WIDTHS.includes(width) || start + rows * width > bytes.length) {
        throw new RangeError("The table is cut off");
      }
      this.#values.push(width === 0 ? null : new arrays[width](buffer, byteOffset + start, rows));
      start += padded(rows * width);
    }
  }

  at(column: number, row: number): number {
    return (this.#leasts[column] ?? 0) + (this.#values[column]?.[row] ?? 0);
  }
}

function headBytes(columns: number): number {
  return padded(9 * columns);
}

function padded(bytes: number): number {
  return bytes + 7 & ~7;
}

/** A column's least value, and how many bytes hold what its values are above it. */
function rangeOf(
  table: Float64Array,
  { column, columns, cells }: { readonly column: number; readonly columns: number; readonly cells: number },
): { readonly least: number; readonly width: Width } {
  let least = Infinity;
  let most = -Infinity;
  let whole = true;
  for (let cell = column; cell < cells; cell += columns) {
    const value = table[cell] ?? 0;
    if (value < least) least = value;
    if (value > most) most = value;
    if (!Number.isSafeInteger(value)) whole = false;
  }
  const range = most - least;
  // Without rows, or with numbers that are none, there is nothing to subtract.
  if (!whole || !(range <= 0xffff_ffff)) return { least: 0, width: 8 };
  return { least, width: range === 0 ? 0 : range <= 0xff ? 1 : range <= 0xffff ? 2 : 4 };
}
