/** The log worker's core: stores, queries and selects runs; replaces an unusable log, and drops runs while it has none. */
import { basename, dirname } from "node:path";
import { logLimits } from "../../limits.ts";
import type { RunFilter } from "../run_filter.ts";
import { loggedRun, type RunRecord } from "../run_record.ts";
import { convertLog } from "../store/convert_log.ts";
import { histogramOf } from "../store/histogram.ts";
import {
  checkpointLog,
  isBadFile,
  isDiskError,
  messageOf,
  OLD_FORMAT_VERSION,
  otherLogFormat,
  OtherLogFormatError,
} from "../store/log_database.ts";
import { LogStore, type Retention, type SavedFigures } from "../store/log_store.ts";
import { searchRuns } from "../store/search.ts";
import { runEvent } from "../stream/log_streams.ts";
import type {
  BacklogAnswer,
  BacklogQuestion,
  FromLogWorker,
  LogMethods,
  PageAnswer,
  PageQuestion,
} from "./messages.ts";
import { Tails } from "./tails.ts";

/** Files of a SQLite database, including the write-ahead log. */
const FILES = ["", "-wal", "-shm"];

/** Quarantines a log for the retention time, replacing an earlier one. Returns its new path. */
function quarantine(path: string, now: number): string {
  const target = quarantinePath(path);
  if (!exists(path)) return target;
  for (const end of FILES) {
    if (exists(path + end)) Deno.renameSync(path + end, target + end);
    else if (exists(target + end)) Deno.removeSync(target + end);
  }
  // Its retention time starts now.
  Deno.utimeSync(target, now / 1_000, now / 1_000);
  return target;
}

/** Removes the quarantined log if it was moved before an instant, in milliseconds since the epoch. */
function removeQuarantined(path: string, before: number): void {
  const target = quarantinePath(path);
  try {
    const { isFile, mtime } = Deno.lstatSync(target);
    if (!isFile || mtime === null || mtime.getTime() >= before) return;
    for (const end of FILES.toReversed()) if (exists(target + end)) Deno.removeSync(target + end);
  } catch {
    // Usually there is none; failures are ignored.
  }
}

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound);
  }
}

function quarantinePath(path: string): string {
  return `${path}.unusable`;
}

export interface LogKeeperOptions {
  readonly path: string;
  readonly retention: Retention;
  readonly now: () => number;
  readonly send: (message: FromLogWorker) => void;
}

/** Retry interval for a log that cannot be opened. */
const REOPEN_MS = 10_000;
/** Retry interval while a server of another version has the log open. */
const IN_USE_MS = 500;
/** Timeout after which such a log is quarantined anyway, in case a reader was left running. */
const IN_USE_MS_MAX = 60_000;

export class LogKeeper implements LogMethods, Disposable {
  readonly #options: LogKeeperOptions;
  #retention: Retention;
  #store: LogStore | null = null;
  /** Time of the next attempt to open the log. */
  #openAt = 0;
  /** Deadline for a server of another version to release its log, or `null`. */
  #othersUntil: number | null = null;
  readonly #tails = new Tails();
  #lost = 0;
  /** Whether the file was missing at the last check. */
  #seemsRemoved = false;
  #trouble: string | null = null;

  constructor(options: LogKeeperOptions) {
    this.#options = options;
    this.#retention = options.retention;
    this.#open();
    this.#reportState();
  }

  page(question: PageQuestion): PageAnswer | null {
    return this.#read((store) => pageOf(store, question));
  }

  backlog(question: BacklogQuestion): BacklogAnswer | null {
    return this.#read((store) => backlogOf(store, question));
  }

  loadFigures(now: number): readonly SavedFigures[] | null {
    return this.#read((store) => store.loadFigures(now));
  }

  saveFigures(figures: readonly SavedFigures[]): void {
    this.#attempt((store) => store.saveFigures(figures, this.#options.now()));
  }

  store(json: string): true {
    const runs = JSON.parse(json) as readonly RunRecord[];
    let firstId = 0;
    if (this.#attempt((store) => firstId = store.add(runs))) {
      const tailed = this.#tails.pick(runs, firstId);
      if (tailed !== null) this.#options.send(tailed);
    } else {
      this.#lost += runs.length;
      this.#reportState();
    }
    return true;
  }

  retain(retention: Retention): void {
    this.#retention = retention;
    this.#store?.retain(retention);
  }

  tail(tail: number, filter: RunFilter): void {
    this.#tails.set(tail, filter);
  }

  untail(tail: number): void {
    this.#tails.delete(tail);
  }

  /** Deletes a batch of old and excess runs. Call periodically, and again soon if it returns `true`. */
  cleanUp(): boolean {
    if (this.#wasRemoved()) this.#reopen();
    const store = this.#opened();
    let isMore = false;
    if (store === null) this.#reportState();
    else {
      try {
        const now = this.#options.now();
        removeQuarantined(this.#options.path, now - this.#retention.keepMs);
        isMore = store.trim(now);
        store.shrink();
        this.#reportState();
      } catch (error) {
        this.#failed(error);
      }
    }
    return isMore;
  }

  /** Frees the log's page cache. A later trim of the process returns the memory to the system. */
  releaseCache(): void {
    try {
      this.#store?.database.execute("PRAGMA shrink_memory");
    } catch (error) {
      this.#failed(error);
    }
  }

  close(): void {
    this.#store?.[Symbol.dispose]();
    this.#store = null;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /** Runs reads on one snapshot; returns `null` on failure. */
  #read<Answer>(work: (store: LogStore) => Answer): Answer | null {
    let answer: Answer | null = null;
    this.#attempt((store) => answer = store.database.reading(() => work(store)));
    return answer;
  }

  /** Runs an operation on the log; returns `false` on failure. After damage it is retried with a new log. */
  #attempt(work: (store: LogStore) => void): boolean {
    for (let attempt = 0; attempt < 2; attempt++) {
      const store = this.#opened();
      if (store === null) return false;
      try {
        work(store);
        if (this.#trouble !== null) {
          this.#trouble = null;
          this.#log("info", "Execution log recovered");
        }
        return true;
      } catch (error) {
        this.#failed(error);
        if (!isBadFile(error)) return false;
      }
    }
    return false;
  }

  #opened(): LogStore | null {
    if (this.#store === null && this.#options.now() >= this.#openAt) this.#open();
    return this.#store;
  }

  #failed(error: unknown): void {
    if (isBadFile(error)) return this.#quarantine(messageOf(error));
    this.#reportTrouble(isDiskError(error) ? `Disk error: ${messageOf(error)}` : messageOf(error));
  }

