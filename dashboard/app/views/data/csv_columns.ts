/** The columns of a CSV file, and the fields of a table that they are imported into. */

/** Characters read to find the header and the first rows. */
export const CSV_HEAD_CHARS = 65_536;
const ROWS_SHOWN = 3;

export interface CsvColumn {
  readonly name: string;
  /** Values of the first rows. */
  readonly examples: readonly string[];
}

/** Parses the header and the first rows of the beginning of a CSV file. */
export function csvColumns(head: string): readonly CsvColumn[] {
  const [header = [], ...rows] = rowsOf(head, ROWS_SHOWN + 1);
  return header.map((name, column) => ({ name, examples: rows.map((cells) => cells[column] ?? "") }));
}

/** Splits text into rows of cells. A row without an end is left out unless it is the only one. */
function rowsOf(text: string, max: number): readonly (readonly string[])[] {
  const rows: string[][] = [];
  let row: string[] = [];
  // A cell, quoted or not, and what follows it.
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y;
  cell.lastIndex = text.startsWith("\ufeff") ? 1 : 0;
  while (rows.length < max) {
    const match = cell.exec(text);
    if (match === null) break;
    const [, quoted, bare = "", end] = match;
    row.push(quoted?.replaceAll('""', '"') ?? bare);
    if (end === ",") continue;
    const isLast = end === "";
    if (!isLast || rows.length === 0) rows.push(row);
    if (isLast) break;
    row = [];
  }
  return rows;
}

/** Ignores case, spaces and punctuation: `Order ID` matches `orderId`. */
const plain = (name: string): string => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

/** Assigns each column to the field of the same name, or to none. Each field gets at most one column. */
export function matchingFields(
  columns: readonly CsvColumn[],
  fields: readonly string[],
): readonly (string | null)[] {
  const free = new Set(fields);
  const take = (field: string | undefined): string | null => {
    if (field === undefined) return null;
    free.delete(field);
    return field;
  };
  const exact = columns.map(({ name }) => free.has(name) ? take(name) : null);
  return exact.map((field, at) =>
    field ?? take([...free].find((other) => plain(other) === plain(columns[at]?.name ?? "")))
  );
}
