/** What an endpoint of administrators answers, asked for again when it may have changed. */
import { useCallback, useEffect, useState } from "react";
import { adminSession } from "../server/admin_session.ts";

export interface Requested<Value> {
  /** `undefined` until the first answer. */
  readonly value: Value | undefined;
  readonly error: string | null;
  readonly again: () => void;
}

/** What `public/first.js` asked for before there was anything else. */
interface Early {
  /** When it was asked for, on the clock of `performance`. */
  readonly at: number;
  /** `undefined` until it is there. */
  readonly value: unknown;
  /** `undefined` where it was not answered. */
  readonly arrives: Promise<unknown>;
}

/** An early answer is as good as a new one for so long. */
const EARLY_MS = 30_000;

const early = (globalThis as { synclineEarly?: Map<string, Early> }).synclineEarly ??
  new Map<string, Early>();

function earlyAnswer(path: string): Early | undefined {
  const asked = early.get(path);
  return asked !== undefined && performance.now() - asked.at < EARLY_MS ? asked : undefined;
}

/** The early answer is for the first who wants it. */
async function answerOf(path: string, signal: AbortSignal): Promise<unknown> {
  const asked = earlyAnswer(path);
  early.delete(path);
  return await asked?.arrives ?? await askFor(path, signal);
}

async function askFor(path: string, signal: AbortSignal): Promise<unknown> {
  if (path.startsWith("/")) return await (await adminSession.fetch(path, { signal })).json();
  const response = await adminSession.fetch("/api/action", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ path, args: {} }),
    signal,
  });
  return (await response.json() as { readonly value: unknown }).value;
}

/**
 * `path`: of an endpoint, or the function path of an action without arguments. `everyMs`: asked again after so long, while
 * the page is in view.
 */
export function useRequest<Value>(path: string, everyMs: number | null = null): Requested<Value> {
  const [value, setValue] = useState(() => earlyAnswer(path)?.value as Value | undefined);
  const [error, setError] = useState<string | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    const ask = async () => {
      try {
        const value = await answerOf(path, ending.signal) as Value;
        if (ending.signal.aborted) return;
        setValue(value);
        setError(null);
      } catch (failure) {
        if (!ending.signal.aborted) setError(failure instanceof Error ? failure.message : String(failure));
      }
    };
    void ask();
    const timer = everyMs === null ? undefined : setInterval(() => {
      if (!document.hidden) void ask();
    }, everyMs);
    return () => {
      ending.abort();
      clearInterval(timer);
    };
  }, [path, everyMs, round]);
  return { value, error, again: useCallback(() => setRound((now) => now + 1), []) };
}
