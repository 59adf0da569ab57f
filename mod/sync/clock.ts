/** Time as the hub sees it, so that tests can hold it. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `tick` every `intervalMs` until the returned function is called. */
  every(intervalMs: number, tick: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  every(intervalMs, tick) {
    const timer = setInterval(tick, intervalMs);
    return () => clearInterval(timer);
  },
};
