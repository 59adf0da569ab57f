/**
 * One budget for the characters that all sockets have sent and the server has to keep: frames that wait, calls that run,
 * arguments of live queries. When it is full, the socket that holds most is ended.
 */

import { socketLimits } from "../../limits.ts";

/** What one socket holds. */
export class HeldAccount {
  chars = 0;
  /** Ends the socket; what its calls hold stays until they end. */
  readonly end: () => void;

  constructor(end: () => void) {
    this.end = end;
  }
}

export class HeldBudget {
  readonly #charsMax: number;
  readonly #accounts = new Set<HeldAccount>();
  #chars = 0;

  constructor(charsMax: number) {
    this.#charsMax = charsMax;
  }

  get chars(): number {
    return this.#chars;
  }

  open(end: () => void): HeldAccount {
    const account = new HeldAccount(end);
    this.#accounts.add(account);
    return account;
  }

  /** The socket is gone. What its calls still hold is given back as they end. */
  close(account: HeldAccount): void {
    this.#accounts.delete(account);
  }

  hold(account: HeldAccount, chars: number): void {
    account.chars += chars;
    this.#chars += chars;
    if (this.#chars > this.#charsMax && chars > 0) this.#relieve();
  }

  release(account: HeldAccount, chars: number): void {
    account.chars -= chars;
    this.#chars -= chars;
  }

  /**
   * Ends the largest holders until the rest fits. Those who hold far less than their share are spared: what is held then
   * belongs to calls of sockets that are gone.
   */
  #relieve(): void {
    const { heldSparedCharsMin, heldSparedCharsMax } = socketLimits;
    while (this.#chars > this.#charsMax) {
      const share = this.#charsMax / (4 * this.#accounts.size);
      const spared = Math.min(Math.max(share, heldSparedCharsMin), heldSparedCharsMax);
      let largest: HeldAccount | null = null;
      for (const account of this.#accounts) {
        if (account.chars > (largest?.chars ?? spared)) largest = account;
      }
      if (largest === null) return;
      this.#accounts.delete(largest);
      largest.end();
    }
  }
}
