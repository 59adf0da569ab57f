/** Requests that come while the database is lent: whether this server or its successor answers them is not known yet. */
import { ServiceError } from "../../errors.ts";
import type { Lent } from "../../functions/host/mod.ts";
import { takeoverLimits } from "../limits.ts";
import type { Successor } from "./successor.ts";

export class Passing {
  readonly #decided = Promise.withResolvers<Successor | null>();
  #lent: Lent | null = null;
  #held = 0;

  /** The database is lent now. */
  lent(lent: Lent): void {
    this.#lent = lent;
  }

  /**
   * Waits for the end of the switch: the successor, or `null` when this server goes on. Rejects with `unavailable` when too
   * many wait.
   */
  async hold(): Promise<Successor | null> {
    if (this.#held >= takeoverLimits.requestsHeldMax) throw new ServiceError("unavailable");
    this.#held++;
    try {
      return await this.#decided.promise;
    } finally {
      this.#held--;
    }
  }

  /** This server goes on. */
  takeBack(): void {
    this.#lent?.giveBack();
    this.#decided.resolve(null);
  }

  /** This server ends: its database stays lent. */
  refuse(): void {
    this.#decided.resolve(null);
  }

  giveWay(successor: Successor): void {
    this.#lent?.passOn(successor.calls);
    this.#decided.resolve(successor);
  }
}
