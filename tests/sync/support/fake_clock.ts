/** A clock that moves when told to. */
import type { Clock } from "../../../mod/sync/clock.ts";

interface Ticker {
  readonly intervalMs: number;
  readonly tick: () => void;
  nextAt: number;
}

export class FakeClock implements Clock {
  #now = 1_000_000;
  readonly #tickers = new Set<Ticker>();

  now(): number {
    return this.#now;
  }

  get tickerCount(): number {
    return this.#tickers.size;
  }

  every(intervalMs: number, tick: () => void): () => void {
    const ticker = { intervalMs, tick, nextAt: this.#now + intervalMs };
    this.#tickers.add(ticker);
    return () => {
      this.#tickers.delete(ticker);
    };
  }

  /** Moves on, ticking on the way in the order of time. */
  advance(ms: number): void {
    const target = this.#now + ms;
    for (;;) {
      let next: Ticker | undefined;
      for (const ticker of this.#tickers) {
        if (ticker.nextAt <= target && (next === undefined || ticker.nextAt < next.nextAt)) next = ticker;
      }
      if (next === undefined) break;
      this.#now = next.nextAt;
      next.nextAt += next.intervalMs;
      next.tick();
    }
    this.#now = target;
  }
}
