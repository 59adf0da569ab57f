/** Rows of the database in main's memory: looked up once, kept in bounded memory, and kept true by who tells of changes. */

export interface KnownRowsOptions<Row> {
  /** Rows remembered; the one that was not asked for the longest gives way. */
  readonly rowsMax: number;
  readonly idOf: (row: Row) => string;
  /** Reads a row; `null` when there is none. What there is not is not remembered. */
  readonly load: (id: string) => Promise<Row | null>;
}

/** A look-up under way; `outdated` when the row may have changed since it began. */
interface Lookup<Row> {
  readonly row: Promise<Row | null>;
  outdated: boolean;
}

export class KnownRows<Row> {
  readonly #options: KnownRowsOptions<Row>;
  /** In order of last use. */
  readonly #rows = new Map<string, Row>();
  readonly #lookups = new Map<string, Lookup<Row>>();

  constructor(options: KnownRowsOptions<Row>) {
    this.#options = options;
  }

  /** The row with this id, at once when it is in memory. Rejects when it cannot be read. */
  find(id: string): Row | null | Promise<Row | null> {
    return this.known(id) ?? this.#look(id);
  }

  /** The row with this id if it is in memory. */
  known(id: string): Row | undefined {
    const row = this.#rows.get(id);
    if (row !== undefined) this.#remember(row);
    return row;
  }

  /** What is in memory. */
  rows(): Iterable<Row> {
    return this.#rows.values();
  }

  /** The row may have changed: it is read anew when it is next asked for, also by those who are waiting for it now. */
  forget(id: string): void {
    this.#rows.delete(id);
    const lookup = this.#lookups.get(id);
    if (lookup === undefined) return;
    lookup.outdated = true;
    this.#lookups.delete(id);
  }

  /** What is being read now may have changed. */
  forgetLookups(): void {
    for (const id of [...this.#lookups.keys()]) this.forget(id);
  }

  /** Forgets everything, after changes may have been missed. */
  clear(): void {
    this.#rows.clear();
    this.forgetLookups();
  }

  async #look(id: string): Promise<Row | null> {
    for (;;) {
      const lookup = this.#lookups.get(id) ?? this.#lookUp(id);
      const row = await lookup.row;
      if (!lookup.outdated) return row;
    }
  }

  #lookUp(id: string): Lookup<Row> {
    const lookup: Lookup<Row> = {
      outdated: false,
      row: this.#options.load(id).then((row) => {
        if (row !== null && !lookup.outdated) this.#remember(row);
        return row;
      }).finally(() => {
        if (!lookup.outdated) this.#lookups.delete(id);
      }),
    };
    this.#lookups.set(id, lookup);
    return lookup;
  }

  #remember(row: Row): void {
    const { idOf, rowsMax } = this.#options;
    const id = idOf(row);
    this.#rows.delete(id);
    this.#rows.set(id, row);
    if (this.#rows.size <= rowsMax) return;
    const [oldest] = this.#rows.keys();
    if (oldest !== undefined) this.#rows.delete(oldest);
  }
}
