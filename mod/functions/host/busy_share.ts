/** Over how much of the last second something was fully busy. */
const WINDOW_MS = 1_000;

export class BusyShare {
  #windowAt: number;
  #busySince: number | null = null;
  #busyMs = 0;

  constructor(now: number) {
    this.#windowAt = now;
  }

  /** Notes whether it is busy from now on. Gives the share of the last window once a second, else `null`. */
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
