/**
 * A list that is loaded page by page and stays live without a gap: a store for one component.
 *
 * ```text
 *   shown ──loadMore, or a page grew or shrank──▶ shown + next ──all pages of next have a result──▶ next is shown
 * ```
 *
 * Pages are live queries, so their results have one timestamp. A change of the pages is prepared while the current ones are
 * shown, and replaces them in one step.
 */
import type { SynclineClient } from "../client.ts";
import type { FunctionError } from "../errors.ts";
import { shareStructure } from "../queries/share_structure.ts";
import { listPagesMax } from "./limits.ts";
import {
  balanced,
  firstPage,
  type LoadedPage,
  type PageRange,
  type PageResult,
  withNextPage,
} from "./page_ranges.ts";
import { idleStore, type Outcome, queryStore, type Store } from "./query_store.ts";

/** `Exhausted` at the end of the list; rows added at the end make it `CanLoadMore` again. */
export type PageStatus = "LoadingFirstPage" | "CanLoadMore" | "LoadingMore" | "Exhausted";

/** The list as shown by a component. */
export interface ListView {
  /** The rows of all pages; unchanged rows remain the same objects. */
  readonly results: readonly unknown[];
  readonly status: PageStatus;
  /** The error of a failed page. */
  readonly error: Error | null;
}

interface Page {
  readonly range: PageRange;
  readonly store: Store<Outcome>;
  /** Ends the subscription; `null` without one. */
  end: (() => void) | null;
}

const noRows: readonly unknown[] = Object.freeze([]);

/** Shown before the first result. */
export const loadingList: ListView = Object.freeze({
  results: noRows,
  status: "LoadingFirstPage",
  error: null,
});

/** A skipped list. */
export const idleList: Store<ListView> & Pick<PageList, "loadMore"> = {
  ...idleStore,
  read: () => loadingList,
  loadMore: () => {},
};

export class PageList implements Store<ListView> {
  /** Returns the store of a page. */
  readonly #page: (range: PageRange) => Store<Outcome>;
  readonly #numItems: number;
  readonly #listeners = new Set<() => void>();
  /** Pages of `#shown` and `#next`, by range. */
  #pages = new Map<string, Page>();
  #shown: readonly Page[];
  /** Replacement for `#shown`; `null` if there is none. */
  #next: { readonly pages: readonly Page[]; readonly isLoadMore: boolean } | null = null;
  #view: ListView = loadingList;
  /** The input from which `#view` was computed. */
  #seen: readonly unknown[] = [];

  /** Without a client the list keeps loading. */
  constructor(
    client: SynclineClient | null,
    path: string,
    args: Record<string, unknown>,
    numItems: number,
  ) {
    this.#page = (paginationOpts) => queryStore(client, path, { ...args, paginationOpts });
    this.#numItems = numItems;
    this.#shown = this.#pagesOf([firstPage(numItems)]);
  }

  readonly subscribe = (listener: () => void): () => void => {
    // The same listener may subscribe several times.
    const own = () => listener();
    this.#listeners.add(own);
    this.#advance();
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size > 0) return;
      for (const page of this.#pages.values()) {
        page.end?.();
        page.end = null;
      }
    };
  };

  readonly read = (): ListView => {
    const outcomes = this.#shown.map(({ store }) => store.read());
    const made = [this.#shown, this.#next?.isLoadMore, ...outcomes];
    if (made.length !== this.#seen.length || made.some((part, i) => !Object.is(part, this.#seen[i]))) {
      this.#seen = made;
      this.#view = this.#makeView(outcomes);
    }
    return this.#view;
  };

  /**
   * Loads the next page. Ignored unless the status is `CanLoadMore`. Throws `RangeError` for too many pages, or live queries on
   * the connection.
   */
  readonly loadMore = (numItems: number = this.#numItems): void => {
    if (this.#listeners.size === 0 || this.read().status !== "CanLoadMore") return;
    const loaded = loadedPages(this.#shown);
    if (loaded === null) return;
    if (loaded.length >= listPagesMax) {
      throw new RangeError(`Cannot load more than ${listPagesMax} pages`);
    }
    this.#next = { pages: this.#pagesOf(withNextPage(loaded, numItems)), isLoadMore: true };
    this.#changed();
  };

  readonly #changed = (): void => {
    this.#advance();
    for (const listener of [...this.#listeners]) listener();
  };

  /** Advances as far as the results allow. */
  #advance(): void {
    if (this.#next?.pages.every(({ store }) => store.read() !== undefined)) {
      this.#shown = this.#next.pages;
      this.#next = null;
    }
    // The query reads other rows than before, for example for another user, so its cursors are invalid.
    if (this.#wanted().some(hasForeignCursor)) {
      this.#shown = this.#pagesOf([firstPage(this.#numItems)]);
      this.#next = null;
    }
    if (this.#next === null) {
      const loaded = loadedPages(this.#shown);
      const ranges = loaded && balanced(loaded);
      if (ranges !== null) this.#next = { pages: this.#pagesOf(ranges), isLoadMore: false };
    }
    this.#reconcile();
  }

  #wanted(): Page[] {
    return [...this.#shown, ...this.#next?.pages ?? []];
  }

  #pagesOf(ranges: readonly PageRange[]): Page[] {
    return ranges.map((range) => {
      const key = JSON.stringify(range);
      let page = this.#pages.get(key);
      if (page === undefined) {
        page = { range, store: this.#page(range), end: null };
        this.#pages.set(key, page);
      }
      return page;
    });
  }

  /**
   * Subscribes to the shown and the next pages only, in one message. If there is no room for more live queries, the shown pages
   * remain; throws `RangeError` after `loadMore`.
   */
  #reconcile(): void {
    const wanted = new Set(this.#wanted());
    try {
      if (this.#listeners.size > 0) {
        for (const page of wanted) page.end ??= page.store.subscribe(this.#changed);
      }
    } catch (error) {
      if (this.#next === null) throw error;
      const { isLoadMore } = this.#next;
      this.#next = null;
      this.#reconcile();
      if (isLoadMore) throw error;
      return;
    }
    for (const [key, page] of this.#pages) {
      if (wanted.has(page)) continue;
      page.end?.();
      this.#pages.delete(key);
    }
  }

  #makeView(outcomes: readonly Outcome[]): ListView {
    const error = outcomes.find((outcome) => outcome instanceof Error);
    if (error !== undefined) return { results: noRows, status: "Exhausted", error };
    const results = outcomes as readonly (PageResult | undefined)[];
    const last = results.at(-1);
    if (last === undefined || results.includes(undefined)) return loadingList;
    // Rows that move between pages remain the same objects.
    const rows = shareStructure(this.#view.results, results.flatMap((result) => result?.page ?? []));
    const status = this.#next?.isLoadMore ? "LoadingMore" : last.isDone ? "Exhausted" : "CanLoadMore";
    return { results: rows as readonly unknown[], status, error: null };
  }
}

/** Returns the pages with their results; `null` if one is missing or failed. */
function loadedPages(pages: readonly Page[]): LoadedPage[] | null {
  const loaded = pages.map(({ range, store }) => ({ range, result: store.read() as PageResult }));
  // An error has no rows.
  return loaded.every(({ result }) => result?.page) ? loaded : null;
}

/** Whether a page failed because its cursors belong to another query. */
function hasForeignCursor({ range, store }: Page): boolean {
  return (range.cursor ?? range.endCursor) !== null &&
    (store.read() as Partial<FunctionError> | undefined)?.code === "invalid_cursor";
}
