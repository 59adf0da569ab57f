/** Sliding windows: a ring of equal time spans, the newest of them still counting, and the cached sum of a window. */
import { SpanFigures } from "./span_figures.ts";

export interface Span<Content> {
  /** Start in milliseconds since the epoch, a multiple of the length. */
  readonly at: number;
  readonly content: Content;
}

export class SpanRing<Content> {
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
export class WindowSum {
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
