/**
 * Copies the newest runs and the statistics from a log of format 2. That format stored runs in batches: a table `packs_N` for each
 * partition, with the numbers of many runs in a BLOB, and a row in `runs_N` for each run with an error or log lines.
 */
import { DatabaseSync } from "node:sqlite";
import { logLimits } from "../../limits.ts";
import type { RunRecord } from "../run_record.ts";
import type { LogStore } from "./log_store.ts";

/** Columns of a batch, in this order. Callers and `ts` are stored plus one, durations in hundredths of a millisecond. */
const COLUMNS = 14;
const arrays = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: Float64Array } as const;
/** Number of functions beyond the limit of that format; their names are in the rows. */
const OTHER_FUNCTIONS = 0;

type FunctionName = readonly [path: string, kind: number];

interface Batch {
  readonly first: number;
  readonly runs: number;
  readonly functions: string;
  readonly callers: string;
  readonly columns: Uint8Array<ArrayBuffer>;
}

/** Returns the number of copied runs. Throws for a damaged file. */
export function convertLog(
  path: string,
  store: LogStore,
  { now, charsMax = logLimits.convertedCharsMax }: { readonly now: number; readonly charsMax?: number },
): number {
  using old = new DatabaseSync(path, { readOnly: true });
  const names = new Map(
    old.prepare("SELECT id, path, kind FROM functions").all()
      .map(({ id, path, kind }): [number, FunctionName] => [Number(id), [String(path), Number(kind)]]),
  );
  const figures = old.prepare("SELECT span, at, text FROM figures").all();
  store.saveFigures(figures as unknown as Parameters<LogStore["saveFigures"]>[0], now);
  const batches: { readonly part: number; readonly first: number; readonly runs: number }[] = [];
  let found = 0;
  let chars = 0;
  search: for (const { no } of old.prepare("SELECT no FROM segments ORDER BY no DESC").iterate()) {
    for (
      const { first, runs } of old.prepare(`SELECT first, runs FROM packs_${no} ORDER BY first DESC`)
        .iterate()
    ) {
      const sum = old.prepare(`SELECT sum(length(body)) AS chars FROM runs_${no} WHERE id >= ? AND id < ?`)
        .get(first as number, Number(first) + Number(runs));
      chars += Number(sum?.["chars"] ?? 0);
      if (found >= logLimits.convertedRunsMax || chars > charsMax) break search;
      found += Number(runs);
      batches.push({ part: Number(no), first: Number(first), runs: Number(runs) });
    }
  }
  for (const { part, first } of batches.toReversed()) {
    const batch = old.prepare(`SELECT * FROM packs_${part} WHERE first = ?`).get(first) as unknown as Batch;
    const rows = old.prepare(`SELECT id, body FROM runs_${part} WHERE id >= ? AND id < ?`)
      .all(first, first + batch.runs).map((
        { id, body },
      ): [number, unknown[]] => [Number(id), JSON.parse(String(body))]);
    store.add(runsOf(batch, names, new Map(rows)), first);
  }
  return found;
}

function runsOf(
  batch: Batch,
  names: ReadonlyMap<number, FunctionName>,
  rows: ReadonlyMap<number, readonly unknown[]>,
): RunRecord[] {
  const functions = batch.functions.split(" ").map(Number);
  const callers = JSON.parse(batch.callers) as string[];
  const numbers = decodeColumns(batch.columns, batch.runs);
  return Array.from({ length: batch.runs }, (_, row): RunRecord => {
    const of = (column: number) => numbers[column]?.[row] ?? 0;
    // Caller, then the record from `ts` on, then path and kind of a function without a number.
    const body = rows.get(batch.first + row);
    const fn = functions[of(1)] ?? OTHER_FUNCTIONS;
    const [path, kind] = names.get(fn) ?? [String(body?.[10] ?? "?"), Number(body?.[11] ?? 0)];
    return [
      ...[of(0), path, kind, callers[of(2) - 1] ?? null, of(3), of(4), of(5)] as const,
      ...[of(6) === 0 ? null : of(6) - 1, of(7) / 100, of(8) / 100, of(9), of(10), of(11), of(12)] as const,
      (body?.[8] ?? null) as RunRecord[14],
      (body?.[9] ?? []) as RunRecord[15],
    ];
  });
}

/**
 * Each column has its least value (Float64) and the width of its values in a head; the values above the least one follow, each column
 * from a multiple of 8 bytes. Width 0: all are the least one.
 */
function decodeColumns(bytes: Uint8Array<ArrayBuffer>, rows: number): ArrayLike<number>[] {
  const padded = (size: number) => size + 7 & ~7;
  const { buffer } = Uint8Array.from(bytes);
  const leasts = new Float64Array(buffer, 0, COLUMNS);
  let start = padded(9 * COLUMNS);
  return Array.from(leasts, (least, column) => {
    const width = bytes[8 * COLUMNS + column] as 0 | keyof typeof arrays;
    if (width === 0) return new Float64Array(rows).fill(least);
    const values = new arrays[width](buffer, start, rows);
    start += padded(rows * width);
    return Float64Array.from(values, (value) => least + value);
  });
}
