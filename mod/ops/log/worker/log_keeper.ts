/**
 * The log worker without its messages: stores runs, answers requests and selects runs for tails. An unusable log is quarantined and
 * replaced, and one of the previous format converted. While no log can be opened, runs are counted and dropped.
 */
import { basename, dirname } from "node:path";
import { logLimits } from "../../limits.ts";
import { runEvent } from "../stream/events.ts";
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
import type {
  Answer,
  BacklogAnswer,
  BacklogQuestion,
  FromLogWorker,
  PageAnswer,
  PageQuestion,
  ToLogWorker,
} from "./messages.ts";
import { exists, quarantine, removeQuarantined } from "./quarantine.ts";
import { Tails } from "./tails.ts";

export interface LogKeeperOptions {
  readonly path: string;
  readonly retention: Retention;
  /** Page cache size of the database; default `logLimits.cacheBytes`. */
  readonly cacheBytes?: number;
  readonly now: () => number;
  readonly say: (message: FromLogWorker) => void;
}

/** Retry interval for a log that cannot be opened. */
const REOPEN_MS = 10_000;
/** Retry interval while a server of another version has the log open. */
const IN_USE_MS = 500;
/** Timeout after which such a log is quarantined anyway, in case a reader was left running. */
const IN_USE_MS_MAX = 60_000;

export class LogKeeper implements Disposable {
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

  take(message: Exclude<ToLogWorker, { type: "Start" }>): void {
    switch (message.type) {
      case "Retain":
        this.#retention = message.retention;
        this.#store?.retain(message.retention);
        return;
      case "SaveFigures":
        return this.#saveFigures(message.figures);
      case "Tail":
        this.#tails.set(message.tail, message.filter);
        return;
      case "Untail":
        this.#tails.delete(message.tail);
        return;
      case "Ask":
        return this.#options.say({ type: "Answer", ask: message.ask, answer: this.#answer(message) });
      default:
        message satisfies never;
    }
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

  [Symbol.dispose](): void {
    this.#store?.[Symbol.dispose]();
    this.#store = null;
  }

  #storeRuns(runs: readonly RunRecord[]): void {
    let firstId = 0;
    if (!this.#attempt((store) => firstId = store.add(runs))) {
      this.#lost += runs.length;
      return this.#reportState();
    }
    const tailed = this.#tails.pick(runs, firstId);
    if (tailed !== null) this.#options.say(tailed);
  }

  #saveFigures(figures: readonly SavedFigures[]): void {
    this.#attempt((store) => store.saveFigures(figures, this.#options.now()));
  }

  #answer(message: Extract<ToLogWorker, { type: "Ask" }>): Answer {
    let answer: Answer = null;
    switch (message.kind) {
      case "page":
        this.#attempt((store) => answer = store.database.reading(() => pageOf(store, message.asked)));
        break;
      case "backlog":
        this.#attempt((store) => answer = store.database.reading(() => backlogOf(store, message.asked)));
        break;
      case "figures":
        this.#attempt((store) => answer = store.loadFigures(message.asked.now));
        break;
      case "runs":
        this.#storeRuns(JSON.parse(message.asked));
        return true;
      case "close":
        this[Symbol.dispose]();
        return true;
      default:
        message satisfies never;
    }
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
          this.#options.say({
            type: "Say",
            level: "info",
            message: "Execution log recovered",
            reason: "",
          });
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
    this.#say(isDiskError(error) ? `Disk error: ${messageOf(error)}` : messageOf(error));
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
    const { path, cacheBytes = logLimits.cacheBytes } = this.#options;
    return LogStore.open(path, { retention: this.#retention, cacheBytes });
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
    this.#store?.[Symbol.dispose]();
    this.#store = null;
    this.#open();
    if (this.#store === null) return;
    this.#options.say({
      type: "Say",
      level: "warn",
      message: "The execution log was removed; started a new one",
      reason: "",
    });
  }

  /** Quarantines the file and starts a new log, with the runs of one that has the previous format. */
  #quarantine(reason: string): void {
    const { path, now } = this.#options;
    this.#store?.[Symbol.dispose]();
    this.#store = null;
    try {
      const isOldFormat = otherLogFormat(path) === OLD_FORMAT_VERSION;
      const target = quarantine(path, now());
      const store = this.#store = this.#openStore();
      if (isOldFormat) this.#convert(target, store);
      else {
        const message = `Execution log unusable; moved to "${basename(target)}" now and a new one has begun`;
        this.#options.say({ type: "Say", level: "warn", message, reason });
      }
    } catch (error) {
      this.#cannotOpen(
        `${reason}; cannot create a new one in "${basename(dirname(path))}": ${messageOf(error)}`,
      );
    }
  }

  #convert(from: string, to: LogStore): void {
    const file = `the old file is "${basename(from)}"`;
    try {
      const reason = `copied the ${convertLog(from, to, this.#options.now())} newest runs`;
      const message = `Execution log converted to a new format; ${file}`;
      this.#options.say({ type: "Say", level: "info", message, reason });
    } catch (error) {
      const message = `Execution log of an earlier version cannot be converted; ${file}`;
      this.#options.say({ type: "Say", level: "warn", message, reason: messageOf(error) });
    }
  }

  #cannotOpen(reason: string, againMs = REOPEN_MS): void {
    this.#openAt = this.#options.now() + againMs;
    this.#say(reason);
  }

  /** Logs a problem once, until it changes or is resolved. */
  #say(reason: string): void {
    if (this.#trouble === reason) return;
    this.#trouble = reason;
    this.#options.say({ type: "Say", level: "warn", message: "Cannot write the execution log", reason });
    this.#reportState();
  }

  #reportState(): void {
    let facts = { rows: 0, bytes: 0 };
    try {
      if (this.#store !== null) facts = { rows: this.#store.rows, bytes: this.#store.bytes };
    } catch {
      // Reported by the next operation.
    }
    this.#options.say({ type: "State", state: { ...facts, lost: this.#lost, trouble: this.#trouble } });
  }
}

function pageOf(store: LogStore, { filter, before, limit, histogram }: PageQuestion): PageAnswer {
  const deadline = performance.now() + logLimits.searchMs;
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
    histogram: histogram === undefined ? null : histogramOf(store, {
      filter,
      ...histogram,
      deadline: performance.now() + logLimits.histogramMs,
    }),
  };
}

function backlogOf(store: LogStore, { filter, after }: BacklogQuestion): BacklogAnswer {
  const { lastId } = store;
  if (after === null) return { events: "", missed: 0, lastId };
  const deadline = performance.now() + logLimits.searchMs;
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