  #open(): void {
    try {
      this.#store = this.#openStore();
      this.#othersUntil = null;
    } catch (error) {
      if (error instanceof OtherLogFormatError && this.#isInUse()) {
        this.#cannotOpen(`${messageOf(error)}, which is still using it`, IN_USE_MS);
      } else if (isBadFile(error)) this.#quarantine(messageOf(error));
      else this.#cannotOpen(messageOf(error));
    }
  }

  #openStore(): LogStore {
    return LogStore.open(this.#options.path, { retention: this.#retention });
  }

  /** Whether to wait for a server of another version that still has the log open. */
  #isInUse(): boolean {
    const { path, now } = this.#options;
    this.#othersUntil ??= now() + IN_USE_MS_MAX;
    return !checkpointLog(path) && now() < this.#othersUntil;
  }

  /** Checked twice, because another server may be about to create a new file. */
  #wasRemoved(): boolean {
    const seenBefore = this.#seemsRemoved;
    this.#seemsRemoved = this.#store !== null && !exists(this.#options.path);
    return this.#seemsRemoved && seenBefore;
  }

  /** Reopens the log: the open file was unlinked, so no one could read further entries. */
  #reopen(): void {
    this.#seemsRemoved = false;
    this.close();
    this.#open();
    if (this.#store === null) return;
    this.#log("warn", "The execution log was removed; started a new one");
  }

  /** Quarantines the file and starts a new log, with the runs of one that has the previous format. */
  #quarantine(reason: string): void {
    const { path, now } = this.#options;
    this.close();
    try {
      const isOldFormat = otherLogFormat(path) === OLD_FORMAT_VERSION;
      const target = quarantine(path, now());
      const store = this.#store = this.#openStore();
      if (isOldFormat) this.#convert(target, store);
      else {
        this.#log(
          "warn",
          `Execution log unusable; moved to "${basename(target)}" now and a new one has begun`,
          reason,
        );
      }
    } catch (error) {
      this.#cannotOpen(
        `${reason}; cannot create a new one in "${basename(dirname(path))}": ${messageOf(error)}`,
      );
    }
  }

  #convert(from: string, to: LogStore): void {
    try {
      const copied = convertLog(from, to, { now: this.#options.now() });
      this.#log(
        "info",
        "Execution log converted to a new format",
        `copied the ${copied} newest runs; the previous file is removed after the retention time`,
      );
    } catch (error) {
      this.#log(
        "warn",
        `Execution log of an earlier version cannot be converted; moved to "${basename(from)}"`,
        messageOf(error),
      );
    }
  }

  #cannotOpen(reason: string, againMs = REOPEN_MS): void {
    this.#openAt = this.#options.now() + againMs;
    this.#reportTrouble(reason);
  }

  /** Logs a problem once, until it changes or is resolved. */
  #reportTrouble(reason: string): void {
    if (this.#trouble === reason) return;
    this.#trouble = reason;
    this.#log("warn", "Cannot write the execution log", reason);
    this.#reportState();
  }

  #log(level: "info" | "warn", message: string, reason = ""): void {
    this.#options.send({ type: "Log", level, message, reason });
  }

  #reportState(): void {
    let facts = { rows: 0, bytes: 0 };
    try {
      if (this.#store !== null) facts = { rows: this.#store.rows, bytes: this.#store.bytes };
    } catch {
      // Reported by the next operation.
    }
    this.#options.send({ type: "State", state: { ...facts, lost: this.#lost, trouble: this.#trouble } });
  }
}

function pageOf(store: LogStore, { filter, before, limit, share = 1, histogram }: PageQuestion): PageAnswer {
  const deadline = performance.now() + logLimits.searchMs * share;
  const { runs, next, cut } = searchRuns(store, {
    filter,
    limit,
    deadline,
    ...(before !== undefined && { before }),
  });
  return {
    runs: runs.map(({ id, record }) => loggedRun(id, record)),
    next,
    cut,
    lastId: store.lastId,
    histogram: histogram === undefined ? null : histogramOf(store, {
      filter,
      ...histogram,
      deadline: performance.now() + logLimits.histogramMs * share,
    }),
  };
}

function backlogOf(store: LogStore, { filter, after, share = 1 }: BacklogQuestion): BacklogAnswer {
  const { lastId } = store;
  if (after === null) return { events: "", missed: 0, lastId };
  const deadline = performance.now() + logLimits.searchMs * share;
  const limit = logLimits.backlogRunsMax;
  const { runs, next } = searchRuns(store, { filter, after, limit, deadline });
  let missed = 0;
  for (let before = next; before !== null;) {
    const more = searchRuns(store, { filter, after, before, limit: 4 * limit, deadline });
    missed += more.runs.length;
    before = more.cut ? null : more.next;
  }
  const events = runs.toReversed().map(({ id, record }) => runEvent(loggedRun(id, record)));
  return { events: events.join(""), missed, lastId };
}
