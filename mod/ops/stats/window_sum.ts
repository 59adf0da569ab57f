/** Cached sum of a sliding window, recomputed when the oldest span leaves it. */
import { SpanFigures } from "./span_figures.ts";
import type { SpanRing } from "./span_ring.ts";

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
