/** What the log holds: runs in parts, their counts by minute, and the figures of the stats. Owned by the log process. */
import { logLimits } from "../../limits.ts";
import { type RunRecord, searchedText } from "../run_record.ts";
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

export class LogStore implements Disposable {
  readonly database: LogDatabase;
  readonly names: FunctionNames;
  /** Oldest first; the last one takes the next runs. There is always one. */
  #segments: Segment[] = [];
  #retention: Retention;
  #lastId = 0;
  /** Size of the file's content when the last part was begun. */
  #bytesBefore = 0;
  /** Changes when another connection has written: then what is remembered is old. */
  #dataVersion: unknown;

  private constructor(database: LogDatabase, retention: Retention) {
    this.database = database;
    this.#retention = retention;
    this.names = new FunctionNames(database);
  }

  /** Opens the log, making it if there is none. Throws an `UnusableLogError` for a file that cannot be used. */
  static open(path: string, { retention, now }: { readonly retention: Retention; readonly now: number }) {
    const database = LogDatabase.open(path);
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
      store.#read();
      return store;
    } catch (error) {
      database[Symbol.dispose]();
      throw new UnusableLogError(`Cannot read "${path}": ${messageOf(error)}`, { cause: error });
    }
  }

  /** Takes note of what another process has written since. */
  refresh(): void {
    if (this.database.value("PRAGMA data_version") === this.#dataVersion) return;
    this.names.reload();
    this.#read();
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
   * Adds runs in the order given; returns the id of the first, the others follow it. Throws what SQLite throws, and nothing
   * was added then.
   */
  add(records: readonly RunRecord[], now: number): number {
    try {
      return this.database.transaction(() => this.#add(records, now));
    } catch (error) {
      this.#dataVersion = undefined;
      throw error;
    }
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
    this.database.transaction(() => {
      this.#refresh(now);
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

  #add(records: readonly RunRecord[], now: number): number {
    this.#refresh(now);
    const firstId = this.#lastId + 1;
    const counts = new Map<string, number>();
    let segment = this.#current(now);
    for (const record of records) {
      if (segment.facts.rows >= logLimits.segmentRowsMax) segment = this.#begin(now);
      this.#addOne(segment, ++this.#lastId, record, counts);
    }
    for (const [key, runs] of counts) {
      const [minute = 0, fn = 0, outcome = 0, level = 0] = key.split(" ").map(Number);
      this.database.run(
        `INSERT INTO minutes (minute, fn, outcome, level, runs) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET runs = runs + excluded.runs`,
        ...[minute, fn, outcome, level, runs],
      );
    }
    return firstId;
  }

  #addOne(segment: Segment, id: number, record: RunRecord, counts: Map<string, number>): void {
    const [at, path, kind, caller, outcome, level, request, ...rest] = record;
    const fn = this.names.numberOf({ path, kind });
    const callerKey = caller === null ? null : callerNumber(caller);
    const body = JSON.stringify(
      fn === OTHER_FUNCTIONS ? [caller, ...rest, path, kind] : [caller, ...rest],
    );
    this.database.run(
      `INSERT INTO ${segment.runs} (id, at, fn, outcome, level, caller, request, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[id, at, fn, outcome, level, callerKey, request, body],
    );
    const [error, lines] = [record[14], record[15]];
    if (error !== null || lines.length > 0) {
      this.database.run(
        `INSERT INTO ${segment.texts} (rowid, text) VALUES (?, ?)`,
        ...[id, searchedText(error, lines)],
      );
    }
    const { facts } = segment;
    if (facts.rows++ === 0) Object.assign(facts, { firstId: id, firstAt: at, lastAt: at });
    facts.lastId = id;
    if (at < facts.lastAt) facts.sorted = false;
    facts.firstAt = Math.min(facts.firstAt, at);
    facts.lastAt = Math.max(facts.lastAt, at);
    facts.functions.set(fn, (facts.functions.get(fn) ?? 0) + 1);
    facts.outcomes[outcome] = (facts.outcomes[outcome] ?? 0) + 1;
    facts.levels[level] = (facts.levels[level] ?? 0) + 1;
    const minute = Math.floor(at / MINUTE_MS);
    for (const counted of [fn, classNumber({ path, kind })]) {
      const key = `${minute} ${counted} ${outcome} ${level}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }

  /** The part for the next runs. In a transaction. */
  #current(now: number): Segment {
    const last = this.#segments.at(-1);
    if (last === undefined) return this.#begin(now);
    const full = last.isFull(now, { bytes: this.bytes - this.#bytesBefore, ...this.#retention });
    return full ? this.#begin(now) : last;
  }

  #begin(now: number): Segment {
    const last = this.#segments.at(-1);
    last?.save(this.database);
    const segment = Segment.create(this.database, (last?.no ?? 0) + 1, now);
    this.#segments.push(segment);
    this.#bytesBefore = this.bytes;
    return segment;
  }

  #load(now: number): void {
    this.#read();
    if (this.#segments.length === 0) this.database.transaction(() => this.#begin(now));
    this.#bytesBefore = this.bytes;
    this.#dataVersion = this.database.value("PRAGMA data_version");
  }

  #read(): void {
    this.#dataVersion = this.database.value("PRAGMA data_version");
    this.#segments = this.database.all("SELECT no, facts FROM segments ORDER BY no")
      .map(([no, facts]) => Segment.read(no as number, facts as string));
    this.#segments.at(-1)?.recount(this.database);
    const lastWithRows = this.#segments.findLast(({ facts }) => facts.rows > 0);
    this.#lastId = lastWithRows?.facts.lastId ?? 0;
  }

  /** Another process may have the log open for a moment, when one server takes over from another. In a transaction. */
  #refresh(now: number): void {
    if (this.database.value("PRAGMA data_version") === this.#dataVersion) return;
    this.names.reload();
    this.#load(now);
  }
}
