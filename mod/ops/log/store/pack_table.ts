/**
 * All runs of a part of the log, many in one row. Each pack tells what is in it, so that a search reads only those it has to.
 * Packs of a server with little to do are small; when sixteen small ones have come together they become one, so that there
 * are hundreds of runs in most packs however they came, and none is written more than three times: as it comes, in a pack of
 * sixteen or more, and in one of 256 or more.
 */
import { encodeColumns, NumberColumns } from "../packs/number_columns.ts";
import { column, COLUMNS } from "../packs/run_pack.ts";
import { markCallers } from "./caller_marks.ts";
import { type LogDatabase, UnusableLogError } from "./log_database.ts";

/** Runs as they are kept: under the ids that follow the first one's. */
export interface NewPack {
  readonly first: number;
  readonly count: number;
  /** Numbers of functions, in the order in which the columns name them. */
  readonly functions: readonly number[];
  readonly callers: readonly string[];
  readonly columns: Uint8Array<ArrayBuffer>;
}

export interface KeptPack extends Omit<NewPack, "columns"> {
  readonly columns: NumberColumns;
}

/** What is known of a pack without reading it. */
export interface PackHead {
  readonly first: number;
  readonly count: number;
  readonly functions: readonly number[];
  readonly marks: Uint8Array;
}

/**
 * The newest packs with fewer runs become one when so many have come together that the one has no fewer; the smallest first.
 * So no run becomes part of a larger one twice for the same bound, and there are never more small packs than the last bound.
 */
const SMALL_PACKS = 16;
const SMALL_RUNS = [16, 256] as const;
const LARGE_RUNS = 256;
/** Packs kept as they were read last. */
const KNOWN_MAX = 4;

/** SQL that makes the table of a part. */
export function createPacksSql(no: number): string {
  return `CREATE TABLE packs_${no} (first INTEGER PRIMARY KEY, runs INTEGER NOT NULL,
    first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
    first_request INTEGER NOT NULL, last_request INTEGER NOT NULL,
    functions TEXT NOT NULL, marks BLOB NOT NULL, callers TEXT NOT NULL, columns BLOB NOT NULL)`;
}

export class PackTable {
  readonly #name: string;
  /** The newest packs, as long as they are small; read when the first one is added. */
  #small: { readonly first: number; readonly count: number }[] | null = null;
  readonly #known = new Map<number, KeptPack>();

  constructor(no: number) {
    this.#name = `packs_${no}`;
  }

  /** In a transaction. After one that failed this object is of no more use. */
  add(database: LogDatabase, pack: NewPack): void {
    const small = this.#small ??= this.#newestSmall(database);
    this.#insert(database, pack);
    small.push(pack);
    if (pack.count >= LARGE_RUNS) small.length = 0;
    for (const runsMax of SMALL_RUNS) {
      let from = small.length;
      while (from > 0 && (small[from - 1]?.count ?? 0) < runsMax) from--;
      const runs = small.slice(from).reduce((sum, { count }) => sum + count, 0);
      if (small.length - from < SMALL_PACKS || runs < runsMax) continue;
      const merged = merge(
        small.splice(from).map(({ first }) => {
          const part = this.read(database, first);
          if (part === null) throw new Error(`The runs from ${first} on are gone`);
          return part;
        }),
      );
      database.run(`DELETE FROM ${this.#name} WHERE first >= ?`, merged.first);
      this.#insert(database, merged);
      this.#known.clear();
      if (merged.count < LARGE_RUNS) small.push(merged);
      else small.length = 0;
    }
  }

