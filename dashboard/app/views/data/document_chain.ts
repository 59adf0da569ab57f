/**
 * Which documents of a long list are known: pages that follow one another without a gap, beginning anywhere. Only those
 * near what is looked at are asked for; of the others it is known where they begin and how many rows they have.
 */

/** Rows of a page as it is asked for first. */
export const PAGE = 100;
/** Pages that are remembered; those furthest from what is looked at are forgotten. */
const SPANS_MAX = 400;

/** A page. */
export interface Span {
  readonly id: number;
  /** The cursor it begins behind; `null` for the beginning of the list. */
  readonly start: string | null;
  /** Where it ends, once that is fixed: then it holds all that comes in between. */
  readonly end: string | null;
  /** `null` before it was loaded. */
  readonly rows: number | null;
  /** Where the next one begins. */
  readonly next: string | null;
  /** Whether nothing follows. */
  readonly done: boolean;
}

export interface Chain {
  /** Position of its first row in the whole list. */
  readonly base: number;
  readonly spans: readonly Span[];
}

/** What a page was answered with. */
export interface PageAnswer {
  readonly rows: number;
  readonly continueCursor: string;
  readonly isDone: boolean;
  /** Where a page that has grown is to be cut. */
  readonly splitCursor?: string;
}

let nextId = 0;

function span(start: string | null, given: Partial<Span> = {}): Span {
  return { id: nextId++, start, end: null, rows: null, next: null, done: false, ...given };
}

/** A chain of one page that begins at a position. */
export function chainAt(base: number, start: string | null): Chain {
  return { base, spans: [span(start)] };
}

/** A page that is not loaded yet counts as a whole one. */
export function rowsOf({ rows }: Span): number {
  return rows ?? PAGE;
}

/** The position behind the last row. */
export function endOf({ base, spans }: Chain): number {
  return spans.reduce((sum, page) => sum + rowsOf(page), base);
}

/** Pages with the position of their first rows. */
export function placed({ base, spans }: Chain): { readonly span: Span; readonly at: number }[] {
  let at = base;
  return spans.map((span) => {
    const here = { span, at };
    at += rowsOf(span);
    return here;
  });
}

/** The page behind the last one, where that is known. */
export function appended(chain: Chain): Chain {
  const last = chain.spans.at(-1);
  if (last === undefined || last.rows === null || last.done || last.next === null) return chain;
  const spans = [...chain.spans, span(last.next)];
  if (spans.length <= SPANS_MAX) return { ...chain, spans };
  const [first] = spans;
  return { base: chain.base + (first === undefined ? 0 : rowsOf(first)), spans: spans.slice(1) };
}

/** The page before the first one, which begins behind `start`. */
export function prepended(chain: Chain, start: string | null): Chain {
  const [first] = chain.spans;
  if (first === undefined || first.start === null) return chain;
  const spans = [span(start, { end: first.start }), ...chain.spans];
  return { base: Math.max(0, chain.base - PAGE), spans: spans.slice(0, SPANS_MAX) };
}

/**
 * With what a page was answered. When it ends elsewhere than the next one begins, because documents came or went, its end is
 * fixed, and the answer that counts is the one to that.
 */
export function answered(chain: Chain, id: number, answer: PageAnswer): Chain {
  const index = chain.spans.findIndex((span) => span.id === id);
  const page = chain.spans[index];
  if (page === undefined) return chain;
  const following = chain.spans[index + 1];
  const { rows, continueCursor, isDone, splitCursor } = answer;
  if (following !== undefined && page.end === null && (isDone || continueCursor !== following.start)) {
    return replaced(chain, index, [{ ...page, end: following.start }]);
  }
  if (splitCursor !== undefined && page.end !== null) {
    return replaced(chain, index, [
      { ...page, end: splitCursor, rows: null },
      span(splitCursor, { end: page.end }),
    ]);
  }
  // One of large documents ends before its end: what follows is a page of its own.
  if (page.end !== null && !isDone && continueCursor !== page.end) {
    return replaced(chain, index, [
      { ...page, end: continueCursor, rows, next: continueCursor },
      span(continueCursor, { end: page.end }),
    ]);
  }
  const now = { ...page, rows, next: continueCursor, done: isDone };
  if (page.rows === rows && page.next === continueCursor && page.done === isDone) return chain;
  const known = replaced(chain, index, [now]);
  if (index > 0 || page.rows !== null) return known;
  // The rows that are looked at stand behind it, and stay where they are.
  if (page.start === null) return { ...known, base: 0 };
  return following === undefined ? known : { ...known, base: Math.max(0, chain.base + PAGE - rows) };
}

function replaced(chain: Chain, index: number, by: readonly Span[]): Chain {
  return { ...chain, spans: chain.spans.toSpliced(index, 1, ...by) };
}
