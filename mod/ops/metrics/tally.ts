/** Counters by two labels with fixed values, so that callers cannot create new series. */
export class Tally<Row extends string, Column extends string> {
  readonly #counts: Readonly<Record<Row, Record<Column, number>>>;

  constructor(rows: readonly Row[], columns: readonly Column[]) {
    const zeros = () => Object.fromEntries(columns.map((column) => [column, 0]));
    this.#counts = Object.fromEntries(rows.map((row) => [row, zeros()])) as Record<
      Row,
      Record<Column, number>
    >;
  }

  add(row: Row, column: Column, by = 1): void {
    this.#counts[row][column] += by;
  }

  /** All counters, including zeros. */
  *entries(): Generator<{ readonly row: Row; readonly column: Column; readonly count: number }> {
    for (const [row, columns] of Object.entries(this.#counts) as [Row, Record<Column, number>][]) {
      for (const [column, count] of Object.entries(columns) as [Column, number][]) {
        yield { row, column, count };
      }
    }
  }
}
