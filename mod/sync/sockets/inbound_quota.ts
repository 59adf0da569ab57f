/**
 * Shared quota for data received from all sockets and still in memory: queued frames, running calls and arguments of live
 * queries. When it is exceeded, the largest socket is ended.
 */

import { socketLimits } from "../../limits.ts";

/** Usage of one socket. */
export class InboundAccount {
  chars = 0;
  /** Ends the socket. Memory of its calls is released when they end. */
  readonly end: () => void;

  constructor(end: () => void) {
    this.end = end;
  }
}

export class InboundQuota {
  readonly #charsMax: number;
  readonly #accounts = new Set<InboundAccount>();
  #chars = 0;

  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  get chars(): number {
    return this.#chars;
  }

  open(end: () => void): InboundAccount {
    const account = new InboundAccount(end);
    this.#accounts.add(account);
    return account;
  }

  /** Unregisters a closed socket. Its calls release their share when they end. */
  close(account: InboundAccount): void {
    this.#accounts.delete(account);
  }

  reserve(account: InboundAccount, chars: number): void {
    account.chars += chars;
    this.#chars += chars;
    if (this.#chars > this.#charsMax && chars > 0) this.#endLargest();
  }

  release(account: InboundAccount, chars: number): void {
    account.chars -= chars;
    this.#chars -= chars;
  }

  /**
   * Ends the largest sockets until usage is within the quota. Sockets far below an equal share are exempt: the usage then
   * belongs to calls of closed sockets.
   */
  #endLargest(): void {
    const { heldSparedCharsMin, heldSparedCharsMax } = socketLimits;
    while (this.#chars > this.#charsMax) {
      const share = this.#charsMax / (4 * this.#accounts.size);
      const exemptChars = Math.min(Math.max(share, heldSparedCharsMin), heldSparedCharsMax);
      let largest: InboundAccount | null = null;
      for (const account of this.#accounts) {
        if (account.chars > (largest?.chars ?? exemptChars)) largest = account;
      }
      if (largest === null) return;
      this.#accounts.delete(largest);
      largest.end();
    }
  }
}
