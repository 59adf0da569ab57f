/** Spans of equal length, the newest of which is still growing: what a sliding window is added up from. */

export interface Span<Content> {
  /** When it began, milliseconds since the epoch: a multiple of the length. */
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

  /** The span of a moment, begun if there is none. One before the newest, as after the clock was set back, is the newest. */
  at(now: number): Span<Content> {
    const at = Math.floor(now / this.spanMs) * this.spanMs;
    const newest = this.#spans.at(-1);
    if (newest !== undefined && newest.at >= at) return newest;
    const made = { at, content: this.#make() };
    this.#spans.push(made);
    if (this.#spans.length > this.#kept) this.#spans.shift();
    return made;
  }

  /** Those that began within so long before now. */
  since(now: number, ms: number): readonly Span<Content>[] {
    return this.#spans.filter(({ at }) => at > now - ms);
  }

  /** Puts spans of an earlier life in front of those there are. */
  restore(spans: readonly Span<Content>[]): void {
    const first = this.#spans[0]?.at ?? Infinity;
    const older = spans.filter(({ at }) => at < first).toSorted((a, b) => a.at - b.at);
    this.#spans = [...older, ...this.#spans].slice(-this.#kept);
  }
}
