/** Live pages of a long list near the viewport, with random access to any position. */
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { queryOnce } from "../../server/admin_session.ts";
import { api, type Where } from "../../server/api.ts";
import {
  appended,
  endOf,
  PAGE,
  type PageAnswer,
  type PageSpan,
  type PageWindow,
  positioned,
  prepended,
  windowAt,
  withAnswer,
} from "./page_window.ts";

/** Longer than a frame, shorter than a noticeable delay. */
const STABLE_MS = 40;

/**
 * Runs at most one request at a time and queues only the latest one. If a response turns out to be stale, the next request
 * waits until the position has been stable for a moment, so positions that are merely scrolled past cost the server nothing.
 */
export class LatestRequest<Wanted> {
  /** Returns whether the response was still useful. */
  readonly #run: (wanted: Wanted) => Promise<boolean>;
  #running = false;
  #queued: { readonly wanted: Wanted } | null = null;
  #stale = false;
  #delay: ReturnType<typeof setTimeout> | undefined;

  constructor(run: (wanted: Wanted) => Promise<boolean>) {
    this.#run = run;
  }

  /** Queues a request, replacing the queued one. */
  ask(wanted: Wanted): void {
    this.drop();
    this.#queued = { wanted };
    if (this.#running) return;
    if (this.#stale) this.#delay = setTimeout(() => void this.#next(), STABLE_MS);
    else void this.#next();
  }

  drop(): void {
    clearTimeout(this.#delay);
    this.#queued = null;
  }

  async #next(): Promise<void> {
    const next = this.#queued;
    if (next === null) return;
    this.#queued = null;
    this.#running = true;
    // A failed request is retried when the position changes.
    const used = await this.#run(next.wanted).catch(() => false);
    this.#running = false;
    this.#stale = !used;
    const newer = this.#queued as typeof next | null;
    if (newer !== null) this.ask(newer.wanted);
  }
}

/** Distance in rows from the end of the loaded pages at which more are requested. */
const AHEAD = 80;
/** Distance in rows from the loaded pages at which they are dropped and a new pages is started. */
const FAR = 2 * PAGE;

/** Positions: `first` inclusive, `last` exclusive. */
interface Positions {
  readonly first: number;
  readonly last: number;
}

/** A cursor to fetch: after `behind` rows, or one page before the first loaded page. */
type Wanted = { readonly behind: number } | { readonly before: PageSpan; readonly start: string };

/** A page near the viewport, with the position of its first row. */
export interface PositionedSpan {
  readonly span: PageSpan;
  readonly at: number;
}

export interface DocumentPages {
  /** Number of rows, as far as known. */
  readonly total: number;
  /** Whether the last row is loaded, which makes `total` exact. */
  readonly exact: boolean;
  /** Whether the rows were counted. */
  readonly counted: boolean;
  readonly known: Positions;
  readonly near: readonly PositionedSpan[];
  readonly onAnswer: (id: number, answer: PageAnswer) => void;
  /** Called with the positions in view. */
  readonly onView: (first: number, last: number) => void;
}

/** @param where Must not change. Searches and unindexed filters have no positions and are loaded from the start. */
export function useDocumentPages(where: Where, known: number | null): DocumentPages {
  const countable = where.search === undefined && (where.conditions ?? []).length === 0;
  const [pages, setPages] = useState<PageWindow>(() => windowAt(0, null));
  const [counted, setCounted] = useState<number | null>(known);
  const shown = useRef(pages);
  useLayoutEffect(() => void (shown.current = pages));
  const [view, setView] = useState<Positions>({ first: 0, last: 0 });
  /** Current positions, updated before rendering. */
  const viewRef = useRef(view);
  const { first, last } = view;
  const end = endOf(pages);
  const tail = pages.spans.at(-1);
  const exact = tail?.done === true;
  const far = isFar(view, { first: pages.base, last: end });

  const count = useCallback(async () => {
    if (!countable) return null;
    const { count } = await queryOnce(api.data.count, where as never);
    setCounted(count);
    return count;
  }, []);
  useEffect(() => void count().catch(() => {}), []);

  const requests: LatestRequest<Wanted> = useMemo(() =>
    new LatestRequest<Wanted>(async (wanted) => {
      if ("before" in wanted) {
        const { before, start } = wanted;
        // Reads only as many index keys as a page has rows, at any depth.
        const { cursor } = await queryOnce(
          api.data.position,
          { ...where, behind: PAGE, before: start } as never,
        );
        if (shown.current.spans[0] !== before) return false;
        requests.drop();
        setPages((now) => now.spans[0] === before ? prepended(now, cursor) : now);
        return true;
      }
      const { behind } = wanted;
      const cursor = behind === 0
        ? null
        : (await queryOnce(api.data.position, { ...where, behind } as never)).cursor;
      if (isFar(viewRef.current, { first: behind, last: behind + PAGE })) return false;
      if (cursor === null && behind > 0) await count();
      else {
        // The effect requests what else is needed after this is rendered.
        requests.drop();
        setPages(windowAt(behind, cursor));
      }
      return true;
    }), []);
  useEffect(() => () => requests.drop(), []);

  useEffect(() => {
    if (far) {
      requests.ask({ behind: Math.max(0, Math.min(first - PAGE / 2, (counted ?? first) - PAGE)) });
      return;
    }
    if (last + AHEAD > end) setPages(appended);
    const [head] = pages.spans;
    if (first - AHEAD < pages.base && head !== undefined && head.start !== null && head.rows !== null) {
      requests.ask({ before: head, start: head.start });
    } else {
      requests.drop();
    }
  }, [first, last, pages, counted]);

  const onAnswer = useCallback(
    (id: number, answer: PageAnswer) => setPages((now) => withAnswer(now, id, answer)),
    [],
  );
  const onView = useCallback((first: number, last: number) => {
    viewRef.current = { first, last };
    setView((before) => before.first === first && before.last === last ? before : { first, last });
  }, []);
  const around = PAGE;
  const near = positioned(pages).filter(({ span, at }) =>
    span.rows === null || at <= last + around && at + span.rows >= first - around
  );
  // A page that is still loading counts only if nothing else gives the number of rows.
  const loaded = tail?.rows === null ? end - PAGE : end;
  const total = exact ? end : countable && counted !== null ? Math.max(counted, loaded) : loaded + 1;
  return {
    total,
    exact,
    counted: exact || counted !== null && countable,
    known: { first: pages.base, last: end },
    near,
    onAnswer,
    onView,
  };
}

function isFar(view: Positions, known: Positions): boolean {
  return view.first > known.last + FAR || view.last < known.first - FAR;
}
