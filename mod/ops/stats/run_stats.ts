/** Counts runs of the last minute, hour and day, and since the start, in a few additions for each run. */
import { endingOf, type RunEnd, type RunKind, type RunObserver } from "../../functions/host/mod.ts";
import { type RunEnding, runEndings } from "../../functions/run_endings.ts";
import { statsLimits } from "../limits.ts";
import type { SavedFigures } from "../log/mod.ts";
import { Histogram, LATENCY_BOUNDS, type Percentiles, Tally } from "./counters.ts";
import { RefusedLimits } from "./refused_limits.ts";
import { type PackedSpan, SpanFigures } from "./span_figures.ts";

const KINDS = ["query", "mutation", "action", "route"] as const satisfies readonly RunKind[];

/** Seconds: from cached queries to actions that run for minutes. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** Calls per commit, up to the largest batch. */
const GROUP_CALLS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Outcomes and durations of function runs by kind since the start. Paths are not labels, because there may be thousands. */
export class RunTotals {
  readonly ends = new Tally(KINDS, runEndings);
  readonly seconds: Readonly<Record<RunKind, Histogram>> = {
    query: new Histogram(SECONDS),
    mutation: new Histogram(SECONDS),
    action: new Histogram(SECONDS),
    route: new Histogram(SECONDS),
  };
  readonly groupCalls = new Histogram(GROUP_CALLS);
  readonly refusedLimits = new RefusedLimits();

  add(kind: RunKind, ending: RunEnding, ms: number): void {
    this.ends.add(kind, ending);
    this.seconds[kind].add(ms / 1000);
  }
}

interface Span<Content> {
  /** Start in milliseconds since the epoch, a multiple of the length. */
  readonly at: number;
  readonly content: Content;
}

/** Sliding windows: a ring of equal time spans, the newest of them still counting, and the cached sum of a window. */
class SpanRing<Content> {
  readonly spanMs: number;
  readonly #kept: number;
  readonly #make: () => Content;
  /** Oldest first. */
  #spans: Span<Content>[] = [];

  constructor({ spanMs, kept, make }: {
    readonly spanMs: number;
    readonly kept: number;
    readonly make: () => Content;
  }) {
    this.spanMs = spanMs;
    this.#kept = kept;
    this.#make = make;
  }

  get spans(): readonly Span<Content>[] {
    return this.#spans;
  }

