/**
 * Window of loaded pages of a long list: consecutive pages without gaps, starting at any position. Only pages near the
 * viewport are queried; for the others only their start and number of rows are kept.
 */

/** Rows per requested page. */
export const PAGE = 100;
/** Maximum number of pages kept; the farthest from the viewport is dropped. */
const SPANS_MAX = 400;

export interface PageSpan {
  readonly id: number;
  /** Cursor after which the page starts; `null` for the beginning of the list. */
  readonly start: string | null;
  /** Cursor at which the page ends, once fixed. The page then contains all rows up to it. */
  readonly end: string | null;
  /** `null` until loaded. */
  readonly rows: number | null;
  /** Cursor of the following page. */
  readonly next: string | null;
  readonly done: boolean;
}

export interface PageWindow {
  /** Position of the first row in the whole list. */
  readonly base: number;
  readonly spans: readonly PageSpan[];
}

/** Result of a page query. */
export interface PageAnswer {
  readonly rows: number;
  readonly continueCursor: string;
  readonly isDone: boolean;
  /** Where a page that has grown too large should be split. */
  readonly splitCursor?: string;
}

let nextId = 0;

function span(start: string | null, given: Partial<PageSpan> = {}): PageSpan {
  return { id: nextId++, start, end: null, rows: null, next: null, done: false, ...given };
}

export function windowAt(base: number, start: string | null): PageWindow {
  return { base, spans: [span(start)] };
}

/** A page that is not loaded yet counts as a full page. */
export function rowsOf({ rows }: PageSpan): number {
  return rows ?? PAGE;
}

/** Position after the last row. */
export function endOf({ base, spans }: PageWindow): number {
  return spans.reduce((sum, page) => sum + rowsOf(page), base);
}

export function positioned({ base, spans }: PageWindow): { readonly span: PageSpan; readonly at: number }[] {
  let at = base;
  return spans.map((span) => {
    const here = { span, at };
    at += rowsOf(span);
    return here;
  });
}

/** Appends the next page, if its start is known. */
export function appended(pages: PageWindow): PageWindow {
  const last = pages.spans.at(-1);
  if (last === undefined || last.rows === null || last.done || last.next === null) return pages;
  const spans = [...pages.spans, span(last.next)];
  if (spans.length <= SPANS_MAX) return { ...pages, spans };
  const [first] = spans;
  return { base: pages.base + (first === undefined ? 0 : rowsOf(first)), spans: spans.slice(1) };
}

/** Prepends the page that starts after `start`. */
export function prepended(pages: PageWindow, start: string | null): PageWindow {
  const [first] = pages.spans;
  if (first === undefined || first.start === null) return pages;
  const spans = [span(start, { end: first.start }), ...pages.spans];
  return { base: Math.max(0, pages.base - PAGE), spans: spans.slice(0, SPANS_MAX) };
}

/**
 * Applies the result of a page. If inserts or deletes make the page end somewhere other than where the next one starts, its
 * end is fixed and the page is queried again up to that end.
 */
export function withAnswer(pages: PageWindow, id: number, answer: PageAnswer): PageWindow {
  const index = pages.spans.findIndex((span) => span.id === id);
  const page = pages.spans[index];
  if (page === undefined) return pages;
  const following = pages.spans[index + 1];
  const { rows, continueCursor, isDone, splitCursor } = answer;
  if (following !== undefined && page.end === null && (isDone || continueCursor !== following.start)) {
    return replaced(pages, index, [{ ...page, end: following.start }]);
  }
  if (splitCursor !== undefined && page.end !== null) {
    return replaced(pages, index, [
      { ...page, end: splitCursor, rows: null },
      span(splitCursor, { end: page.end }),
    ]);
  }
  // A page of large documents may end early; the rest becomes a page of its own.
  if (page.end !== null && !isDone && continueCursor !== page.end) {
    return replaced(pages, index, [
      { ...page, end: continueCursor, rows, next: continueCursor },
      span(continueCursor, { end: page.end }),
    ]);
  }
  const now = { ...page, rows, next: continueCursor, done: isDone };
  if (page.rows === rows && page.next === continueCursor && page.done === isDone) return pages;
  const known = replaced(pages, index, [now]);
  if (index > 0 || page.rows !== null) return known;
  // Keep the rows in view at their positions.
  if (page.start === null) return { ...known, base: 0 };
  return following === undefined ? known : { ...known, base: Math.max(0, pages.base + PAGE - rows) };
}

function replaced(pages: PageWindow, index: number, by: readonly PageSpan[]): PageWindow {
  return { ...pages, spans: pages.spans.toSpliced(index, 1, ...by) };
}
