/** Measures the fraction of the last second during which something was fully busy. */
const WINDOW_MS = 1_000;

export class BusyShare {
  #windowAt: number;
  #busySince: number | null = null;
  #busyMs = 0;

  constructor(now: number) {
    this.#windowAt = now;
  }

  /** Records whether it is busy from now on. Returns the share of the last window once per second, otherwise `null`. */
  note(busy: boolean, now: number): number | null {
    if (this.#busySince !== null) this.#busyMs += now - this.#busySince;
    this.#busySince = busy ? now : null;
    const windowMs = now - this.#windowAt;
    if (windowMs < WINDOW_MS) return null;
    const share = this.#busyMs / windowMs;
    this.#windowAt = now;
    this.#busyMs = 0;
    return share;
  }
}
