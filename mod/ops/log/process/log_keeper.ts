/**
 * The log process without its I/O: stores runs, answers queries and selects runs for tails. An unusable log is quarantined and
 * replaced; while that is impossible, runs are counted and dropped.
 */
import { basename, dirname } from "node:path";
import { logLimits } from "../../limits.ts";
import { runEvent } from "../stream/events.ts";
import { packOf, type RunPack } from "../packs/run_pack.ts";
import { loggedRun } from "../run_record.ts";
import { histogramOf } from "../store/histogram.ts";
import {
  gatherLog,
  isBadFile,
  isDiskTrouble,
  messageOf,
  OtherLogFormatError,
} from "../store/log_database.ts";
import { LogStore, type Retention, type SavedFigures } from "../store/log_store.ts";
import { searchRuns } from "../store/search.ts";
import { quarantine, removeQuarantined } from "./aside.ts";
import type {
  BacklogAnswer,
  BacklogQuestion,
  FromLogProcess,
  LogState,
  PageAnswer,
  PageQuestion,
  Questions,
  ToLogProcess,
} from "./messages.ts";
import { Tails } from "./tails.ts";

export interface LogKeeperOptions {
  readonly path: string;
  readonly retention: Retention;
  /** Page cache size of the database; default `logLimits.cacheBytes`. */
  readonly cacheBytes?: number;
  readonly now: () => number;
  readonly say: (message: FromLogProcess) => void;
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

  take(message: Exclude<ToLogProcess, { type: "Start" }>): void {
    switch (message.type) {
      case "Runs":
        return this.#storePack(packOf(message.pack));
      case "Retain":
        this.#retention = message.retention;
        this.#store?.retain(message.retention);
        return this.cleanUp();
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

  /** Deletes old and excess runs. Call periodically. */
  cleanUp(): void {
    if (this.#wasRemoved()) this.#reopen();
    const store = this.#opened();
    if (store === null) return this.#reportState();
    try {
      removeQuarantined(this.#options.path, this.#options.now() - this.#retention.keepMs);
      // Deletes at least the two oldest partitions per call, more than can be added between calls.
      for (let turns = 0; turns < 4 && store.dropOne(this.#options.now()); turns++);
      store.shrink();
      this.#reportState();
    } catch (error) {
      this.#failed(error);
    }
  }

  [Symbol.dispose](): void {
    this.#store?.[Symbol.dispose]();
    this.#store = null;
  }

  #storePack(pack: RunPack): void {
    let firstId = 0;
    const kept = this.#attempt((store) => firstId = store.add(pack, this.#options.now()));
    if (!kept) {
      this.#lost += pack.count;
      return this.#reportState();
    }
    const tailed = this.#tails.pick(pack, firstId);
    if (tailed !== null) this.#options.say(tailed);
  }

  #saveFigures(figures: readonly SavedFigures[]): void {
    this.#attempt((store) => store.saveFigures(figures, this.#options.now()));
  }

  #answer(
    message: Extract<ToLogProcess, { type: "Ask" }>,
  ): Questions[keyof Questions]["answer"] | null {
    let answer: Questions[keyof Questions]["answer"] | null = null;
    this.#attempt((store) => {
      switch (message.kind) {
        case "page":
          answer = store.reading(() => pageOf(store, message.asked));
          return;
        case "backlog":
          answer = store.reading(() => backlogOf(store, message.asked));
          return;
        case "figures":
          answer = store.loadFigures(message.asked.now);
          return;
        default:
          message satisfies never;
      }
    });
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
    this.#say(isDiskTrouble(error) ? `Disk error: ${messageOf(error)}` : messageOf(error));
  }

  #open(): void {
    const { path, now, cacheBytes = logLimits.cacheBytes } = this.#options;
    try {
      this.#store = LogStore.open(path, { retention: this.#retention, now: now(), cacheBytes });
      this.#othersUntil = null;
    } catch (error) {
      if (error instanceof OtherLogFormatError && this.#isInUse()) {
        this.#cannotOpen(`${messageOf(error)}, which is still using it`, IN_USE_MS);
      } else if (isBadFile(error)) this.#quarantine(messageOf(error));
      else this.#cannotOpen(messageOf(error));
    }
  }

  /** Whether to wait for a server of another version that still has the log open. */
  #isInUse(): boolean {
    const { path, now } = this.#options;
    this.#othersUntil ??= now() + IN_USE_MS_MAX;
    return !gatherLog(path) && now() < this.#othersUntil;
  }

  /** Checked twice, because another server may be about to create a new file. */
  #wasRemoved(): boolean {
    const seenBefore = this.#seemsRemoved;
    this.#seemsRemoved = this.#store !== null && !isThere(this.#options.path);
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

  /** Quarantines the file and starts a new log. */
  #quarantine(reason: string): void {
    const { path, now, say, cacheBytes = logLimits.cacheBytes } = this.#options;
    this.#store?.[Symbol.dispose]();
    this.#store = null;
    try {
      const aside = quarantine(path, now());
      this.#store = LogStore.open(path, { retention: this.#retention, now: now(), cacheBytes });
      say({
        type: "Say",
        level: "warn",
        message: `Execution log unusable; moved to "${basename(aside)}" now and a new one has begun`,
        reason,
      });
    } catch (error) {
      this.#cannotOpen(
        `${reason}; cannot create a new one in "${basename(dirname(path))}": ${messageOf(error)}`,
      );
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
    const state: LogState = { ...facts, lost: this.#lost, trouble: this.#trouble };
    this.#options.say({ type: "State", state });
  }
}

function isThere(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound);
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
