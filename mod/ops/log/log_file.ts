/** Read-only access to the log file, with or without a running server. */
import { logLimits } from "../limits.ts";
import { parseStreamQuery } from "./log_query.ts";
import type { RunFilter } from "./run_filter.ts";
import { type LoggedRun, loggedRun } from "./run_record.ts";
import { LogStore } from "./store/log_store.ts";
import { type FoundRun, searchRuns } from "./store/search.ts";

export { UnusableLogError } from "./store/log_database.ts";

export class LogFile implements Disposable {
  readonly #store: LogStore;
  readonly #filter: RunFilter;
  /** ID of the newest run seen. */
  #seen: number;

  private constructor(store: LogStore, filter: RunFilter) {
    this.#store = store;
    this.#filter = filter;
    this.#seen = store.lastId;
  }

  /** Throws an `UnusableLogError` for a file that is not a log, and `bad_request` for an invalid filter. */
  static open(path: string, parameters: URLSearchParams): LogFile {
    const { filter } = parseStreamQuery(parameters, null);
    return new LogFile(LogStore.openReader(path), filter);
  }

  /** Returns the newest matching runs, oldest first. */
  newest(count: number): LoggedRun[] {
    return this.#store.database.reading(() => {
      this.#seen = this.#store.lastId;
      const { runs } = searchRuns(this.#store, { filter: this.#filter, limit: count, deadline: Infinity });
      return inOrder(runs);
    });
  }

  /** Returns runs added since the last call; `missed` if there were too many to return. */
  more(): { readonly runs: LoggedRun[]; readonly missed: boolean } {
    return this.#store.database.reading(() => {
      const after = this.#seen;
      this.#seen = Math.max(after, this.#store.lastId);
      if (this.#seen === after) return { runs: [], missed: false };
      const limit = logLimits.pageRunsMax;
      const { runs } = searchRuns(this.#store, { filter: this.#filter, after, limit, deadline: Infinity });
      return { runs: inOrder(runs), missed: runs.length === limit };
    });
  }

  [Symbol.dispose](): void {
    this.#store[Symbol.dispose]();
  }
}

function inOrder(runs: readonly FoundRun[]): LoggedRun[] {
  return runs.toReversed().map(({ id, record }) => loggedRun(id, record));
}
