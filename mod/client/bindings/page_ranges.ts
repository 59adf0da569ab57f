/** Computes the pages of a list from their results. Pure. */
import { listPagesMax } from "./limits.ts";

/** Arguments of a paginated query (`paginationOpts`). */
export interface PageRange {
  /** Start cursor; `null` for the first page. */
  readonly cursor: string | null;
  /** End cursor, which stays fixed; `null` for the last page, which ends after `numItems` rows. */
  readonly endCursor: string | null;
  readonly numItems: number;
}

/** Result of a paginated query. */
export interface PageResult {
  readonly page: readonly unknown[];
  readonly isDone: boolean;
  readonly continueCursor: string;
  readonly splitCursor?: string;
}

/** A page with its result. */
export interface LoadedPage {
  readonly range: PageRange;
  readonly result: PageResult;
}

/** A list begins with one page. */
export function firstPage(numItems: number): PageRange {
  return { cursor: null, endCursor: null, numItems };
}

/**
 * Adds a page. The previous last page gets a fixed end, where the new page starts, so that rows at the border are in exactly
 * one of them.
 */
export function withNextPage(pages: readonly LoadedPage[], numItems: number): PageRange[] {
  const ranges = pages.map(({ range }) => range);
  const last = pages.at(-1);
  if (last === undefined) return [firstPage(numItems)];
  const { continueCursor } = last.result;
  return [
    ...ranges.slice(0, -1),
    { ...last.range, endCursor: continueCursor },
    { cursor: continueCursor, endCursor: null, numItems },
  ];
}

/**
 * Splits grown pages and merges shrunken neighbors; returns `null` if nothing changes. The pages cover the same rows as before.
 * A page is split at twice its size and merged below half of it, so that it does not oscillate.
 */
export function balanced(pages: readonly LoadedPage[]): PageRange[] | null {
  const ranges: PageRange[] = [];
  let changed = false;
  let cuts = 0;
  let before: LoadedPage | null = null;
  for (const page of pages) {
    const { range, result } = page;
    const known = ranges.at(-1);
    if (result.splitCursor !== undefined && pages.length + cuts < listPagesMax) {
      cuts++;
      ranges.push({ ...range, endCursor: result.splitCursor }, { ...range, cursor: result.splitCursor });
      changed = true;
      before = null;
    } else if (before !== null && known !== undefined && range.endCursor !== null && isSmall(before, page)) {
      ranges[ranges.length - 1] = { ...known, endCursor: range.endCursor };
      changed = true;
      // One merge at a time, because the resulting size is not known yet.
      before = null;
    } else {
      ranges.push(range);
      before = page;
    }
  }
  return changed ? ranges : null;
}

function isSmall(before: LoadedPage, page: LoadedPage): boolean {
  return before.result.page.length + page.result.page.length <= page.range.numItems / 2;
}
