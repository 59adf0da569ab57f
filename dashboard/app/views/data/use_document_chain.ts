/** The pages of a long list of documents near what is looked at, live, and ways to any position of it. */
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { api, type Where } from "../../server/api.ts";
import { askOnce } from "../../server/ask_once.ts";
import {
  answered,
  appended,
  type Chain,
  chainAt,
  endOf,
  PAGE,
  type PageAnswer,
  placed,
  prepended,
  type Span,
} from "./document_chain.ts";
import { NewestRequest } from "./newest_request.ts";

/** Rows from the ends of what is known at which more is asked for. */
const AHEAD = 80;
/** Rows from there at which it is left, and begun anew. */
const FAR = 2 * PAGE;

/** Positions: from the first up to but not including the last. */
interface Positions {
  readonly first: number;
  readonly last: number;
}

/** What is asked for: the cursor behind so many rows, or so many rows before the page that begins the list so far. */
type Wanted = { readonly behind: number } | { readonly before: Span; readonly start: string };

/** A page near what is looked at, with the position of its first row. */
export interface PlacedSpan {
  readonly span: Span;
  readonly at: number;
}

export interface DocumentChain {
  /** Rows of the list, as far as is known. */
  readonly total: number;
  /** Whether `total` is all: the last row is loaded. */
  readonly exact: boolean;
  /** Whether `total` was counted. */
  readonly counted: boolean;
  /** Positions of the pages that are known, or are being asked for. */
  readonly known: Positions;
  /** Pages to show. */
  readonly near: readonly PlacedSpan[];
  readonly onAnswer: (id: number, answer: PageAnswer) => void;
  /** Called with the positions that are looked at. */
  readonly look: (first: number, last: number) => void;
}

/** `where` stays the same as long as the component does. Results of searches and conditions have no position: they are loaded from the first on. */
export function useDocumentChain(where: Where, known: number | null): DocumentChain {
  const countable = where.search === undefined && (where.conditions ?? []).length === 0;
  const [chain, setChain] = useState<Chain>(() => chainAt(0, null));
  const [counted, setCounted] = useState<number | null>(known);
  const shown = useRef(chain);
  useLayoutEffect(() => void (shown.current = chain));
  const [looked, setLooked] = useState<Positions>({ first: 0, last: 0 });
  /** The same, known before it is drawn. */
  const looking = useRef(looked);
  const { first, last } = looked;
  const end = endOf(chain);
  const tail = chain.spans.at(-1);
  const exact = tail?.done === true;
  const far = isFar(looked, { first: chain.base, last: end });

  const count = useCallback(async () => {
    if (!countable) return null;
    const { count } = await askOnce(api.data.count, where as never);
    setCounted(count);
    return count;
  }, []);
  useEffect(() => void count().catch(() => {}), []);

  const places: NewestRequest<Wanted> = useMemo(() =>
    new NewestRequest<Wanted>(async (wanted) => {
      if ("before" in wanted) {
        const { before, start } = wanted;
        // Only as many keys are read as a page has rows, however far down it is.
        const { cursor } = await askOnce(
          api.data.position,
          { ...where, behind: PAGE, before: start } as never,
        );
        if (shown.current.spans[0] !== before) return false;
        places.drop();
        setChain((now) => now.spans[0] === before ? prepended(now, cursor) : now);
        return true;
      }
      const { behind } = wanted;
      const cursor = behind === 0
        ? null
        : (await askOnce(api.data.position, { ...where, behind } as never)).cursor;
      if (isFar(looking.current, { first: behind, last: behind + PAGE })) return false;
      if (cursor === null && behind > 0) await count();
      else {
        // What is wanted from here on is seen when this is drawn.
        places.drop();
        setChain(chainAt(behind, cursor));
      }
      return true;
    }), []);
  useEffect(() => () => places.drop(), []);

  useEffect(() => {
    if (far) {
      places.ask({ behind: Math.max(0, Math.min(first - PAGE / 2, (counted ?? first) - PAGE)) });
      return;
    }
    if (last + AHEAD > end) setChain(appended);
    const [head] = chain.spans;
    if (first - AHEAD < chain.base && head !== undefined && head.start !== null && head.rows !== null) {
      places.ask({ before: head, start: head.start });
    } else {
      places.drop();
    }
  }, [first, last, chain, counted]);

  const onAnswer = useCallback(
    (id: number, answer: PageAnswer) => setChain((now) => answered(now, id, answer)),
    [],
  );
  const look = useCallback((first: number, last: number) => {
    looking.current = { first, last };
    setLooked((before) => before.first === first && before.last === last ? before : { first, last });
  }, []);
  const around = PAGE;
  const near = placed(chain).filter(({ span, at }) =>
    span.rows === null || at <= last + around && at + span.rows >= first - around
  );
  // What is not loaded yet counts only where nothing else tells how much there is.
  const loaded = tail?.rows === null ? end - PAGE : end;
  const total = exact ? end : countable && counted !== null ? Math.max(counted, loaded) : loaded + 1;
  return {
    total,
    exact,
    counted: exact || counted !== null && countable,
    known: { first: chain.base, last: end },
    near,
    onAnswer,
    look,
  };
}

function isFar(looked: Positions, known: Positions): boolean {
  return looked.first > known.last + FAR || looked.last < known.first - FAR;
}
