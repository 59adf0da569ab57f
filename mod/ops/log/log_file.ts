/** The log's file for who only reads it, beside a server or without one. */
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
  /** The newest run there was at the last look. */
  #seen: number;

  private constructor(store: LogStore, filter: RunFilter) {
    this.#store = store;
    this.#filter = filter;
    this.#seen = store.lastId;
  }

  /** Throws an `UnusableLogError` for a file that is no log, and `bad_request` for a filter that is not understood. */
  static open(path: string, parameters: URLSearchParams): LogFile {
    const { filter } = parseStreamQuery(parameters, null);
    return new LogFile(LogStore.openReader(path), filter);
  }

  /** The newest runs that pass, oldest first. */
  newest(count: number): LoggedRun[] {
    return this.#store.reading(() => {
      this.#seen = this.#store.lastId;
      const { runs } = searchRuns(this.#store, { filter: this.#filter, limit: count, deadline: Infinity });
      return inOrder(runs);
    });
  }

  /** What came since the last look; `missed` when there was more than is shown at once. */
  more(): { readonly runs: LoggedRun[]; readonly missed: boolean } {
    return this.#store.reading(() => {
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
