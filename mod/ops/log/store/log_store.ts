/** Writes and deletes runs (`runs`), their trigram index (`texts`), counts and id ranges by minute, and id ranges by version. IDs are consecutive. */
import type { SQLInputValue } from "node:sqlite";
import { logLimits } from "../../limits.ts";
import { type RunRecord, searchedText, VERSION_INDEX } from "../run_record.ts";
import { LogDatabase } from "./log_database.ts";

export interface Retention {
  readonly keepMs: number;
  readonly bytesMax: number;
}

/** Statistics of one time span, as JSON. */
export interface SavedFigures {
  readonly span: "minute" | "quarter" | "hour";
  /** Start of the span, milliseconds since the epoch. */
  readonly at: number;
  readonly text: string;
}

/** Retention of statistics, from the start of their span. */
const FIGURES_KEPT_MS = { minute: 2 * 3_600_000, quarter: 7 * 86_400_000, hour: 26 * 3_600_000 } as const;

/** In the order of a run record. Durations are in hundredths of a millisecond. */
export const RUN_COLUMNS =
  `id, at, path, kind, caller, outcome, level, request, ts, duration, queued, documents_read,
  index_rows_read, documents_written, index_rows_written, error, lines`;

/** Rows of one INSERT: several share the cost of running a statement. */
const ROWS_PER_INSERT = 8;
const ONE_RUN = `(${Array(17).fill("?").join(", ")})`;
const INSERT_RUN = `INSERT INTO runs (${RUN_COLUMNS}) VALUES ${ONE_RUN}`;
const INSERT_RUNS = `${INSERT_RUN}${`, ${ONE_RUN}`.repeat(ROWS_PER_INSERT - 1)}`;
const INSERT_TEXT = "INSERT INTO texts (rowid, text) VALUES (?, ?)";
const COUNT_MINUTE = `INSERT INTO minutes (minute, first, last) VALUES (?, ?, ?)
  ON CONFLICT DO UPDATE SET first = min(first, excluded.first), last = max(last, excluded.last)`;
const COUNT_RUNS = `INSERT INTO counts (minute, path, kind, outcome, level, runs) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET runs = runs + excluded.runs`;
const INSERT_VERSION = "INSERT OR REPLACE INTO versions (first, last, hash) VALUES (?, ?, ?)";

/** Returns the columns of a run after its ID. */
function columnsOf(run: RunRecord): SQLInputValue[] {
  const [at, path, kind, caller, outcome, level, request, ts, durationMs, queuedMs, ...rest] = run;
  const [documentsRead, indexRowsRead, documentsWritten, indexRowsWritten, error, lines] = rest;
  const duration = Math.round(durationMs * 100);
  const queued = Math.round(queuedMs * 100);
  const rows = [documentsRead, indexRowsRead, documentsWritten, indexRowsWritten];
  const errorText = error === null ? null : JSON.stringify(error);
  const linesText = lines.length === 0 ? null : JSON.stringify(lines);
  return [
    ...[at, path, kind, caller, outcome, level, request, ts, duration, queued],
    ...[...rows, errorText, linesText],
  ];
}

export class LogStore implements Disposable {
  readonly database: LogDatabase;
  #retention: Retention;
  /** The newest ID that this process has seen; IDs are not reused after all runs were deleted. */
  #lastId = 0;

  private constructor(database: LogDatabase, retention: Retention) {
    this.database = database;
    this.#retention = retention;
  }

  /** Opens or creates the log. Throws an `UnusableLogError`, or an error of SQLite that may be temporary. */
  static open(path: string, { retention }: { readonly retention: Retention }): LogStore {
    return new LogStore(LogDatabase.open(path), retention);
  }

  /** Opens a log for reading; another process may be writing it. Throws an `UnusableLogError`. */
  static openReader(path: string): LogStore {
    return new LogStore(LogDatabase.openReader(path), { keepMs: 0, bytesMax: 0 });
  }

  get lastId(): number {
    const last = this.database.value("SELECT max(id) FROM runs") as number | null;
    return this.#lastId = Math.max(this.#lastId, last ?? 0);
  }

  get rows(): number {
    const [[first, last] = []] = this.database.all(
      "SELECT (SELECT min(id) FROM runs), (SELECT max(id) FROM runs)",
    );
    return typeof first === "number" ? last as number - first + 1 : 0;
  }

  /** Size of the used pages. */
  get bytes(): number {
    const [pages = 0, free = 0, size = 0] = ["page_count", "freelist_count", "page_size"]
      .map((name) => Number(this.database.value(`PRAGMA ${name}`)));
    return (pages - free) * size;
  }

  /** Adds runs with consecutive IDs, from `from` in an empty log; returns the first one. Adds all or, if it throws, none. */
  add(runs: readonly RunRecord[], from = 1): number {
    const first = this.database.transaction(() => {
      const first = Math.max(this.lastId + 1, from);
      this.#insert(first, runs);
      this.#count(first, runs);
      this.#addVersions(first, runs);
      return first;
    });
    this.#lastId = first + runs.length - 1;
    return first;
  }

  retain(retention: Retention): void {
    this.#retention = retention;
  }

