/** What an endpoint of administrators answers, asked for again when it may have changed. */
import { useCallback, useEffect, useState } from "react";
import { adminSession } from "../server/admin_session.ts";

export interface Requested<Value> {
  /** `undefined` until the first answer. */
  readonly value: Value | undefined;
  readonly error: string | null;
  readonly again: () => void;
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
        const response = await adminSession.fetch(path, { signal: ending.signal });
        setValue(await response.json() as Value);
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
