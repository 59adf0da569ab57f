/**
 * Runs at most one request at a time and queues only the latest one. If a response turns out to be stale, the next request
 * waits until the position has been stable for a moment, so positions that are merely scrolled past cost the server nothing.
 */

/** Longer than a frame, shorter than a noticeable delay. */
const STABLE_MS = 40;

export class LatestRequest<Wanted> {
  /** Returns whether the response was still useful. */
  readonly #run: (wanted: Wanted) => Promise<boolean>;
  #running = false;
  #queued: { readonly wanted: Wanted } | null = null;
  #stale = false;
  #delay: ReturnType<typeof setTimeout> | undefined;

  constructor(run: (wanted: Wanted) => Promise<boolean>) {
    this.#run = run;
  }

  /** Queues a request, replacing the queued one. */
  ask(wanted: Wanted): void {
    this.drop();
    this.#queued = { wanted };
    if (this.#running) return;
    if (this.#stale) this.#delay = setTimeout(() => void this.#next(), STABLE_MS);
    else void this.#next();
  }

  drop(): void {
    clearTimeout(this.#delay);
    this.#queued = null;
  }

  async #next(): Promise<void> {
    const next = this.#queued;
    if (next === null) return;
    this.#queued = null;
    this.#running = true;
    // A failed request is retried when the position changes.
    const used = await this.#run(next.wanted).catch(() => false);
    this.#running = false;
    this.#stale = !used;
    const newer = this.#queued as typeof next | null;
    if (newer !== null) this.ask(newer.wanted);
  }
}