  /**
   * A pack by the id of its first run; `null` when there is none, as when it has become part of a larger one meanwhile. Throws
   * an `UnusableLogError` for one that is damaged.
   */
  read(database: LogDatabase, first: number): KeptPack | null {
    const known = this.#known.get(first);
    if (known !== undefined) return known;
    const [row] = database.all(
      `SELECT runs, functions, callers, columns FROM ${this.#name} WHERE first = ?`,
      first,
    );
    if (row === undefined) return null;
    const pack = kept(first, row);
    if (this.#known.size >= KNOWN_MAX) this.#known.clear();
    // The newest ones grow together.
    if (pack.count >= LARGE_RUNS) this.#known.set(first, pack);
    return pack;
  }

  /** All packs, oldest first. */
  *all(database: LogDatabase): Generator<KeptPack> {
    for (let after = -1;;) {
      const row =
        database.all(`SELECT first FROM ${this.#name} WHERE first > ? ORDER BY first LIMIT 1`, after)[0];
      if (row === undefined) return;
      after = row[0] as number;
      const pack = this.read(database, after);
      if (pack !== null) yield pack;
    }
  }

  /** Packs that may have runs with smaller ids than `below` that pass, newest first. */
  heads(database: LogDatabase, { below, limit, from, to, request }: {
    readonly below: number;
    readonly limit: number;
    readonly from?: number | undefined;
    readonly to?: number | undefined;
    readonly request?: number | undefined;
  }): PackHead[] {
    const conditions = ["first < ?"];
    const parameters = [below];
    const where = (condition: string, parameter: number | undefined) => {
      if (parameter === undefined) return;
      conditions.push(condition);
      parameters.push(parameter);
    };
    where("last_at >= ?", from);
    where("first_at < ?", to);
    where("first_request <= ?", request);
    where("last_request >= ?", request);
    return database.all(
      `SELECT first, runs, functions, marks FROM ${this.#name} WHERE ${conditions.join(" AND ")}
       ORDER BY first DESC LIMIT ?`,
      ...parameters,
      limit,
    ).map(([first, count, functions, marks]) => ({
      first: first as number,
      count: count as number,
      functions: (functions as string).split(" ").map(Number),
      marks: marks as Uint8Array,
    }));
  }

  /** The first id of the oldest pack in which a run ended at or after an instant; `null` when none did. */
  firstSince(database: LogDatabase, instant: number): number | null {
    return database.value(
      `SELECT first FROM ${this.#name} WHERE last_at >= ? ORDER BY first LIMIT 1`,
      instant,
    ) as number | undefined ?? null;
  }

  /** The last id of the newest pack in which a run ended before an instant; `null` when none did. */
  lastBefore(database: LogDatabase, instant: number): number | null {
    return database.value(
      `SELECT first + runs - 1 FROM ${this.#name} WHERE first_at < ? ORDER BY first DESC LIMIT 1`,
      instant,
    ) as number | undefined ?? null;
  }

  #insert(database: LogDatabase, { first, count, functions, callers, columns }: NewPack): void {
    const numbers = new NumberColumns(columns, { columns: COLUMNS, rows: count });
    const [firstAt, lastAt] = boundsOf(numbers, column.at);
    const [firstRequest, lastRequest] = boundsOf(numbers, column.request);
    database.run(
      `INSERT INTO ${this.#name} (first, runs, first_at, last_at, first_request, last_request, functions, marks,
         callers, columns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[first, count, firstAt, lastAt, firstRequest, lastRequest, functions.join(" ")],
      ...[markCallers(callers), JSON.stringify(callers), columns],
    );
  }

  #newestSmall(database: LogDatabase): { readonly first: number; readonly count: number }[] {
    const newest = database.all(
      `SELECT first, runs FROM ${this.#name} ORDER BY first DESC LIMIT ?`,
      LARGE_RUNS,
    ).map(([first, count]) => ({ first: first as number, count: count as number }));
    const large = newest.findIndex(({ count }) => count >= LARGE_RUNS);
    return (large < 0 ? newest : newest.slice(0, large)).toReversed();
  }
}

function kept(first: number, row: readonly unknown[]): KeptPack {
  try {
    const [count, functions, callers, columns] = row as [number, string, string, Uint8Array<ArrayBuffer>];
    return {
      first,
      count,
      functions: functions.split(" ").map(Number),
      callers: JSON.parse(callers),
      columns: new NumberColumns(columns, { columns: COLUMNS, rows: count }),
    };
  } catch (error) {
    throw new UnusableLogError(`The runs from ${first} on are damaged`, { cause: error });
  }
}

/** Packs that follow one another as one. */
function merge(packs: readonly KeptPack[]): NewPack {
  const count = packs.reduce((sum, pack) => sum + pack.count, 0);
  const table = new Float64Array(count * COLUMNS);
  const functions = new Map<number, number>();
  const callers = new Map<string, number>();
  let cell = 0;
  for (const pack of packs) {
    const functionAt = pack.functions.map((fn) => positionIn(functions, fn));
    const callerAt = pack.callers.map((caller) => positionIn(callers, caller));
    for (let row = 0; row < pack.count; row++, cell += COLUMNS) {
      for (let at = 0; at < COLUMNS; at++) table[cell + at] = pack.columns.at(at, row);
      table[cell + column.fn] = functionAt[pack.columns.at(column.fn, row)] ?? 0;
      const caller = pack.columns.at(column.caller, row);
      table[cell + column.caller] = caller === 0 ? 0 : (callerAt[caller - 1] ?? -1) + 1;
    }
  }
  return {
    first: packs[0]?.first ?? 0,
    count,
    functions: [...functions.keys()],
    callers: [...callers.keys()],
    columns: encodeColumns(table, { columns: COLUMNS, rows: count }),
  };
}

function positionIn<Key>(positions: Map<Key, number>, key: Key): number {
  const known = positions.get(key);
  if (known !== undefined) return known;
  positions.set(key, positions.size);
  return positions.size - 1;
}

function boundsOf(columns: NumberColumns, at: number): readonly [least: number, most: number] {
  let least = Infinity;
  let most = -Infinity;
  for (let row = 0; row < columns.rows; row++) {
    const value = columns.at(at, row);
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return [least, most];
}
