/** What the log holds: runs in parts, their counts by minute, and the figures of the stats. Owned by the log process. */
import { logLimits } from "../../limits.ts";
import { NumberColumns } from "../packs/number_columns.ts";
import { column, COLUMNS, nothingTold, recordAt, type RunPack } from "../packs/run_pack.ts";
import { lineLevels, runOutcomes, type RunRecord, searchedText } from "../run_record.ts";
import { callerNumber } from "./caller_number.ts";
import { classNumber, FunctionNames, OTHER_FUNCTIONS } from "./function_names.ts";
import { LogDatabase, messageOf, UnusableLogError } from "./log_database.ts";
import { Segment } from "./segment.ts";

export interface Retention {
  readonly keepMs: number;
  readonly bytesMax: number;
}

/** Figures of the stats over one span of time, as JSON text. */
export interface SavedFigures {
  readonly span: "minute" | "hour";
  /** When the span began, milliseconds since the epoch. */
  readonly at: number;
  readonly text: string;
}

/** How long figures are kept: so long after the beginning of their span. */
const FIGURES_KEPT_MS = { minute: 2 * 3_600_000, hour: 26 * 3_600_000 } as const;
const MINUTE_MS = 60_000;
/** The file is measured anew after so many runs, and after each that said something: those take far more room. */
const MEASURED_RUNS = 64;

export class LogStore implements Disposable {
  readonly database: LogDatabase;
  readonly names: FunctionNames;
  /** Oldest first; the last one takes the next runs. There is always one. */
  #segments: Segment[] = [];
  #retention: Retention;
  #lastId = 0;
  /** Size of the file's content when the last part was begun. */
  #bytesBefore = 0;
  /** What the last part had come to when that was last measured, and about how many runs have come since. */
  #partBytes = 0;
  #unmeasured = 0;
  /** Changes when another connection has written: then what is remembered is old. `undefined` when nothing is. */
  #dataVersion: unknown;

  private constructor(database: LogDatabase, retention: Retention) {
    this.database = database;
    this.#retention = retention;
    this.names = new FunctionNames(database);
  }

  /** Opens the log, making it if there is none. Throws an `UnusableLogError` for a file that cannot be used. */
  static open(
    path: string,
    { retention, now, cacheBytes }: {
      readonly retention: Retention;
      readonly now: number;
      readonly cacheBytes?: number;
    },
  ) {
    const database = LogDatabase.open(path, cacheBytes);
    try {
      const store = new LogStore(database, retention);
      store.#load(now);
      return store;
    } catch (error) {
      database[Symbol.dispose]();
      throw error;
    }
  }

  /** Opens a log that another process may be writing, for reading. Throws an `UnusableLogError` for what is none. */
  static openReader(path: string): LogStore {
    const database = LogDatabase.openReader(path);
    try {
      const store = new LogStore(database, { keepMs: 0, bytesMax: 0 });
      store.reading(() => {});
      return store;
    } catch (error) {
      database[Symbol.dispose]();
      throw new UnusableLogError(`Cannot read "${path}": ${messageOf(error)}`, { cause: error });
    }
  }

  /**
   * Does something with what the log holds at one moment, whatever other processes write meanwhile: it may be theirs, or be
   * for a while, when one server takes over from another.
   */
  reading<Result>(work: () => Result): Result {
    return this.database.reading(() => {
      this.#refresh();
      return work();
    });
  }

  get segments(): readonly Segment[] {
    return this.#segments;
  }

  get lastId(): number {
    return this.#lastId;
  }

  get rows(): number {
    return this.#segments.reduce((rows, { facts }) => rows + facts.rows, 0);
  }

  /** Bytes of the file that hold something. */
  get bytes(): number {
    const [pages, free, size] = ["page_count", "freelist_count", "page_size"]
      .map((name) => Number(this.database.value(`PRAGMA ${name}`)));
    return ((pages ?? 0) - (free ?? 0)) * (size ?? 0);
  }

  /**
   * Adds runs in their order; returns the id of the first, the others follow it. Throws what SQLite throws, and nothing
   * was added then.
   */
  add(pack: RunPack, now: number): number {
    return this.#write(() => this.#add(pack, now));
  }

