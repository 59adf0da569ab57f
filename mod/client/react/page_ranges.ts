/** Which pages a list is made of. Pure: what to ask next follows from the pages and their results. */
import { reactLimits } from "./limits.ts";

/** What a paginated query is asked for (`paginationOpts`). */
export interface PageRange {
  /** Behind which row the page begins; `null` for the first one. */
  readonly cursor: string | null;
  /** Where it ends, whatever is added or removed; `null` for a last page, which ends after `numItems` rows. */
  readonly endCursor: string | null;
  readonly numItems: number;
}

/** What a paginated query gives. */
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
 * The list with one more page. What was the last page ends from now on where it ends at this moment, so the new one
 * begins right behind it: rows that come and go at the border are in one of the two, and never in both.
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
 * The list with grown pages cut in two and shrunken neighbours made one, or `null` when there is nothing to do. The
 * pages cover the same rows as before. A page is cut at twice its size and joined below half of it, so that nothing
 * goes to and fro.
 */
export function balanced(pages: readonly LoadedPage[]): PageRange[] | null {
  const ranges: PageRange[] = [];
  let changed = false;
  let cuts = 0;
  let before: LoadedPage | null = null;
  for (const page of pages) {
    const { range, result } = page;
    const known = ranges.at(-1);
    if (result.splitCursor !== undefined && pages.length + cuts < reactLimits.pagesMax) {
      cuts++;
      ranges.push({ ...range, endCursor: result.splitCursor }, { ...range, cursor: result.splitCursor });
      changed = true;
      before = null;
    } else if (before !== null && known !== undefined && range.endCursor !== null && isSmall(before, page)) {
      ranges[ranges.length - 1] = { ...known, endCursor: range.endCursor };
      changed = true;
      // One joining at a time: how large the result is will be seen.
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