  /** Deletes one batch of old or excess runs; returns `false` if there are none. */
  trim(now: number): boolean {
    const { database } = this;
    const { keepMs, bytesMax } = this.#retention;
    return database.transaction(() => {
      const oldest = database.value("SELECT min(id) FROM runs") as number | null;
      if (oldest === null) return false;
      const count = Math.min(logLimits.deletedRunsMax, Math.ceil(this.rows / 16));
      const until = this.bytes > bytesMax ? oldest + count : this.#firstKept(oldest, now - keepMs);
      if (until === oldest) return false;
      // As integers: the text index ignores bounds that are floating-point numbers, as which all others are passed.
      database.run("DELETE FROM texts WHERE rowid >= ? AND rowid < ?", BigInt(oldest), BigInt(until));
      database.run("DELETE FROM runs WHERE id < ?", until);
      database.run("DELETE FROM minutes WHERE last < ?", until);
      database.run("DELETE FROM versions WHERE last < ?", until);
      database.run("DELETE FROM counts WHERE minute < coalesce((SELECT min(minute) FROM minutes), 1e15)");
      return true;
    });
  }

  /** Returns unused pages to the file system, some at a time. */
  shrink(): void {
    const free = Number(this.database.value("PRAGMA freelist_count"));
    const pages = Number(this.database.value("PRAGMA page_count"));
    if (free >= 4_096 && free >= pages / 8) this.database.execute("PRAGMA incremental_vacuum(2048)");
  }

  saveFigures(figures: readonly SavedFigures[], now: number): void {
    this.database.transaction(() => {
      for (const { span, at, text } of figures) {
        this.database.run("INSERT OR REPLACE INTO figures (span, at, text) VALUES (?, ?, ?)", span, at, text);
        this.database.run("DELETE FROM figures WHERE span = ? AND at < ?", span, now - FIGURES_KEPT_MS[span]);
      }
    });
  }

  loadFigures(now: number): SavedFigures[] {
    return this.database.all("SELECT span, at, text FROM figures ORDER BY at")
      .map(([span, at, text]) => ({ span, at, text } as SavedFigures))
      .filter(({ span, at }) => at >= now - FIGURES_KEPT_MS[span] && at <= now);
  }

  [Symbol.dispose](): void {
    this.database[Symbol.dispose]();
  }

  #insert(first: number, runs: readonly RunRecord[]): void {
    for (let start = 0; start < runs.length;) {
      const count = runs.length - start < ROWS_PER_INSERT ? 1 : ROWS_PER_INSERT;
      const values: SQLInputValue[] = [];
      for (let i = start; i < start + count; i++) values.push(first + i, ...columnsOf(runs[i] as RunRecord));
      this.database.run(count === 1 ? INSERT_RUN : INSERT_RUNS, ...values);
      start += count;
    }
    for (const [i, run] of runs.entries()) {
      const text = searchedText(run[14], run[15]);
      // The index ends at a NUL.
      if (text !== "") this.database.run(INSERT_TEXT, first + i, text.replaceAll("\0", " "));
    }
  }

  /** Adds runs to the counts and ID ranges of their minutes. */
  #count(first: number, runs: readonly RunRecord[]): void {
    const minutes = new Map<number, { first: number; last: number }>();
    const counts = new Map<string, { readonly key: SQLInputValue[]; runs: number }>();
    for (const [i, [at, path, kind, , outcome, level]] of runs.entries()) {
      const id = first + i;
      const minute = Math.floor(at / 60_000);
      const range = minutes.get(minute);
      if (range === undefined) minutes.set(minute, { first: id, last: id });
      else range.last = id;
      const name = `${minute} ${kind} ${outcome} ${level} ${path}`;
      const group = counts.get(name);
      if (group === undefined) counts.set(name, { key: [minute, path, kind, outcome, level], runs: 1 });
      else group.runs++;
    }
    for (const [minute, range] of minutes) this.database.run(COUNT_MINUTE, minute, range.first, range.last);
    for (const { key, runs } of counts.values()) this.database.run(COUNT_RUNS, ...key, runs);
  }

  /** Adds the IDs of runs to the ranges of their versions. Consecutive runs of a version share a range. */
  #addVersions(first: number, runs: readonly RunRecord[]): void {
    const [[start, last, hash] = []] = this.database.all(
      "SELECT first, last, hash FROM versions ORDER BY first DESC LIMIT 1",
    );
    let range = typeof start === "number" && last === first - 1 ? { start, hash: hash as string } : null;
    const store = (end: number) => range && this.database.run(INSERT_VERSION, range.start, end, range.hash);
    for (const [i, { [VERSION_INDEX]: version = null }] of runs.entries()) {
      if (version === (range?.hash ?? null)) continue;
      store(first + i - 1);
      range = version === null ? null : { start: first + i, hash: version };
    }
    store(first + runs.length - 1);
  }

  /** Returns the first of the next runs that is not too old, or the end of the batch. */
  #firstKept(oldest: number, keptFrom: number): number {
    const end = oldest + logLimits.deletedRunsMax;
    const kept = this.database.value(
      "SELECT id FROM runs WHERE id < ? AND at >= ? ORDER BY id LIMIT 1",
      end,
      keptFrom,
    );
    return kept as number | undefined ?? end;
  }
}
