/** The pages of a long list of documents near what is looked at, live, and ways to any position of it. */
import { useCallback, useEffect, useRef, useState } from "react";
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

/** Rows from the ends of what is known at which more is asked for. */
const AHEAD = 80;
/** What is scrolled past quickly is not loaded: a person has to stay so long. */
const STAY_MS = 120;

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
  const [looked, setLooked] = useState({ first: 0, last: 0 });
  const asking = useRef(false);
  const { first, last } = looked;
  const end = endOf(chain);
  const tail = chain.spans.at(-1);
  const exact = tail?.done === true;
  const far = first > end + 2 * PAGE || last < chain.base - 2 * PAGE;

  const count = useCallback(async () => {
    if (!countable) return null;
    const { count } = await askOnce(api.data.count, where as never);
    setCounted(count);
    return count;
  }, []);
  useEffect(() => void count().catch(() => {}), []);

  /** Asks for the cursor behind so many rows, or so many rows before another one; one at a time. */
  function seek(
    place: { readonly behind: number; readonly before?: string },
    use: (cursor: string | null) => void,
  ): void {
    if (asking.current) return;
    asking.current = true;
    const found = place.behind === 0
      ? Promise.resolve({ cursor: null })
      : askOnce(api.data.position, { ...where, ...place } as never);
    found.then(({ cursor }) => use(cursor), () => {}).finally(() => asking.current = false);
  }

  useEffect(() => {
    if (far) {
      const stay = setTimeout(() => {
        const behind = Math.max(0, Math.min(first - PAGE / 2, (counted ?? first) - PAGE));
        seek({ behind }, (cursor) => {
          if (cursor === null && behind > 0) void count();
          else setChain(chainAt(behind, cursor));
        });
      }, STAY_MS);
      return () => clearTimeout(stay);
    }
    if (last + AHEAD > end) setChain(appended);
    const [head] = chain.spans;
    if (first - AHEAD < chain.base && head !== undefined && head.start !== null && head.rows !== null) {
      const { start } = head;
      // Only as many keys are read as a page has rows, however far down it is.
      seek(
        { behind: PAGE, before: start },
        (cursor) => setChain((now) => now.spans[0] === head ? prepended(now, cursor) : now),
      );
    }
  }, [first, last, chain, counted]);

  const onAnswer = useCallback(
    (id: number, answer: PageAnswer) => setChain((now) => answered(now, id, answer)),
    [],
  );
  const look = useCallback((first: number, last: number) => {
    setLooked((before) => before.first === first && before.last === last ? before : { first, last });
  }, []);
  const around = PAGE;
  const near = placed(chain).filter(({ span, at }) =>
    span.rows === null || at <= last + around && at + span.rows >= first - around
  );
  // What is not loaded yet counts only where nothing else tells how much there is.
  const loaded = tail?.rows === null ? end - PAGE : end;
  const total = exact ? end : countable && counted !== null ? Math.max(counted, loaded) : loaded + 1;
  return { total, exact, counted: exact || counted !== null && countable, near, onAnswer, look };
}
