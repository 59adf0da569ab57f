/** Ring of equal time spans for sliding windows; the newest one is still counting. */

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
