/**
 * Many runs as one piece: what all runs have as columns of numbers, and beside them the few that failed or said something.
 * Main packs runs on the way of mutations, so a run costs it some stores into an array, and the log keeps the piece as it is.
 */
import type { RunError, RunRecord } from "../run_record.ts";
import { encodeColumns, NumberColumns } from "./number_columns.ts";

/** The columns of a pack. */
export const column = {
  /** Milliseconds since the epoch. */
  at: 0,
  /** Position in the pack's functions. */
  fn: 1,
  /** Position in the pack's callers plus one; 0 is none. */
  caller: 2,
  outcome: 3,
  level: 4,
  request: 5,
  /** Plus one; 0 is none. */
  ts: 6,
  /** Hundredths of a millisecond: shorter, and nobody reads more. */
  duration: 7,
  queued: 8,
  documentsRead: 9,
  indexRowsRead: 10,
  documentsWritten: 11,
  indexRowsWritten: 12,
  /** Whether it failed or said something. */
  told: 13,
} as const;

export const COLUMNS = 14;

/** What a run has beyond numbers, by its position in the pack. */
export type ToldRun = readonly [position: number, error: RunError | null, logLines: readonly string[]];

/** Runs on their way to the log. */
export interface RunPack {
  readonly count: number;
  readonly functions: readonly (readonly [path: string, kind: number])[];
  readonly callers: readonly string[];
  /** In the order of their positions. */
  readonly told: readonly ToldRun[];
  readonly columns: Uint8Array<ArrayBuffer>;
}

/** A pack as it stands in a message. */
export interface PackMessage extends Omit<RunPack, "columns"> {
  /** Base64. */
  readonly columns: string;
}

export function packMessage(pack: RunPack): PackMessage {
  return { ...pack, columns: pack.columns.toBase64() };
}

export function packOf(message: PackMessage): RunPack {
  return { ...message, columns: Uint8Array.fromBase64(message.columns) };
}

const ROWS_FIRST = 64;

/** Puts runs together. */
export class RunPacker {
  #table = new Float64Array(ROWS_FIRST * COLUMNS);
  #count = 0;
  #functions: (readonly [path: string, kind: number])[] = [];
  /** Positions in the list, by kind and path. */
  #functionAt: (Map<string, number> | undefined)[] = [];
  #callers = new Map<string, number>();
  #told: ToldRun[] = [];

  get count(): number {
    return this.#count;
  }

  add(run: RunRecord): void {
    const kind = run[2];
    const caller = run[3];
    const outcome = run[4];
    const level = run[5];
    const ts = run[7];
    const error = run[14];
    const logLines = run[15];
    const told = error !== null || logLines.length > 0 || outcome > 0 || level > 0;
    if (told) this.#told.push([this.#count, error, logLines]);
    const cell = this.#count++ * COLUMNS;
    if (cell === this.#table.length) this.#grow();
    const table = this.#table;
    table[cell + column.at] = run[0];
    table[cell + column.fn] = this.#functionOf(run[1], kind);
    table[cell + column.caller] = caller === null ? 0 : this.#callerOf(caller);
    table[cell + column.outcome] = outcome;
    table[cell + column.level] = level;
    table[cell + column.request] = run[6];
    table[cell + column.ts] = ts === null ? 0 : ts + 1;
    table[cell + column.duration] = Math.round(run[8] * 100);
    table[cell + column.queued] = Math.round(run[9] * 100);
    table[cell + column.documentsRead] = run[10];
    table[cell + column.indexRowsRead] = run[11];
    table[cell + column.documentsWritten] = run[12];
    table[cell + column.indexRowsWritten] = run[13];
    table[cell + column.told] = told ? 1 : 0;
  }

  /** All runs that were added, after which there are none. */
  take(): RunPack {
    const pack = {
      count: this.#count,
      functions: this.#functions,
      callers: [...this.#callers.keys()],
      told: this.#told,
      columns: encodeColumns(this.#table, { columns: COLUMNS, rows: this.#count }),
    };
    this.#count = 0;
    this.#functions = [];
    this.#functionAt = [];
    this.#callers = new Map();
    this.#told = [];
    return pack;
  }

  #functionOf(path: string, kind: number): number {
    const known = this.#functionAt[kind]?.get(path);
    if (known !== undefined) return known;
    const position = this.#functions.push([path, kind]) - 1;
    (this.#functionAt[kind] ??= new Map()).set(path, position);
    return position;
  }

  #callerOf(caller: string): number {
    const known = this.#callers.get(caller);
    if (known !== undefined) return known;
    const position = this.#callers.size + 1;
    this.#callers.set(caller, position);
    return position;
  }

  #grow(): void {
    const table = new Float64Array(this.#table.length * 2);
    table.set(this.#table);
    this.#table = table;
  }
}

/** What a run's row of numbers stands for. */
export interface RunNames {
  readonly path: string;
  readonly kind: number;
  readonly caller: string | null;
  readonly error: RunError | null;
  readonly logLines: readonly string[];
}

export const nothingTold = { error: null, logLines: [] } as const;

export function recordAt(
  columns: NumberColumns,
  row: number,
  { path, kind, caller, error, logLines }: RunNames,
): RunRecord {
  const number = (of: number) => columns.at(of, row);
  const ts = number(column.ts);
  return [
    number(column.at),
    path,
    kind,
    caller,
    number(column.outcome),
    number(column.level),
    number(column.request),
    ts === 0 ? null : ts - 1,
    number(column.duration) / 100,
    number(column.queued) / 100,
    number(column.documentsRead),
    number(column.indexRowsRead),
    number(column.documentsWritten),
    number(column.indexRowsWritten),
    error,
    logLines,
  ];
}
