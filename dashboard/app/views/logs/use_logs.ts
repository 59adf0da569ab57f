/** Execution log data: pages of past runs and a live stream of new ones. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { LoggedRun } from "../../../../mod/ops/log/run_record.ts";
import type { Histogram } from "../../../../mod/ops/log/store/histogram.ts";
import { adminSession } from "../../server/admin_session.ts";
import { isTemporary } from "../../ui/use_request.tsx";

export interface StreamEvent {
  readonly event: string;
  readonly data: string;
}

/** Maximum length of an event; the server's are shorter. */
const CHARS_MAX = 4_000_000;

/** Reads server-sent events with `fetch`, because `EventSource` cannot send an Authorization header. */
async function* readEvents(response: Response): AsyncGenerator<StreamEvent> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      if (text.length > CHARS_MAX) return;
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) {
        const event = eventOf(part);
        if (event !== null) yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function eventOf(part: string): StreamEvent | null {
  let event = "message";
  const data: string[] = [];
  for (const line of part.split("\n")) {
    if (line.startsWith("event: ")) event = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  return data.length === 0 ? null : { event, data: data.join("\n") };
}

export type { LoggedRun };

export const OUTCOME_LABELS: Readonly<Record<LoggedRun["outcome"], string>> = {
  success: "success",
  user_error: "rejected",
  error: "error",
  timeout: "timeout",
  refused: "refused",
};

export type RunOutcome = LoggedRun["outcome"];
export const OUTCOMES = Object.keys(OUTCOME_LABELS) as readonly RunOutcome[];

export const isOutcome = (name: string): name is RunOutcome => Object.hasOwn(OUTCOME_LABELS, name);

/** Runs between `from` and `to`, by outcome. */
export interface Bar {
  readonly from: number;
  readonly to: number;
  readonly runs: Readonly<Partial<Record<RunOutcome, number>>>;
}

export interface RunsPage {
  readonly runs: readonly LoggedRun[];
  readonly cursor: string | null;
  readonly complete: boolean;
  /** ID of the newest run in the log, matching or not. */
  readonly lastId: number;
  readonly histogram?: Histogram | null;
}

/** Fetches a page of runs, newest first. */
export async function runsPage(params: string, signal: AbortSignal | null): Promise<RunsPage> {
  return await (await adminSession.fetch(`/api/admin/logs?${params}`, { signal })).json() as RunsPage;
}

export interface Logs {
  readonly runs: readonly LoggedRun[];
  readonly bars: readonly Bar[];
  readonly busy: boolean;
  readonly error: string | null;
  /** Number of runs skipped because the stream was faster than this page. */
  readonly missed: number;
  /** Loads older runs; `null` at the end. */
  readonly more: (() => void) | null;
}

const PAGE = 100;
const BARS = 60;
/** Maximum number of runs kept in the page; the oldest are dropped. */
const KEPT_MAX = 2_000;
const RETRY_MS = 2_000;

/** @param live Whether new runs are streamed. */
export function useLogs(filter: string, live: boolean): Logs {
  const [runs, setRuns] = useState<readonly LoggedRun[]>([]);
  const [bars, setBars] = useState<readonly Bar[]>([]);
  const [cursor, setCursor] = useState<string | null>(null);
  const [busy, setBusy] = useState(true);
  const [error, setError] = useState<string | null>(null);
  const [missed, setMissed] = useState(0);
  /** ID of the newest run that was searched or streamed. */
  const newest = useRef(0);
  /** Filter whose first page has arrived. */
  const [listed, setListed] = useState<string | null>(null);
  /** Aborted when the filter changes. */
  const loading = useRef(new AbortController());

  /** Returns whether the request should be repeated. */
  const load = useCallback(async (from: string | null): Promise<boolean> => {
    const { signal } = loading.current;
    const params = new URLSearchParams(filter);
    params.set("limit", String(PAGE));
    if (from === null) params.set("histogram", String(BARS));
    else params.set("cursor", from);
    setBusy(true);
    let isRepeated = false;
    try {
      const page = await runsPage(params.toString(), signal);
      setRuns((before) => from === null ? page.runs : [...before, ...page.runs]);
      if (from === null) {
        newest.current = page.lastId;
        setListed(filter);
      }
      setCursor(page.cursor);
      if (page.histogram) setBars(barsOf(page.histogram));
      setError(null);
    } catch (failure) {
      if (signal.aborted) return false;
      isRepeated = isTemporary(failure);
      setError(failure instanceof Error ? failure.message : String(failure));
    }
    setBusy(false);
    return isRepeated;
  }, [filter]);

  useEffect(() => {
    const ending = loading.current = new AbortController();
    setRuns([]);
    setCursor(null);
    setListed(null);
    setMissed(0);
    void (async () => {
      while (await load(null)) {
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        if (ending.signal.aborted) return;
      }
    })();
    return () => ending.abort();
  }, [load]);

  // The stream continues after the first page.
  useEffect(() => {
    if (!live || listed !== filter) return;
    const ending = new AbortController();
    void streamRuns(filter, {
      signal: ending.signal,
      after: () => newest.current,
      onRun(run) {
        newest.current = run.id;
        setBars((before) => withRun(before, run));
        setRuns((before) =>
          before.some(({ id }) => id === run.id) ? before : [run, ...before].slice(0, KEPT_MAX)
        );
      },
      onMissed: (count) => setMissed((before) => before + count),
    });
    return () => ending.abort();
  }, [filter, live, listed]);

  return { runs, bars, busy, error, missed, more: cursor === null ? null : () => void load(cursor) };
}

function barsOf({ from, barMs, bars, outcomes }: Histogram): readonly Bar[] {
  return bars.map((counts, position) => {
    const start = from + position * barMs;
    const runs = Object.fromEntries(outcomes.map((outcome, at) => [outcome, counts[at] ?? 0]));
    return { from: start, to: start + barMs, runs };
  });
}

/** Counts a streamed run in its bar, shifting the window if the run is newer than the last bar. */
function withRun(bars: readonly Bar[], { at, outcome }: LoggedRun): readonly Bar[] {
  const newest = bars.at(-1);
  if (newest === undefined || at < (bars[0]?.from ?? 0)) return bars;
  const width = newest.to - newest.from;
  const moved = Math.max(0, Math.floor((at - newest.from) / width));
  const kept = bars.slice(Math.min(moved, bars.length));
  const come = Math.min(moved, bars.length);
  const added = Array.from({ length: come }, (_, position): Bar => {
    const from = newest.from + (moved - come + position + 1) * width;
    return { from, to: from + width, runs: {} };
  });
  return [...kept, ...added].map((bar) => {
    if (at < bar.from || at >= bar.to) return bar;
    return { ...bar, runs: { ...bar.runs, [outcome]: (bar.runs[outcome] ?? 0) + 1 } };
  });
}

interface StreamOptions {
  readonly signal: AbortSignal;
  /** ID of the run after which it continues. */
  readonly after: () => number;
  readonly onRun: (run: LoggedRun) => void;
  readonly onMissed: (count: number) => void;
}

/** Reads the stream until it is aborted. A broken connection resumes after the last run. */
async function streamRuns(filter: string, { signal, after, onRun, onMissed }: StreamOptions): Promise<void> {
  while (!signal.aborted) {
    try {
      const response = await adminSession.fetch(`/api/admin/logs/stream?${filter}`, {
        signal,
        headers: { "Last-Event-ID": String(after()) },
      });
      for await (const { event, data } of readEvents(response)) {
        if (event === "run") onRun(JSON.parse(data) as LoggedRun);
        else if (event === "missed") onMissed((JSON.parse(data) as { readonly count: number }).count);
      }
    } catch {
      // Retried below. A failed page request reports an unreachable server.
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}