  /** Returns the span of a moment, creating it if needed. Moments before the newest span, after a clock change, map to it. */
  at(now: number): Span<Content> {
    const at = Math.floor(now / this.spanMs) * this.spanMs;
    const newest = this.#spans.at(-1);
    if (newest !== undefined && newest.at >= at) return newest;
    const made = { at, content: this.#make() };
    this.#spans.push(made);
    if (this.#spans.length > this.#kept) this.#spans.shift();
    return made;
  }

  /** Returns the spans that started within `ms` before now. */
  since(now: number, ms: number): readonly Span<Content>[] {
    return this.#spans.filter(({ at }) => at > now - ms);
  }

  /** Inserts spans of an earlier process. */
  restore(spans: readonly Span<Content>[]): void {
    const first = this.#spans[0]?.at ?? Infinity;
    const older = spans.filter(({ at }) => at < first).toSorted((a, b) => a.at - b.at);
    this.#spans = [...older, ...this.#spans].slice(-this.#kept);
  }
}

/** Sum of a sliding window, recomputed when the oldest span leaves it. */
class WindowSum {
  readonly #ring: SpanRing<SpanFigures>;
  readonly #ms: number;
  /** With the start of its oldest span; `null` if not computed. */
  #known: { readonly oldestAt: number; readonly sum: SpanFigures } | null = null;

  constructor(ring: SpanRing<SpanFigures>, ms: number) {
    this.#ring = ring;
    this.#ms = ms;
  }

  /** Returns the sum, which must not be modified. */
  read(now: number): SpanFigures {
    const spans = this.#ring.since(now, this.#ms);
    const oldestAt = spans[0]?.at ?? -1;
    if (this.#known?.oldestAt !== oldestAt) {
      const sum = new SpanFigures();
      for (const { content } of spans) sum.addAll(content);
      this.#known = { oldestAt, sum };
    }
    return this.#known.sum;
  }

  /** Call when `content` was added to the newest span. */
  add(content: SpanFigures): void {
    this.#known?.sum.addAll(content);
  }

  /** Call for other changes. */
  invalidate(): void {
    this.#known = null;
  }
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Statistics of a window. */
export interface FunctionStats {
  readonly calls: number;
  /** Runs that failed for other reasons than the caller's, and their share. */
  readonly errors: number;
  readonly errorRate: number;
  readonly cacheHits: number;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly documentsRead: number;
  readonly indexRowsRead: number;
  readonly documentsWritten: number;
  readonly indexRowsWritten: number;
}

export const windows = ["minute", "hour", "day"] as const;
export type Window = (typeof windows)[number];

/** Statistics of a function by window; `null` if it did not run. */
export interface StatsOfFunction extends Readonly<Record<Window, FunctionStats | null>> {
  readonly function: string;
  readonly kind: RunKind;
}

export interface MinuteStats {
  readonly at: number;
  readonly calls: number;
  readonly errors: number;
  readonly cacheHits: number;
  readonly mutations: number;
  /** Duration of runs including queueing, in ms. */
  readonly runMs: CommitStats;
  /** From the acceptance of mutations to their commit, in ms. */
  readonly commitMs: CommitStats;
}

export type CommitStats = Percentiles;

export class RunStats implements RunObserver {
  /** Counts since the start, for the metrics. */
  readonly totals = new RunTotals();
  readonly #now: () => number;
  readonly #slots: SpanRing<SpanFigures>;
  readonly #minutes: SpanRing<SpanFigures>;
  readonly #hours: SpanRing<SpanFigures>;
  readonly #hour: WindowSum;
  readonly #day: WindowSum;
  readonly #minuteCache = new WeakMap<SpanFigures, MinuteStats>();
  #slot: Span<SpanFigures>;

  constructor({ now }: { readonly now: () => number }) {
    this.#now = now;
    const make = () => new SpanFigures();
    this.#slots = new SpanRing({ spanMs: statsLimits.slotMs, kept: 7, make });
    this.#minutes = new SpanRing({ spanMs: MINUTE_MS, kept: 61, make });
    this.#hours = new SpanRing({ spanMs: HOUR_MS, kept: 25, make });
    this.#hour = new WindowSum(this.#minutes, HOUR_MS);
    this.#day = new WindowSum(this.#hours, DAY_MS);
    this.#slot = this.#slots.at(now());
  }

  /** Called often, so it must be fast and must not throw. */
  runEnded(kind: RunKind, { call: { udfPath }, outcome, durationMs, queuedMs, ms, use }: RunEnd): void {
    const { content } = this.#slot;
    const ending = endingOf(outcome);
    this.totals.add(kind, ending, ms);
    const unknown = !outcome.ok && outcome.error.kind === "unknown_function";
    // Paths made up by clients must not displace the app's.
    const figures = content.of(kind, unknown ? "(unknown)" : udfPath);
    figures.calls++;
    if (ending !== "success" && ending !== "user_error") figures.errors++;
    figures.latencies.add(durationMs + queuedMs);
    if (use !== null) {
      figures.reads += use.documentsRead;
      figures.indexReads += use.indexRowsRead;
      figures.writes += use.documentsWritten;
      figures.indexWrites += use.indexRowsWritten;
    }
    if (kind !== "mutation") return;
    if (outcome.ok) content.commits.add(ms);
    else this.totals.refusedLimits.add(outcome.error, this.#now());
  }

  groupCommitted(calls: number): void {
    this.totals.groupCalls.add(calls);
  }

  cacheHit(udfPath: string): void {
    this.#slot.content.of("query", udfPath).hits++;
  }

  /** Starts the next span when one has ended. Call often enough; returns figures to be saved, if any. */
  advance(): SavedFigures[] {
    const now = this.#now();
    const before = this.#slot;
    const slot = this.#slots.at(now);
    if (slot === before) return [];
    this.#slot = slot;
    return this.#close(before);
  }

  /** Returns unsaved figures without ending the span. Call at shutdown. */
  flush(): SavedFigures[] {
    return this.#close(this.#slot);
  }

  restore(saved: readonly SavedFigures[]): void {
    const spans = (span: SavedFigures["span"]): Span<SpanFigures>[] =>
      saved.filter((figures) => figures.span === span).flatMap(({ at, text }) => {
        try {
          return [{ at, content: SpanFigures.unpack(JSON.parse(text) as PackedSpan) }];
        } catch {
          // Unreadable rows are skipped.
          return [];
        }
      });
    this.#restore(this.#minutes, spans("minute"));
    this.#restore(this.#hours, spans("hour"));
  }

  /** Returns each function that ran within a day. */
  functions(): StatsOfFunction[] {
    const sums = this.#sums();
    const rows = new Map<string, StatsOfFunction>();
    for (const window of windows) {
      for (const { kind, path, figures } of sums[window]) {
        const key = `${kind} ${path}`;
        const row = rows.get(key) ??
          { function: path, kind, minute: null, hour: null, day: null } satisfies StatsOfFunction;
        const { calls, errors, hits, reads, indexReads, writes, indexWrites, latencies } = figures;
        const stats: FunctionStats = {
          calls,
          errors,
          errorRate: calls === 0 ? 0 : errors / calls,
          cacheHits: hits,
          ...latencies.percentiles,
          documentsRead: reads,
          indexRowsRead: indexReads,
          documentsWritten: writes,
          indexRowsWritten: indexWrites,
        };
        rows.set(key, { ...row, [window]: stats });
      }
    }
    return [...rows.values()].toSorted((a, b) => (b.hour?.calls ?? 0) - (a.hour?.calls ?? 0));
  }

  commitMs(): Readonly<Record<Window, CommitStats>> {
    const { minute, hour, day } = this.#sums();
    return { minute: commitStats(minute), hour: commitStats(hour), day: commitStats(day) };
  }

  /** Returns the last hour by minute, oldest first; the last one is still counting. */
  history(): MinuteStats[] {
    const now = this.#now();
    const minutes = new Map<number, SpanFigures>();
    for (const { at, content } of this.#minutes.since(now, HOUR_MS)) minutes.set(at, content);
    const growing = new SpanFigures();
    const at = Math.floor(this.#slot.at / MINUTE_MS) * MINUTE_MS;
    growing.addAll(minutes.get(at) ?? new SpanFigures());
    growing.addAll(this.#slot.content);
    minutes.set(at, growing);
    return [...minutes].toSorted(([a], [b]) => a - b).map(([at, figures]) => this.#minuteStats(at, figures));
  }

  /** Returns the sum of the minutes that started within a time; `null` without any. */
  sumOf(from: number, to: number): MinuteStats | null {
    const sum = new SpanFigures();
    const minutes = this.#minutes.spans.filter(({ at }) => at >= from && at < to);
    for (const { content } of minutes) sum.addAll(content);
    if (this.#slot.at >= from && this.#slot.at < to) sum.addAll(this.#slot.content);
    else if (minutes.length === 0) return null;
    return minuteStats(from, sum);
  }

  #minuteStats(at: number, figures: SpanFigures): MinuteStats {
    const known = this.#minuteCache.get(figures);
    if (known !== undefined) return known;
    const stats = minuteStats(at, figures);
    // Invalidated when a slot is added to it.
    this.#minuteCache.set(figures, stats);
    return stats;
  }

  /** Adds an ended slot to its minute and hour, and returns these for saving. */
  #close({ at, content }: Span<SpanFigures>): SavedFigures[] {
    const minute = this.#minutes.at(at);
    const hour = this.#hours.at(at);
    minute.content.addAll(content);
    hour.content.addAll(content);
    this.#minuteCache.delete(minute.content);
    this.#hour.add(content);
    this.#day.add(content);
    return [
      { span: "minute", at: minute.at, text: JSON.stringify(minute.content.pack()) },
      { span: "hour", at: hour.at, text: JSON.stringify(hour.content.pack()) },
    ];
  }

  /** Inserts earlier spans; one interrupted by a restart continues. */
  #restore(ring: SpanRing<SpanFigures>, spans: readonly Span<SpanFigures>[]): void {
    for (const { at, content } of spans) {
      const known = ring.spans.find((span) => span.at === at)?.content;
      if (known === undefined) continue;
      known.addAll(content);
      this.#minuteCache.delete(known);
    }
    ring.restore(spans);
    this.#hour.invalidate();
    this.#day.invalidate();
  }

  #sums(): Readonly<Record<Window, SpanFigures>> {
    const now = this.#now();
    const sum = (parts: readonly SpanFigures[]): SpanFigures => {
      const all = new SpanFigures();
      for (const part of parts) all.addAll(part);
      return all;
    };
    const growing = this.#slot.content;
    return {
      // Includes the current slot.
      minute: sum(this.#slots.since(now, MINUTE_MS + statsLimits.slotMs).map(({ content }) => content)),
      hour: sum([this.#hour.read(now), growing]),
      day: sum([this.#day.read(now), growing]),
    };
  }
}

function commitStats({ commits }: SpanFigures): CommitStats {
  return commits.percentiles;
}

function minuteStats(at: number, figures: SpanFigures): MinuteStats {
  let [calls, errors, cacheHits] = [0, 0, 0];
  const latencies = new Histogram(LATENCY_BOUNDS);
  for (const { figures: counts } of figures) {
    calls += counts.calls;
    errors += counts.errors;
    cacheHits += counts.hits;
    latencies.addAll(counts.latencies);
  }
  return {
    ...{ at, calls, errors, cacheHits, mutations: figures.commits.count },
    runMs: latencies.percentiles,
    commitMs: commitStats(figures),
  };
}
