/** What an endpoint of administrators answers, asked for again when it may have changed. */
import { useCallback, useEffect, useState } from "react";
import { adminSession } from "../server/admin_session.ts";

export interface Requested<Value> {
  /** `undefined` until the first answer. */
  readonly value: Value | undefined;
  readonly error: string | null;
  readonly again: () => void;
}

/** What was asked for before anybody waited for it, by path. */
const early = new Map<string, Promise<Response>>();

/** Asks while the page is still being made: the first who wants it finds it on its way. */
export function askEarly(path: string): void {
  const asked = adminSession.fetch(path);
  // Whoever takes it is told.
  asked.catch(() => {});
  early.set(path, asked);
}

function take(path: string, signal: AbortSignal): Promise<Response> {
  const asked = early.get(path);
  early.delete(path);
  return asked ?? adminSession.fetch(path, { signal });
}

/** `everyMs`: asked again after so long, while the page is in view. */
export function useRequest<Value>(path: string, everyMs: number | null = null): Requested<Value> {
  const [value, setValue] = useState<Value>();
  const [error, setError] = useState<string | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    const ask = async () => {
      try {
        const response = await take(path, ending.signal);
        const value = await response.json() as Value;
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
