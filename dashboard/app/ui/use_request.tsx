/** Hooks that fetch from the administrators' endpoints, with optional polling, and that load live lists page by page. */
import { useCallback, useEffect, useRef, useState } from "react";
import { type ListArgs, type PaginatedName, type PaginatedQuery, usePaginatedQuery } from "syncline/react";
import { adminSession, RequestError, UNREACHABLE } from "../server/admin_session.ts";
import { Button } from "./controls.tsx";
import { NO_ANSWER } from "./view.tsx";

const FIRST = 50;
const MORE = 100;

type LiveList<Row> = PaginatedQuery<Row>;

export function useLiveList<Name extends PaginatedName>(query: Name, args: ListArgs<Name>) {
  return usePaginatedQuery(query, args as never, { initialNumItems: FIRST });
}

/** Loads the next page when scrolled into view or clicked. */
export function ListEnd({ list }: { readonly list: Pick<LiveList<unknown>, "status" | "loadMore"> }) {
  const end = useRef<HTMLDivElement>(null);
  const { status, loadMore } = list;
  useEffect(() => {
    if (status !== "CanLoadMore" || end.current === null) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && loadMore(MORE));
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [status, loadMore]);
  if (status === "Exhausted") return null;
  return (
    <div ref={end} className="empty">
      {status === "CanLoadMore" ? <Button onClick={() => loadMore(MORE)}>Load more</Button> : "Loading…"}
    </div>
  );
}

export interface RequestState<Value> {
  /** `undefined` until the first response. */
  readonly value: Value | undefined;
  readonly error: string | null;
  readonly refetch: () => void;
}

/** A request sent by `public/first.js` before any other script has loaded. */
interface Prefetched {
  /** Time of the request, by `performance.now()`. */
  readonly at: number;
  /** `undefined` until the response has arrived. */
  readonly value: unknown;
  /** Resolves with `undefined` if the request failed. */
  readonly response: Promise<unknown>;
}

const PREFETCH_AGE_MAX_MS = 30_000;
/** Timeout of a request. */
const ANSWER_MS = 30_000;
/** Delay before a request that failed for a moment is sent again. */
const RETRY_MS = 3_000;

const prefetched = (globalThis as { synclinePrefetched?: Map<string, Prefetched> }).synclinePrefetched ??
  new Map<string, Prefetched>();

function prefetchedFor(path: string): Prefetched | undefined {
  const asked = prefetched.get(path);
  return asked !== undefined && performance.now() - asked.at < PREFETCH_AGE_MAX_MS ? asked : undefined;
}

/** Uses the prefetched response once. */
async function load(path: string, kind: "query" | "action", signal: AbortSignal): Promise<unknown> {
  const asked = prefetchedFor(path);
  prefetched.delete(path);
  return await asked?.response ?? await request(path, kind, signal);
}

async function request(path: string, kind: "query" | "action", signal: AbortSignal): Promise<unknown> {
  if (path.startsWith("/")) return await (await adminSession.fetch(path, { signal })).json();
  const response = await adminSession.fetch(`/api/${kind}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ path, args: {} }),
    signal,
  });
  return (await response.json() as { readonly value: unknown }).value;
}

/**
 * Fetches `path`: an endpoint, or the path of a function without arguments. Requests that fail for a moment are repeated.
 *
 * @param everyMs Polling interval while the page is visible; `null` disables polling.
 */
export function useRequest<Value>(
  path: string,
  everyMs: number | null = null,
  kind: "query" | "action" = "action",
): RequestState<Value> {
  const [value, setValue] = useState(() => prefetchedFor(path)?.value as Value | undefined);
  const [error, setError] = useState<string | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    let retry: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      clearTimeout(retry);
      try {
        const value = await load(
          path,
          kind,
          AbortSignal.any([ending.signal, AbortSignal.timeout(ANSWER_MS)]),
        );
        if (ending.signal.aborted) return;
        setValue(value as Value);
        setError(null);
      } catch (failure) {
        if (ending.signal.aborted) return;
        setError(
          isSilence(failure) ? NO_ANSWER : failure instanceof Error ? failure.message : String(failure),
        );
        clearTimeout(retry);
        if (isTemporary(failure)) retry = setTimeout(() => void ask(), RETRY_MS);
      }
    };
    void ask();
    const timer = everyMs === null ? undefined : setInterval(() => {
      if (!document.hidden) void ask();
    }, everyMs);
    return () => {
      ending.abort();
      clearTimeout(retry);
      clearInterval(timer);
    };
  }, [path, everyMs, kind, round]);
  return { value, error, refetch: useCallback(() => setRound((now) => now + 1), []) };
}

/** Whether a request got no response. */
function isSilence(failure: unknown): boolean {
  return failure instanceof RequestError
    ? failure.code === UNREACHABLE
    : failure instanceof DOMException && failure.name === "TimeoutError";
}

/** Whether a request may succeed when repeated: it got no response, or a part of the server restarts. */
export function isTemporary(failure: unknown): boolean {
  return isSilence(failure) || failure instanceof RequestError && failure.status === 503;
}

/** Delay before a changed filter is applied, so that typing does not query on every key. */
const TYPING_MS = 250;

/** Returns a value that has not changed for a moment. */
export function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), TYPING_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