  retain(retention: Retention): void {
    this.#retention = retention;
  }

  /** Drops one part that is too old or too much; `false` when there is none. */
  dropOne(now: number): boolean {
    const [oldest, next] = this.#segments;
    const { keepMs, bytesMax } = this.#retention;
    if (oldest === undefined) return false;
    const tooOld = oldest.facts.rows > 0 && oldest.facts.lastAt < now - keepMs;
    if (!tooOld && this.bytes <= bytesMax) return false;
    // The last one is dropped only when another has taken its place.
    if (next === undefined && oldest.facts.rows === 0) return false;
    this.#write(() => {
      if (this.#segments[0] !== oldest && this.#segments[0]?.no !== oldest.no) return;
      if (this.#segments.length === 1) this.#begin(now);
      this.#segments.shift()?.drop(this.database);
      const minute = Math.floor((this.#segments[0]?.facts.firstAt ?? now) / MINUTE_MS);
      this.database.run("DELETE FROM minutes WHERE minute < ?", minute);
    });
    return true;
  }

  /** Gives pages that hold nothing back to the disk, some at a time; `false` when there are few. */
  shrink(): boolean {
    const free = Number(this.database.value("PRAGMA freelist_count"));
    const pages = Number(this.database.value("PRAGMA page_count"));
    if (free < 4_096 || free < pages / logLimits.segmentsMin) return false;
    this.database.execute("PRAGMA incremental_vacuum(2048)");
    return true;
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

  #add(pack: RunPack, now: number): number {
    const first = this.#lastId + 1;
    if (pack.count === 0) return first;
    const columns = new NumberColumns(pack.columns, { columns: COLUMNS, rows: pack.count });
    const functions = pack.functions.map(([path, kind]) => this.names.numberOf({ path, kind }));
    const segment = this.#current(now, pack.count);
    segment.packs.add(this.database, { ...pack, first, functions });
    segment.count({ ...pack, first, functions, columns });
    this.#lastId += pack.count;
    this.#addTold(segment, { pack, columns, functions, first });
    this.#countMinutes(pack, { columns, functions });
    this.#unmeasured += pack.count + pack.told.length * MEASURED_RUNS;
    return first;
  }

  /** Rows for runs that failed or said something, and for those whose function has no number. */
  #addTold(
    segment: Segment,
    { pack, columns, functions, first }: Numbered & { readonly pack: RunPack; readonly first: number },
  ): void {
    const told = new Map(pack.told.map(([position, error, logLines]) => [position, { error, logLines }]));
    if (told.size === 0 && !functions.includes(OTHER_FUNCTIONS)) return;
    for (let row = 0; row < pack.count; row++) {
      const at = columns.at(column.fn, row);
      const fn = functions[at] ?? OTHER_FUNCTIONS;
      const said = told.get(row) ?? (fn === OTHER_FUNCTIONS ? nothingTold : undefined);
      if (said === undefined) continue;
      const [path, kind] = pack.functions[at] ?? ["?", 0];
      const caller = pack.callers[columns.at(column.caller, row) - 1] ?? null;
      const record = recordAt(columns, row, { path, kind, caller, ...said });
      this.#addRow(segment, { id: first + row, fn, record });
    }
  }

  #addRow(
    segment: Segment,
    { id, fn, record }: { readonly id: number; readonly fn: number; readonly record: RunRecord },
  ): void {
    const [at, path, kind, caller, outcome, level, request, ...rest] = record;
    const callerKey = caller === null ? null : callerNumber(caller);
    const body = JSON.stringify(
      fn === OTHER_FUNCTIONS ? [caller, ...rest, path, kind] : [caller, ...rest],
    );
    this.database.run(
      `INSERT INTO ${segment.runs} (id, at, fn, outcome, level, caller, request, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[id, at, fn, outcome, level, callerKey, request, body],
    );
    const text = searchedText(record[14], record[15]);
    if (text === "") return;
    this.database.run(`INSERT INTO ${segment.texts} (rowid, text) VALUES (?, ?)`, id, text);
  }

  /** Counts runs by minute, function and class of functions, outcome and level. */
  #countMinutes(pack: RunPack, { columns, functions }: Numbered): void {
    const counts = new Map<number, number>();
    const origin = Math.floor(columns.at(column.at, 0) / MINUTE_MS);
    const [outcomes, levels] = [runOutcomes.length, lineLevels.length + 1];
    for (let row = 0; row < pack.count; row++) {
      const minute = Math.floor(columns.at(column.at, row) / MINUTE_MS) - origin;
      const key = ((minute * functions.length + columns.at(column.fn, row)) * outcomes +
            columns.at(column.outcome, row)) * levels + columns.at(column.level, row);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    for (const [key, runs] of counts) {
      const [rest, level] = divided(key, levels);
      const [others, outcome] = divided(rest, outcomes);
      const [minute, position] = divided(others, functions.length);
      const [path, kind] = pack.functions[position] ?? ["?", 0];
      for (const fn of [functions[position] ?? OTHER_FUNCTIONS, classNumber({ path, kind })]) {
        this.database.run(
          `INSERT INTO minutes (minute, fn, outcome, level, runs) VALUES (?, ?, ?, ?, ?)
           ON CONFLICT DO UPDATE SET runs = runs + excluded.runs`,
          ...[origin + minute, fn, outcome, level, runs],
        );
      }
    }
  }

  /** The part for so many more runs. In a transaction. */
  #current(now: number, runs: number): Segment {
    const last = this.#segments.at(-1);
    if (last === undefined) return this.#begin(now);
    if (last.facts.rows > 0 && last.facts.rows + runs > logLimits.segmentRowsMax) return this.#begin(now);
    if (this.#unmeasured >= MEASURED_RUNS) {
      this.#partBytes = this.bytes - this.#bytesBefore;
      this.#unmeasured = 0;
    }
    const full = last.isFull(now, { bytes: this.#partBytes, ...this.#retention });
    return full ? this.#begin(now) : last;
  }

  #begin(now: number): Segment {
    const last = this.#segments.at(-1);
    last?.save(this.database);
    const segment = Segment.create(this.database, (last?.no ?? 0) + 1, now);
    this.#segments.push(segment);
    this.#bytesBefore = this.bytes;
    this.#partBytes = 0;
    return segment;
  }

  #load(now: number): void {
    this.reading(() => {});
    if (this.#segments.length > 0) return;
    this.#write(() => {
      if (this.#segments.length === 0) this.#begin(now);
    });
  }

  /** Changes the log in a transaction. When that fails the log is as before, and what is remembered of it too. */
  #write<Result>(work: () => Result): Result {
    try {
      return this.database.transaction(() => {
        this.#refresh();
        return work();
      });
    } catch (error) {
      this.#dataVersion = undefined;
      try {
        this.reading(() => {});
      } catch {
        // Whoever next uses the log tries again.
      }
      throw error;
    }
  }

  /** Takes note of what others have written. In a transaction, so that nothing comes in between. */
  #refresh(): void {
    const dataVersion = this.database.value("PRAGMA data_version");
    if (dataVersion === this.#dataVersion) return;
    this.names.reload();
    const segments = this.database.all("SELECT no, facts FROM segments ORDER BY no")
      .map(([no, facts]) => Segment.read(no as number, facts as string));
    segments.at(-1)?.recount(this.database);
    if (segments.at(-1)?.no !== this.#segments.at(-1)?.no) this.#bytesBefore = this.bytes;
    this.#unmeasured = MEASURED_RUNS;
    this.#segments = segments;
    this.#lastId = segments.findLast(({ facts }) => facts.rows > 0)?.facts.lastId ?? 0;
    this.#dataVersion = dataVersion;
  }
}

/** The numbers of a pack, and those of its functions. */
interface Numbered {
  readonly columns: NumberColumns;
  readonly functions: readonly number[];
}

/** The remainder is never negative, as the minutes of a clock that was set back may be. */
function divided(number: number, by: number): readonly [quotient: number, remainder: number] {
  const quotient = Math.floor(number / by);
  return [quotient, number - quotient * by];
}
