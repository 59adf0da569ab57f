/** The sum of a sliding window, kept as long as the same spans are in it: it is made anew when the oldest leaves. */
import { SpanFigures } from "./span_figures.ts";
import type { SpanRing } from "./span_ring.ts";

export class WindowSum {
  readonly #ring: SpanRing<SpanFigures>;
  readonly #ms: number;
  /** With the beginning of the oldest span in it; `null` when nothing is known. */
  #known: { readonly oldestAt: number; readonly sum: SpanFigures } | null = null;

  constructor(ring: SpanRing<SpanFigures>, ms: number) {
    this.#ring = ring;
    this.#ms = ms;
  }

  /** Not to be changed. */
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

  /** Something was added to the newest span. */
  added(content: SpanFigures): void {
    this.#known?.sum.addAll(content);
  }

  /** Something else has changed. */
  forget(): void {
    this.#known = null;
  }
}
